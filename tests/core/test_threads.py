"""Several threads may use one ensemble at once: every answer is the serial one, and nobody changes anybody's mode."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.nn.modules.module import _global_forward_pre_hooks

import pluribus
from pluribus import MIMO, BatchEnsemble
from pluribus.core.branching import Expand
from pluribus.core.flop_counting import FlopCounter
from tests.contract_rows import METHODS
from tests.networks import ResidualCNN, images

CALLS, THREADS, SIZES = 800, 8, (32, 64)
BESIDE = ("inner", "variance", "mimo", "mixture", "batch-ensemble-split", "treenet", "mc-dropout", "deep")
"""One of each kind: weights averaged, drawn, mixed, scaled or copied; inputs and heads; masks; whole networks."""


def prepare(name: str) -> pluribus.Ensemble:
    """The method on a small network with BatchNorm and a skip connection; draws are fixed, so that answers can be compared."""
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(ResidualCNN(), METHODS[name].spec, example=images(2)).eval()
    has_noise = any(isinstance(part, pluribus.Ensemble) and part.sampled for part in ensemble.modules())
    return ensemble.freeze() if has_noise and name != "variational-mean" else ensemble


def count_wrong(ensemble: pluribus.Ensemble, calls: int) -> int:
    """How many of `calls` predictions by eight threads differ from the serial answer to the same batch."""
    batches = [images(size) for size in SIZES]
    serial = [ensemble.predict(x).outputs for x in batches]

    def predict(call: int) -> bool:
        which = call % len(batches)
        return torch.equal(ensemble.predict(batches[which]).outputs, serial[which])

    with ThreadPoolExecutor(THREADS) as pool:
        return calls - sum(pool.map(predict, range(calls)))


@pytest.fixture(autouse=True)
def _one_kernel_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", METHODS)
def test_eight_threads_with_mixed_batches_get_the_serial_answers(name):
    assert count_wrong(prepare(name), CALLS // len(METHODS) + 1) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_eight_threads_get_the_serial_answers_800_times(name):
    assert count_wrong(prepare(name), CALLS) == 0


@pytest.mark.parametrize("name", [name if name in BESIDE else pytest.param(name, marks=pytest.mark.slow) for name in METHODS])
def test_predictions_beside_a_training_loop_leave_it_in_training_mode(name):
    """The loop trains with a learning rate of zero and frozen statistics, so that the right answers stay the same."""
    ensemble = prepare(name).train()
    for module in ensemble.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 0.0
    optimizer = torch.optim.SGD(ensemble.param_groups(), lr=0.0)
    stop, modes, errors = threading.Event(), [], []

    def train() -> None:
        x, y = images(8), torch.arange(8) % 3
        try:
            while not stop.is_set():
                optimizer.zero_grad()
                ensemble.loss(x, y, examples=100).backward()
                optimizer.step()
                modes.append(all(module.training for module in ensemble.modules()))
        except Exception as error:
            errors.append(error)

    loop = threading.Thread(target=train)
    loop.start()
    try:
        assert count_wrong(ensemble, 2 * THREADS) == 0
    finally:
        stop.set()
        loop.join()
    assert not errors
    assert modes
    assert all(modes)
    assert ensemble.training


def test_a_new_search_beside_other_threads_changes_nothing_for_them():
    """A search on another kind of batch gives converted layers noise, hooks and other plans: on a copy only."""
    ensemble = prepare("batch-ensemble")
    x = images(32)
    serial, stop = ensemble.predict(x).outputs, threading.Event()

    def search() -> None:
        while not stop.is_set():
            ensemble.executor.search(ensemble, images(4))

    thread = threading.Thread(target=search)
    thread.start()
    try:
        assert all(torch.equal(ensemble.predict(x).outputs, serial) for _ in range(50))
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("spec", [BatchEnsemble(3), MIMO(3)], ids=str)
def test_the_first_passes_may_come_at_once(spec):
    ensemble = pluribus.ensemble(ResidualCNN(), spec).eval()
    x = images(16)
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda _: ensemble.predict(x).outputs, range(16)))
    assert all(torch.equal(answer, answers[0]) for answer in answers)


def test_threads_that_search_at_once_keep_one_plan_and_one_hook():
    """The search of this network ends with a hook on a block: two of them would expand the batch twice."""
    ensemble = pluribus.ensemble(ResidualCNN(), BatchEnsemble(3, include="blocks.*")).eval()
    gate, x = threading.Barrier(THREADS), images(4)

    def search(_: int) -> object:
        gate.wait()
        return ensemble.executor.prepare(ensemble, x)

    with ThreadPoolExecutor(THREADS) as pool:
        plans = list(pool.map(search, range(THREADS)))
    assert all(plan is ensemble.executor.plan for plan in plans)
    hooks = [hook for module in ensemble.modules() for hook in module._forward_pre_hooks.values() if isinstance(hook, Expand)]
    assert ensemble.executor.plan.branch.kind == "module"
    assert len(hooks) == 1


def test_counting_flops_puts_no_hook_on_the_modules_of_other_threads():
    before = len(_global_forward_pre_hooks)
    with FlopCounter() as counter:
        assert len(_global_forward_pre_hooks) == before
        torch.nn.Linear(4, 3)(torch.randn(2, 4))
    assert counter.get_total_flops() == 2 * 2 * 4 * 3
