"""Training that diverges ends with a sentence, and never with weights that look like a result."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pluribus
from pluribus import Single
from pluribus.training.checkpoint_files import read_checkpoint, serialize_checkpoint
from pluribus.training.checkpoints import find_newest_checkpoint, list_checkpoints
from pluribus.training.lightning_module import Diverged

from ..networks import Masked

X, Y = torch.randn(16, 4), torch.arange(16) % 2
OPTIONS = {"optimizer": "sgd", "batch_size": 4, "progress": False}


def test_weights_that_break_in_the_last_step_are_no_result():
    """The loss of a step is computed before its update, so no loss is NaN."""
    ensemble = pluribus.ensemble(nn.Linear(4, 2), Single())
    with pytest.raises(Diverged, match=r"net\.(weight|bias) became NaN or infinite in the last steps; there is no checkpoint"):
        pluribus.fit(
            ensemble,
            (X, Y),
            epochs=1,
            lr=1e29,
            criterion=lambda o, t: 1e25 * F.cross_entropy(o, t),
            **OPTIONS | {"batch_size": 16},
        )


@pytest.fixture
def folder(tmp_path):
    """The checkpoints of two epochs."""
    pluribus.fit(pluribus.ensemble(nn.Linear(4, 2), Single()), (X, Y), epochs=2, lr=0.1, folder=tmp_path, **OPTIONS)
    assert len(list_checkpoints(tmp_path)) == 2
    return tmp_path


def spoil(path):
    state = read_checkpoint(path)
    next(iter(state["state_dict"].values())).view(-1)[0] = torch.inf
    path.write_bytes(serialize_checkpoint(state))


def resume(folder, **options):
    return pluribus.fit(
        pluribus.ensemble(nn.Linear(4, 2), Single()), (X, Y), epochs=3, lr=0.1, folder=folder, resume=True, **OPTIONS | options
    )


def test_a_run_goes_on_from_the_last_checkpoint_before_it_diverged(folder):
    newest, before = list_checkpoints(folder)
    spoil(newest)
    with pytest.warns(UserWarning, match=r"net\.weight holds NaN or infinite numbers in .*; going back to the one before"):
        assert find_newest_checkpoint(folder, pluribus.ensemble(nn.Linear(4, 2), Single())) == before
    with pytest.warns(UserWarning, match="going back"):
        assert [row["epoch"] for row in resume(folder)] == [1, 2, 3]


def test_a_run_whose_checkpoints_have_all_diverged_is_not_resumed(folder):
    for path in list_checkpoints(folder):
        spoil(path)
    with pytest.raises(Diverged, match=r"the run has diverged: net\.weight holds NaN or infinite numbers in .*Train anew"):
        resume(folder)


@pytest.mark.parametrize("key", ["state_dict", "pluribus"])
def test_a_checkpoint_that_lacks_a_part_is_no_checkpoint(key, folder):
    for path in list_checkpoints(folder):
        state = read_checkpoint(path)
        del state[key]
        path.write_bytes(serialize_checkpoint(state))
    if key == "pluribus":
        with pytest.raises(pluribus.FileError, match="is no checkpoint of a run, its epoch_loss"):
            resume(folder)
        return
    with pytest.warns(UserWarning, match="it has no weights"):
        assert find_newest_checkpoint(folder, pluribus.ensemble(nn.Linear(4, 2), Single())) is None


def test_a_mask_of_minus_infinity_is_no_divergence(tmp_path, recwarn):
    options = OPTIONS | {"lr": 0.1, "folder": tmp_path}
    pluribus.fit(pluribus.ensemble(Masked(), Single()), (X, Y), epochs=1, **options)
    history = pluribus.fit(pluribus.ensemble(Masked(), Single()), (X, Y), epochs=2, resume=True, **options)
    assert [row["epoch"] for row in history] == [1, 2]
    assert not [warning for warning in recwarn.list if "NaN" in str(warning.message)]
