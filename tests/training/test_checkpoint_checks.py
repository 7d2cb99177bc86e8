"""A checkpoint whose digest is right, and whose content is not what a run writes, is refused with a sentence."""

import pytest
import torch

import pluribus
from pluribus.core.errors import FileError
from pluribus.training.checkpoint_files import read_checkpoint, serialize_checkpoint


def train(folder, resume=False, net=None):
    torch.manual_seed(0)
    x = torch.randn(16, 4)
    made = pluribus.ensemble(net or torch.nn.Linear(4, 2), pluribus.BatchEnsemble(members=2))
    epochs = 2 if resume else 1
    return pluribus.fit(
        made,
        (x, (x[:, 0] > 0).long()),
        folder=folder,
        resume=resume,
        epochs=epochs,
        batch_size=8,
        progress=False,
        schedule="constant",
    )


def change(folder, *path, value):
    """Write another value into the newest checkpoint, with the digest that belongs to it."""
    file = max(folder.glob("step-*.safetensors"))
    state = inner = read_checkpoint(file)
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    file.write_bytes(serialize_checkpoint(state))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("global_step",), "two"),
        (("loops",), {"fit_loop": None}),
        (("pluribus",), 3),
        (("pluribus", "history"), [3]),
        (("pluribus", "epoch_loss"), []),
        (("optimizer_states",), [[]]),
        (("optimizer_states", 0, "param_groups", 0, "betas"), "x"),
        (("lr_schedulers",), [3]),
        (("state_dict", "ensemble.net.weight"), torch.zeros(3)),
    ],
    ids=str,
)
def test_a_checkpoint_of_wrong_content_is_refused(path, value, tmp_path):
    train(tmp_path)
    change(tmp_path, *path, value=value)
    with pytest.raises(FileError, match=r"checkpoint|cannot go on from"):
        train(tmp_path, resume=True)


def test_a_checkpoint_without_weights_is_skipped_with_a_warning(tmp_path):
    train(tmp_path)
    change(tmp_path, "state_dict", value=[1])
    with pytest.warns(UserWarning, match="has no weights"):
        history = train(tmp_path, resume=True)
    assert [row["epoch"] for row in history] == [1, 2]


def test_an_error_of_the_network_is_not_blamed_on_the_checkpoint(tmp_path):
    class Moody(torch.nn.Sequential):
        fails = False

        def forward(self, x):
            if self.fails and self.training:
                raise ZeroDivisionError("moody")
            return super().forward(x)

    train(tmp_path, net=Moody(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)))
    Moody.fails = True
    with pytest.raises(ZeroDivisionError, match="moody"):
        train(tmp_path, resume=True, net=Moody(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)))
