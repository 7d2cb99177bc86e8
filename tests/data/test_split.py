"""Both splits: stratified, disjoint, repeatable, and no class gives its last row away."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.core.errors import DataError
from pluribus.data.split import check_share, split_rows, split_validation

LABELS = st.lists(st.integers(0, 3), min_size=1, max_size=60).map(torch.tensor)
TEST = [4, 5, 6, 11]
VALIDATION = [0, 4, 6, 7]
WITHOUT_LABELS = [2, 4]
repeatable = settings(max_examples=50, deadline=None, derandomize=True, database=None)


def both(share, labels, seed=0):
    return split_rows(round(share * len(labels)), len(labels), seed, labels), split_validation(share, len(labels), seed, labels)


@repeatable
@given(LABELS, st.sampled_from([0.0, 0.1, 0.5, 0.9]), st.integers(0, 2**32 - 1))
def test_every_row_is_in_one_side_in_order_and_every_class_keeps_a_row(labels, share, seed):
    for keep, held_out in both(share, labels, seed):
        assert torch.cat([keep, held_out]).sort().values.tolist() == list(range(len(labels)))
        assert keep.tolist() == sorted(keep.tolist())
        assert held_out.tolist() == sorted(held_out.tolist())
        assert set(labels[keep].tolist()) == set(labels.tolist())
        for label in set(labels.tolist()):
            rows = int((labels == label).sum())
            assert abs(int((labels[held_out] == label).sum()) - share * rows) <= 1 + (rows == 1)


def test_the_test_rows_are_as_many_as_asked_for():
    """By classes, 10 rows of (7, 7, 6) are 3.5, 3.5 and 3; rounding must not lose any."""
    labels = torch.tensor([0] * 7 + [1] * 7 + [2] * 6)
    _, held_out = split_rows(10, 20, 0, labels)
    assert len(held_out) == 10
    assert torch.bincount(labels[held_out]).tolist() in ([4, 3, 3], [3, 4, 3])


def test_a_split_repeats_by_its_seed():
    labels = torch.arange(100) % 3
    for (_, one), (_, same), (_, other) in zip(both(0.3, labels), both(0.3, labels), both(0.3, labels, seed=1), strict=True):
        assert torch.equal(one, same)
        assert not torch.equal(one, other)


def test_the_rows_are_those_of_recorded_runs():
    """Runs that were recorded hold out these rows: another draw would train them on their own validation rows."""
    labels = torch.tensor([0] * 6 + [1] * 6)
    (_, test), (_, validation) = both(0.34, labels, seed=3)
    assert (test.tolist(), validation.tolist()) == (TEST, VALIDATION)
    assert split_validation(0.25, 8, seed=3)[1].tolist() == WITHOUT_LABELS


@pytest.mark.parametrize("seed", [-1, 2**32, 1.0, True])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(DataError, match="seed must be a whole number"):
        split_rows(1, 10, seed)


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, "0.2", True])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(DataError, match="test must be a share of the rows"):
        check_share("test", share)
