"""Several processes take the steps of one: with BatchNorm, dropout, dealt rows and drawn members. In double, here with gloo."""

import pytest
import torch

from tests.training.shared_steps import CASES, train, train_in_two_processes

FAST = [name for name, case in CASES.items() if not case.slow]
SLOW = [name for name, case in CASES.items() if case.slow]


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """What two processes trained, by case. One start serves all cases."""
    return train_in_two_processes(tmp_path_factory.mktemp("shared") / "found.pt", FAST)


@pytest.fixture(scope="module")
def more_of_two_processes(tmp_path_factory):
    return train_in_two_processes(tmp_path_factory.mktemp("shared") / "found.pt", SLOW)


def check_same(found, case) -> None:
    history, state = train(case)
    for ours, theirs in zip(found[0], history, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-7)
    assert found[1].keys() == state.keys()
    torch.testing.assert_close(found[1], state, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", FAST)
def test_two_processes_have_the_losses_and_weights_of_one(name, two_processes):
    check_same(two_processes[name], CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_two_processes_have_the_losses_and_weights_of_one_with_every_method(name, more_of_two_processes):
    check_same(more_of_two_processes[name], CASES[name])


@pytest.mark.slow
def test_sharded_weights_are_those_of_one_process(tmp_path):
    names = ["batchnorm", "dropout and clipping", "mimo, both", "variational", "batch ensemble, own norms"]
    found = train_in_two_processes(tmp_path / "found.pt", names, strategy="fsdp")
    for name in names:
        check_same(found[name], CASES[name])
