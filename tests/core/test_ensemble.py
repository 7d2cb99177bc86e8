"""The contract's corners: outputs, tasks, training in parallel, compilation."""

import os
import socket
from typing import NamedTuple

import pytest
import torch
import torch.multiprocessing
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pluribus
from pluribus import MIMO, BatchEnsemble, ConversionError, DeepEnsemble, Inner, Mixture, Single, Variance
from tests.contract_rows import METHODS
from tests.networks import NETWORKS, NestedMLP, ResidualCNN, images, vectors


class Many(nn.Module):
    def __init__(self, form) -> None:
        super().__init__()
        self.body = NestedMLP()
        self.form = form

    def forward(self, x):
        y = self.body(x)
        return self.form(y, y.detach() * 0)


class Pair(NamedTuple):
    logits: torch.Tensor
    extra: torch.Tensor


@pytest.mark.parametrize(
    ("form", "key"),
    [
        (lambda y, z: (y, z), 0),
        (lambda y, z: [z, y], 1),
        (lambda y, z: {"logits": y, "extra": z}, "logits"),
        (Pair, 0),
        (Pair, "logits"),
    ],
)
def test_the_output_that_is_meant_is_named(form, key):
    for spec in (BatchEnsemble(members=2), DeepEnsemble(2), MIMO(2), Single()):
        ensemble = pluribus.ensemble(Many(form), spec, output=key).eval()
        x = vectors(4)
        answers = ensemble(x)
        assert answers.shape == (ensemble.members, 4, 3)
        assert answers.abs().sum() > 0
        torch.testing.assert_close(ensemble.member(0)(x), answers[0])
        torch.testing.assert_close(ensemble.fold()(x), answers)


def test_a_network_may_return_more_in_training_than_in_evaluation():
    class Auxiliary(NestedMLP):
        def forward(self, x):
            y = super().forward(x)
            return (y, y * 0) if self.training else y

    ensemble = pluribus.ensemble(Auxiliary(), BatchEnsemble(members=2), output=0)
    assert ensemble.train()(vectors(5)).shape == ensemble.eval()(vectors(5)).shape == (2, 5, 3)


def test_there_must_be_a_target_for_every_row():
    for spec in (MIMO(2), BatchEnsemble(batches="split"), Single()):
        for count in (4, 12):
            with pytest.raises(ValueError, match="a target for each of 8 rows"):
                pluribus.ensemble(NestedMLP(), spec).loss(vectors(8), torch.zeros(count, dtype=torch.long))


def test_a_bad_batch_leaves_what_is_known():
    ensemble = pluribus.ensemble(NestedMLP(), Variance(samples=3), example=vectors(2)).eval()
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        ensemble(torch.randn(3, 9))
    assert ensemble.freeze()(vectors(4)).shape == (3, 4, 3)
    assert ensemble(vectors(4)).shape == (3, 4, 3)
    assert "could not be counted" in str(ensemble.describe(torch.randn(3, 9)))


def test_a_target_of_another_shape_is_refused():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3))), Single(), task="regression")
    with pytest.raises(ValueError, match="shape of the outputs"):
        ensemble.loss(torch.randn(5, 4), torch.randn(5, 3, 2))


def test_an_unnamed_output_is_an_error_that_names_the_choices():
    ensemble = pluribus.ensemble(Many(lambda y, z: {"logits": y, "extra": z}), BatchEnsemble(members=2))
    with pytest.raises(ConversionError, match="returns a dict with 'logits', 'extra': say which output is meant"):
        ensemble(vectors(4))
    ensemble = pluribus.ensemble(Many(lambda y, z: (y, z)), BatchEnsemble(members=2), output=5)
    with pytest.raises(ConversionError, match="no output 5"):
        ensemble(vectors(4))


def test_an_output_that_is_no_batch_is_an_error():
    class Scalar(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = NestedMLP()

        def forward(self, x):
            return self.body(x).mean()

    with pytest.raises(ConversionError, match="one row for each"):
        pluribus.ensemble(Scalar(), Single())(vectors(4))


@pytest.mark.parametrize("columns", [(), (1,), (2,)])
def test_regression(columns):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = NestedMLP(outputs=max(1, *columns, 1))

        def forward(self, x):
            y = self.body(x)
            return y if columns else y.squeeze(1)

    for spec in (BatchEnsemble(members=3), MIMO(3), Variance(samples=3)):
        ensemble = pluribus.ensemble(Net().double(), spec, task="regression")
        x, y = vectors(5, torch.double), torch.randn(5, *columns, dtype=torch.double)
        p = ensemble.predict(x)
        assert p.mean.shape == p.variance.shape == (5, *columns)
        torch.testing.assert_close(p.mean, p.outputs.mean(0))
        ensemble.loss(x, y).backward()
        if columns == (1,):  # a target [B] against an output [B, 1] must not become [B, B]
            torch.manual_seed(1)
            loss = ensemble.eval().loss(x, y)
            torch.manual_seed(1)
            torch.testing.assert_close(ensemble.loss(x, y.squeeze(1)), loss)
        with pytest.raises(AttributeError, match="only a classification has that"):
            _ = p.probs


def test_the_default_criterion_of_a_regression_is_the_squared_error():
    ensemble = pluribus.ensemble(NestedMLP(2).double(), DeepEnsemble(3), task="regression")
    x, y = vectors(5, torch.double), torch.randn(5, 2, dtype=torch.double)
    expected = sum(nn.functional.mse_loss(output, y) for output in ensemble(x))
    torch.testing.assert_close(ensemble.loss(x, y), expected)


def test_one_logit_is_a_yes_or_no():
    ensemble = pluribus.ensemble(NestedMLP(1), BatchEnsemble(members=2))
    x, y = vectors(6), torch.arange(6) % 2
    loss = ensemble.eval().loss(x, y)
    expected = nn.functional.binary_cross_entropy_with_logits(ensemble(x).squeeze(2), y.float().expand(2, 6))
    torch.testing.assert_close(loss, expected)
    p = ensemble.predict(x)
    assert p.probs.shape == (6, 2)
    torch.testing.assert_close(p.probs[:, 1], torch.sigmoid(ensemble(x)).mean(0).squeeze(1))
    flat = pluribus.ensemble(nn.Sequential(nn.Flatten(), nn.Linear(12, 1), nn.Flatten(0)), BatchEnsemble(members=2))
    flat.loss(x, y).backward()
    assert flat.predict(x).probs.shape == (6, 2)


def test_a_criterion_of_ones_own_is_used_for_each_member():
    ensemble = pluribus.ensemble(NestedMLP(), DeepEnsemble(2)).eval()
    x, y = vectors(6), torch.arange(6) % 3
    smooth = nn.CrossEntropyLoss(label_smoothing=0.1)
    torch.testing.assert_close(ensemble.loss(x, y, smooth), sum(smooth(output, y) for output in ensemble(x)))


def test_segmentation_keeps_its_places():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 1))
    ensemble = pluribus.ensemble(net, BatchEnsemble(members=2))
    x, y = images(3), torch.randint(0, 4, (3, 6, 6))
    ensemble.loss(x, y).backward()
    p = ensemble.predict(x)
    assert p.probs.shape == (3, 4, 6, 6)
    assert p.labels.shape == p.entropy.shape == p.disagreement.shape == p.nll(y).shape == (3, 6, 6)


def test_predicting_in_parts_changes_nothing_and_leaves_the_mode():
    ensemble = pluribus.ensemble(ResidualCNN(), BatchEnsemble(members=2)).train()
    x = images(7)
    whole = ensemble.predict(x)
    torch.testing.assert_close(ensemble.predict(x, batch_size=2).outputs, whole.outputs)
    assert ensemble.training
    assert not whole.outputs.requires_grad


class SmallCNN(nn.Sequential):
    """A network that compiles quickly: two convolutions, of which one is normalised."""

    def __init__(self) -> None:
        first = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU()
        super().__init__(*first, nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))


class SmallMLP(nn.Sequential):
    """Another one: two hidden layers of the same shape."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3))


COMPILED = ("variance", "mimo", "mixture")
"""Three ways to compile: weights that are drawn, inputs and heads, weights that are mixed. The other methods are slow."""
ALSO_COMPILED = [name for name in METHODS if name not in (*COMPILED, "deep-mimo", "deep-variance", "variance-uniform")]


@pytest.mark.parametrize("name", [*COMPILED, *(pytest.param(name, marks=pytest.mark.slow) for name in ALSO_COMPILED)])
def test_it_compiles(name):
    spec = METHODS[name].spec
    convolves = name in ("batch-ensemble-split", "inner", "mimo", "treenet")  # BatchNorm of members' own, and shared
    net, x = (SmallCNN(), images(4)) if convolves else (SmallMLP(), vectors(4))
    ensemble = pluribus.ensemble(net, spec).eval()
    ensemble(x)
    torch._dynamo.reset()
    compiled = torch.compile(ensemble, backend="aot_eager")
    torch.manual_seed(0)
    expected = ensemble(x)
    torch.manual_seed(0)
    answer = compiled(x)
    assert answer.shape == expected.shape
    if not any(getattr(module, "sampled", False) for module in ensemble.modules()):
        torch.testing.assert_close(answer, expected)
    compiled.train()
    views, targets = ensemble.deal(x, torch.arange(4) % 3)
    ensemble.objective(compiled(views), targets, examples=10).backward()


@pytest.mark.slow
def test_it_compiles_to_machine_code():
    ensemble = pluribus.ensemble(ResidualCNN(), BatchEnsemble(members=3)).eval()
    x = images(4)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(ensemble)(x), ensemble(x), rtol=1e-4, atol=1e-5)


def test_it_can_be_part_of_another_module():
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = pluribus.ensemble(NestedMLP(), Mixture(members=2, parameters=2.0))

        def forward(self, x):
            return self.inner(x).mean(0)

    outer, other = Outer().eval(), Outer().eval()
    assert not torch.equal(outer(vectors(3)), other(vectors(3)))
    other.load_state_dict(outer.state_dict())
    x = vectors(3)
    assert torch.equal(outer(x), other(x))


# --- several processes ---------------------------------------------------------------------------------------------


def _train_all(rank: int, port: int, pairs: list[tuple[str, str]], results) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    try:
        for name, network in pairs:
            results[rank, name, network] = _train(rank, name, network)
    finally:
        torch.distributed.destroy_process_group()


def _train(rank: int, name: str, network: str) -> list[float]:
    torch.manual_seed(0)
    make, data = NETWORKS[network]
    ensemble = pluribus.ensemble(make(), METHODS[name].spec).train()
    parallel = DistributedDataParallel(ensemble)
    optimizer = torch.optim.SGD(ensemble.param_groups(), lr=0.1)
    torch.manual_seed(10 + rank)
    for _ in range(3):
        x, y = data(4), torch.randint(0, 3, (4,))
        views, targets = ensemble.deal(x, y)
        loss = ensemble.objective(parallel(views), targets, examples=100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [p.detach().double().sum().item() for p in ensemble.parameters()]


PARALLEL = [
    ("inner", "residual"),
    ("variance", "mlp"),
    ("variational", "mlp"),
    ("mimo", "residual"),
    ("mixture", "residual"),
    ("batch-ensemble-split", "residual"),
    ("treenet", "transformer"),
    ("deep-mimo", "mlp"),
    ("inner", "mlp"),
]


@pytest.fixture(scope="module")
def two_processes() -> dict:
    """The parameters' sums after training in two processes: by rank, method and network. One start serves all pairs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with torch.multiprocessing.Manager() as manager:
        results = manager.dict()
        # Forked processes need not import torch again, which takes seconds.
        torch.multiprocessing.start_processes(_train_all, (port, PARALLEL, results), nprocs=2, start_method="fork")
        return dict(results)


def test_it_trains_in_two_processes(two_processes):
    for name, network in PARALLEL:  # the same weights, though each process had data of its own
        assert two_processes[0, name, network] == two_processes[1, name, network], name


def test_in_two_processes_it_takes_the_step_of_one_with_the_whole_batch(two_processes):
    """Without BatchNorm, averaging gradients over processes is the gradient of the whole batch."""
    together = two_processes[0, "inner", "mlp"]
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(NestedMLP(), METHODS["inner"].spec).train()
    optimizer = torch.optim.SGD(ensemble.param_groups(), lr=0.1)
    generators = [torch.Generator().manual_seed(10 + rank) for rank in range(2)]
    for _ in range(3):
        batches = [(torch.randn(4, 3, 2, 2, generator=g), torch.randint(0, 3, (4,), generator=g)) for g in generators]
        optimizer.zero_grad()
        ensemble.loss(torch.cat([x for x, _ in batches]), torch.cat([y for _, y in batches])).backward()
        optimizer.step()
    alone = [p.detach().double().sum().item() for p in ensemble.parameters()]
    assert together == pytest.approx(alone, abs=1e-4)


def test_the_penalty_of_a_method_without_one_is_zero():
    assert pluribus.ensemble(NestedMLP(), Inner()).penalty() == 0
