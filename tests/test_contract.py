"""The contract, for every method on every kind of network. A new method adds one row to `contract_rows.py`."""

import copy
import warnings
from functools import cache

import pytest
import torch
from torch import nn

import pluribus
from pluribus import Unsupported, VariationalDropout
from pluribus.core import execution
from pluribus.core.members import MemberLayer
from pluribus.core.passes import Branch, Probe
from pluribus.core.taking_apart import OPENED, take_apart

from .contract_rows import FEW_PAIRS, METHODS, PAIRS, SOME_PAIRS, Row, check_same_averages, on
from .networks import CLASSES, NETWORKS

EXAMPLES = 100


@pytest.fixture
def row(request) -> Row:
    return METHODS[request.param]


@pytest.fixture
def case(request):
    network, data = NETWORKS[request.param]
    return network(), data


@pytest.fixture
def trained(request, row):
    return convert_trained(row.spec, request.param)


@cache
def convert_trained(spec: pluribus.Spec, network: str) -> tuple[nn.Module, pluribus.Ensemble, torch.Tensor]:
    """A network with running statistics in double precision, its ensemble, and five rows. Tests only read them."""
    torch.manual_seed(0)
    build, data = NETWORKS[network]
    net = warm(build(), data).double().eval()
    return net, pluribus.ensemble(net, spec).eval(), data(5, torch.double)


def stochastic(ensemble: pluribus.Ensemble) -> bool:
    return any(getattr(module, "sampled", False) for module in ensemble.modules())


def warm(net: nn.Module, data) -> nn.Module:
    """Running statistics that are not the initial ones, as a trained network has."""
    net.train()
    for _ in range(3):
        net(data(16) if data.__name__ == "tokens" else data(16) * 2 + 1)
    return net


SIZES = (5, 1, 2, 3)  # more rows than members; one; fewer than M; as many as M


@on(SOME_PAIRS, slow=PAIRS)
def test_the_members_answer_together(row, case):
    """Batches of any size."""
    net, data = case
    ensemble = pluribus.ensemble(net, row.spec).eval()
    for size in SIZES:
        assert ensemble(data(size)).shape == (row.members, size, CLASSES)
    p = ensemble.predict(data(5))
    assert p.probs.shape == (5, CLASSES)
    torch.testing.assert_close(p.probs.sum(1), torch.ones(5))
    assert p.outputs.shape == (ensemble.members, 5, CLASSES)
    assert pluribus.ensemble(net, row.spec).eval()(data(1)).shape == (row.members, 1, CLASSES)  # also as the first


@on(FEW_PAIRS, slow=SOME_PAIRS)
def test_any_batch_size_trains(row, case):
    net, data = case
    ensemble = pluribus.ensemble(net, row.spec).train()
    for size in SIZES:
        loss = ensemble.loss(data(size), torch.arange(size) % CLASSES, examples=EXAMPLES)
        loss.backward()
        assert loss.isfinite()


@on(PAIRS, "trained")
def test_a_row_is_answered_the_same_in_any_company(row, trained):
    _, ensemble, x = trained
    if stochastic(ensemble):
        pytest.skip("its draws differ from pass to pass")
    whole = ensemble(x)
    torch.testing.assert_close(torch.cat([ensemble(x[:1]), ensemble(x[1:])], 1), whole, rtol=0, atol=1e-10)
    torch.testing.assert_close(ensemble.predict(x, batch_size=3).outputs, whole, rtol=0, atol=1e-10)


@on(FEW_PAIRS, slow=SOME_PAIRS)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_averages_without_members_are_those_of_the_members(row, case, task, monkeypatch):
    """Both ways draw the same noise, also where so few numbers are allowed that draws run in groups."""
    net, data = case
    ensemble = pluribus.ensemble(net.double(), row.spec, task=task, example=data(2, torch.double))
    x = data(7, torch.double)
    for most in (execution.CHUNK_SIZE, 64):
        monkeypatch.setattr(execution, "CHUNK_SIZE", most)
        torch.manual_seed(1)
        full = ensemble.predict(x, batch_size=3)
        torch.manual_seed(1)
        short = ensemble.predict(x, batch_size=3, members=False)
        assert (len(short), short.count) == (7, row.members)
        check_same_averages(short, full)


@on(SOME_PAIRS, slow=PAIRS)
def test_a_gradient_reaches_every_parameter(row, case):
    net, data = case
    ensemble = pluribus.ensemble(net, row.spec).train()
    optimizer = torch.optim.SGD(ensemble.param_groups(), lr=1e-3)
    for _ in range(4):  # dead units and unlucky draws hide a gradient now and then, and so does a factor that starts as zero
        ensemble.loss(data(8), torch.randint(0, CLASSES, (8,)), examples=EXAMPLES).backward()
        optimizer.step()
    for name, parameter in ensemble.named_parameters():
        if not parameter.requires_grad:
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0 or never_sees_data(name), name


def never_sees_data(name: str) -> bool:
    # A third of the first is the bias of the keys, which moves all scores of a query alike; the second is how far apart the
    # copies of a lean inner ensemble are, which the optimiser alone moves.
    return name.endswith(("in_proj_bias", "spread"))


@on(FEW_PAIRS, slow=SOME_PAIRS)
def test_the_callers_network_stays_untouched(row, case):
    net, data = case
    before = copy.deepcopy(net.state_dict())
    modules = [(name, id(module), module.training) for name, module in net.named_modules()]
    ensemble = pluribus.ensemble(net, row.spec, example=data(2))
    optimizer = torch.optim.SGD(ensemble.param_groups(), lr=0.1)
    for _ in range(2):
        ensemble.loss(data(6), torch.randint(0, CLASSES, (6,)), examples=EXAMPLES).backward()
        optimizer.step()
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert modules == [(name, id(module), module.training) for name, module in net.named_modules()]
    assert all(not module._forward_pre_hooks for module in net.modules())
    assert all(parameter.grad is None for parameter in net.parameters())


@on(FEW_PAIRS, slow=SOME_PAIRS)
def test_training_reduces_the_loss(row, case):
    net, data = case
    ensemble = pluribus.ensemble(net, row.spec).train()
    x, y = data(24), torch.arange(24) % CLASSES
    optimizer = torch.optim.Adam(ensemble.param_groups(), lr=0.01)
    losses = []
    while len(losses) < 10 or sum(losses[-5:]) >= 0.9 * sum(losses[:5]):
        assert len(losses) < 120, "most take 20 steps; weights without means, which learn by their noise, up to 80"
        loss = ensemble.loss(x, y, examples=100_000)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


@on(FEW_PAIRS, slow=SOME_PAIRS)
def test_saved_and_loaded_it_answers_the_same(row, case, tmp_path):
    net, data = case
    ensemble = pluribus.ensemble(warm(net, data), row.spec, example=data(2)).eval()
    path = pluribus.save(ensemble, tmp_path / "ensemble")
    torch.manual_seed(99)
    again = pluribus.load(path, type(net)()).eval()
    x = data(5)
    torch.manual_seed(1)
    expected = ensemble(x)
    torch.manual_seed(1)
    assert torch.equal(again(x), expected)


@on(FEW_PAIRS, slow=SOME_PAIRS)
def test_a_seed_repeats(row, case):
    net, data = case
    x, y = data(6), torch.arange(6) % CLASSES

    def run() -> list[torch.Tensor]:
        torch.manual_seed(7)
        ensemble = pluribus.ensemble(net, row.spec).train()
        loss = ensemble.loss(x, y, examples=EXAMPLES)
        return [loss, ensemble.eval()(x), ensemble(x)]

    assert all(torch.equal(a, b) for a, b in zip(run(), run(), strict=True))


@on(FEW_PAIRS, slow=SOME_PAIRS)
def test_finding_the_branch_uses_up_no_random_number(row, case):
    net, data = case
    x = data(4)
    ensemble = pluribus.ensemble(net, row.spec)
    torch.manual_seed(3)
    first = ensemble(x)
    torch.manual_seed(3)
    torch.testing.assert_close(ensemble(x), first)


@on(PAIRS, "trained")
def test_folding_leaves_every_prediction_unchanged(row, trained):
    _, ensemble, x = trained
    if not row.folds:
        with pytest.raises(Unsupported, match="no "):
            ensemble.fold()
        return
    expected = ensemble(x)
    folded = ensemble.fold()
    assert not any(isinstance(module, pluribus.core.members.Converted) for module in folded.modules())
    torch.testing.assert_close(folded(x), expected, rtol=0, atol=1e-10)


@on(PAIRS, "trained")
def test_a_member_is_a_plain_network(row, trained):
    _, ensemble, x = trained
    if not row.plain_members:
        with pytest.raises(Unsupported, match="no "):
            ensemble.member(0)
        return
    expected = ensemble(x)
    for index in range(row.members):
        member = ensemble.member(index)
        assert not any(isinstance(module, pluribus.core.members.Converted) for module in member.modules())
        torch.testing.assert_close(member(x), expected[index], rtol=0, atol=1e-10)
    with pytest.raises(IndexError):
        ensemble.member(row.members)


@on(PAIRS, "trained")
def test_a_trained_network_is_kept_as_promised(row, trained):
    net, ensemble, x = trained
    before = net(x)
    keeps = row.spec.get_keeps()
    if keeps == "predictions":
        torch.testing.assert_close(ensemble(x), before.expand(row.members, *before.shape), rtol=0, atol=1e-10)
    if keeps == "member 0":
        torch.testing.assert_close(ensemble(x)[0], before, rtol=0, atol=1e-10)
    if isinstance(row.spec, VariationalDropout):
        answering = pluribus.ensemble(net, row.spec).eval()
        answering.answer = "mean"
        torch.testing.assert_close(answering(x)[0], before, rtol=0, atol=1e-10)
    mine = list(ensemble.parameters())
    changed = [change.name for change in ensemble.conversion.changes] if keeps == "other layers" else []
    opened = any(isinstance(module, OPENED) for module in ensemble.modules())
    for name, parameter in (take_apart(net, row.spec.get_takes_apart()) if opened else net).named_parameters():
        bias = name.endswith("bias")  # may be there once for each member
        if keeps in ("weights", "other layers") and not any(name.startswith(part) for part in changed):
            assert any(torch.equal(p, parameter) or (bias and torch.equal(p[0], parameter)) for p in mine if p.dim()), name


@on(SOME_PAIRS, slow=PAIRS)
def test_late_branching_equals_branching_at_the_input(row, case):
    """Also with noise: a probe makes the n-th draw of a pass the same however the pass is run."""
    net, data = case
    ensemble = pluribus.ensemble(warm(net, data).double(), row.spec).eval()
    x = data(5, torch.double)
    ensemble(x)
    parts = [part for part in ensemble.modules() if isinstance(part, pluribus.Ensemble)]
    parts = [part for part in parts if part.executor.plan.branch.kind != "apart"]
    if all(part.executor.plan.branch.kind == "none" for part in parts):
        assert not any(isinstance(module, MemberLayer) for module in ensemble.modules())
        pytest.skip("its members do not differ in any layer")
    for part in parts:
        plan = part.executor.plan
        assert plan.branch.kind in ("layer", "module", "input")
        late = part.executor.run_plan(part, x, plan, Probe(part.members))
        early = part.executor.keep_branch(part, Branch("input"))
        torch.testing.assert_close(late, part.executor.run_plan(part, x, early, Probe(part.members)), rtol=0, atol=1e-10)


@on(SOME_PAIRS, slow=PAIRS)
def test_frozen_draws_repeat_and_their_members_are_plain(row, case, tmp_path):
    net, data = case
    x = data(5, torch.double)
    ensemble = pluribus.ensemble(net.double(), row.spec, example=x).eval()
    if not stochastic(ensemble):
        with pytest.raises(Unsupported, match="fixed already"):
            ensemble.freeze()
        return
    frozen = ensemble.freeze()
    answers = frozen(x)
    assert answers.shape == (row.members, 5, CLASSES)
    assert torch.equal(frozen(x), answers)
    torch.testing.assert_close(frozen(x[:2]), answers[:, :2], rtol=0, atol=1e-10)
    if row.members > 1:
        assert not torch.equal(ensemble(x), ensemble(x))  # the original goes on drawing
        assert not torch.allclose(answers[0], answers[1])
        torch.testing.assert_close(frozen.fold()(x), answers, rtol=0, atol=1e-10)
    for index in range(row.members):
        torch.testing.assert_close(frozen.member(index)(x), answers[index], rtol=0, atol=1e-10)
        with torch.no_grad():
            torch.testing.assert_close(frozen.member(index)(x), answers[index], rtol=0, atol=1e-10)
    again = pluribus.load(pluribus.save(frozen, tmp_path / "frozen"), net).eval()
    torch.testing.assert_close(again(x), answers, rtol=0, atol=1e-12)


@on(FEW_PAIRS, slow=SOME_PAIRS)
def test_it_can_be_copied(row, case):
    net, data = case
    ensemble = pluribus.ensemble(net, row.spec).eval()
    x = data(4)
    ensemble(x)
    twin = copy.deepcopy(ensemble)
    torch.manual_seed(5)
    expected = ensemble(x)
    torch.manual_seed(5)
    assert torch.equal(twin(x), expected)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    torch.manual_seed(5)
    assert torch.equal(ensemble(x), expected)


@on(FEW_PAIRS, slow=SOME_PAIRS)
def test_it_describes_itself(row, case):
    net, data = case
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        description = pluribus.ensemble(net, row.spec).describe(data(2))
    assert description.parameters == sum(p.numel() for p in pluribus.ensemble(net, row.spec).parameters())
    assert description.base_parameters == sum(p.numel() for p in net.parameters())
    assert description.flops > 0
    assert description.base_flops > 0
    assert type(row.spec).__name__ in str(description)


@on(FEW_PAIRS, slow=SOME_PAIRS)
def test_the_dtype_follows_the_network(row, case):
    net, data = case
    dtype = torch.bfloat16
    ensemble = pluribus.ensemble(net.to(dtype), row.spec)
    assert {p.dtype for p in ensemble.parameters()} == {dtype}
    x = data(6)
    x = x.to(dtype) if x.is_floating_point() else x
    ensemble.loss(x, torch.arange(6) % CLASSES, examples=EXAMPLES).backward()
    answer = ensemble.eval()(x)
    assert answer.dtype == dtype
    assert answer.isfinite().all()
