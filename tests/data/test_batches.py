import functools
import itertools
import operator
import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pluribus.core.errors import DataError
from pluribus.core.seeds import derive_seed
from pluribus.data import Part, Pixels, Preparation
from pluribus.data.batches import LoaderBatches, TensorBatches


def stored(rows=10, size=4, **options):
    x = torch.arange(rows).float().unsqueeze(1)
    return TensorBatches(Part(x, torch.arange(rows)), size, Preparation(), **options)


def labels(batches):
    return [batch.y.tolist() for batch in batches]


def test_in_order_every_row_comes_once():
    assert labels(stored()) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_shuffled_epoch_has_every_row_once_and_the_next_is_another():
    batches = stored(40, 8, shuffled=True)
    first = labels(batches)
    assert sorted(functools.reduce(operator.iadd, first, [])) == list(range(40))
    assert labels(batches) == first, "the order is a function of the seed and the epoch"
    batches.epoch = 1
    assert labels(batches) != first
    assert labels(stored(40, 8, shuffled=True, seed=1)) != first


def test_beginning_in_the_middle_gives_the_rest_of_the_epoch_once():
    batches = stored(40, 8, shuffled=True)
    whole = labels(batches)
    batches.start = 3
    assert labels(batches) == whole[3:]
    assert labels(batches) == whole


def test_an_iterator_that_is_never_used_does_not_take_the_start_away():
    batches = stored(40, 8)
    batches.start = 3
    iter(batches)
    assert len(labels(batches)) == 2


def test_a_row_alone_is_left_out_of_training_and_kept_for_judging():
    assert len(stored(9, 4, shuffled=True)) == len(labels(stored(9, 4, shuffled=True))) == 2
    assert labels(stored(9, 4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    assert labels(stored(1, 4, shuffled=True)) == [[0]], "but a set of one row has one batch"


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("rows", [11, 12, 13])
def test_processes_share_every_batch_and_their_weights_make_its_mean(rows, shuffled):
    parts = []
    for rank in range(2):
        part = stored(rows, 5, shuffled=shuffled)
        part.rank, part.world = rank, 2
        parts.append(list(part))
    assert len(parts[0]) == len(parts[1])
    seen = []
    for first, second in zip(*parts, strict=True):
        both = torch.cat([first.x, second.x])
        torch.testing.assert_close(
            (first.share.weight * first.x.mean() + second.share.weight * second.x.mean()) / 2, both.mean()
        )
        seen += both.flatten().tolist()
    # As on one process, a row alone is left out of a shuffled epoch. Else it joins the last batch, so that both have rows.
    assert len(seen) == len(set(seen)) == rows - (shuffled and rows % 5 == 1)
    alone = stored(rows, 5, shuffled=shuffled)
    if shuffled or rows % 5 != 1:
        assert [len(batch.y) for batch in alone] == [len(batch.y) + len(other.y) for batch, other in zip(*parts, strict=True)]


def test_augmentation_is_the_same_for_one_process_and_two():
    x = torch.randint(0, 256, (8, 1, 6, 6), dtype=torch.uint8)
    options = {"shuffled": True, "augmentation": "crop-flip"}
    alone = next(iter(TensorBatches(Part(x, torch.arange(8)), 8, Pixels(), **options)))
    for rank in range(2):
        batches = TensorBatches(Part(x, torch.arange(8)), 8, Pixels(), **options)
        batches.rank, batches.world = rank, 2
        torch.testing.assert_close(next(iter(batches)).x, alone.x[rank::2])


def test_a_loader_of_ones_own_repeats_and_goes_on_from_the_middle():
    loader = DataLoader(TensorDataset(torch.arange(40).float(), torch.arange(40)), 8, shuffle=True)
    batches = LoaderBatches(loader, seed=3)
    whole = labels(batches)
    torch.rand(5)  # what was drawn before does not matter
    assert labels(batches) == whole
    batches.start = 2
    assert labels(batches) == whole[2:]
    batches.epoch = 1
    assert labels(batches) != whole


class Noisy(Dataset):
    """Rows with noise from one of the generators that people use."""

    def __init__(self, draw):
        self.draw = draw

    def __len__(self):
        return 12

    def __getitem__(self, row):
        return float(self.draw()), row


@pytest.mark.parametrize("draw", [lambda: torch.rand(()), np.random.rand, random.random], ids=["torch", "numpy", "python"])
def test_a_loader_may_draw_from_any_generator(draw):
    """And may have one of its own, which a run that goes on in another process would find as it was at first."""

    def rows(start):
        loader = DataLoader(Noisy(draw), 4, shuffle=True, generator=torch.Generator().manual_seed(0))
        batches = LoaderBatches(loader, seed=3)
        batches.epoch, batches.start = 1, start
        return [(batch.x.tolist(), batch.y.tolist()) for batch in batches]

    whole = rows(0)
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    assert rows(2) == whole[2:]
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])
    assert random.getstate() == states[2]
    assert whole[0][0] != whole[1][0]


def test_a_batch_too_small_for_its_processes_is_refused():
    batches = LoaderBatches([(torch.zeros(1, 2), torch.zeros(1))])
    batches.world = 2
    with pytest.raises(DataError, match="cannot be shared by 2 processes"):
        list(batches)


def test_no_rows_make_no_batches():
    with pytest.raises(DataError, match="no rows"):
        stored(0)


def test_seeds_of_different_places_are_unrelated():
    """Neighbouring places give 63-bit seeds that differ in about half of their bits."""
    seeds = [derive_seed(0, 3, step) for step in range(2000)]
    assert len(set(seeds)) == 2000
    flips = [bin(a ^ b).count("1") for a, b in itertools.pairwise(seeds)]
    assert sum(flips) / len(flips) == pytest.approx(31.5, abs=0.5)  # its standard error is 4/√2000 = 0.09
    assert derive_seed(1, 2) != derive_seed(2, 1)
