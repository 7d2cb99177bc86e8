"""What a user's network may do, and what is left alone: hooks, in-place changes, errors, its own class and state."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pluribus
from pluribus import MIMO, BatchEnsemble, DeepEnsemble, Inner, LowRank, MCDropout, Mixture, Multihead, Single, TreeNet, Variance
from tests.contract_rows import METHODS
from tests.networks import NestedMLP, ResidualCNN, images, vectors

FIXED = ["single", "inner", "mimo", "mixture", "batch-ensemble", "treenet", "multihead", "deep", "deep-inner", "deep-mimo"]


@pytest.mark.parametrize("name", FIXED)
def test_a_member_answers_b_by_c_and_a_folded_ensemble_m_by_b_by_c(name):
    ensemble = pluribus.ensemble(ResidualCNN().double(), METHODS[name].spec).eval()
    x = images(5).double()
    answers = ensemble(x)
    assert ensemble.member(0)(x).shape == (5, 3)
    if METHODS[name].folds:
        folded = ensemble.fold()(x)
        assert folded.shape == (METHODS[name].members, 5, 3)
        torch.testing.assert_close(folded, answers, rtol=0, atol=1e-10)
        torch.testing.assert_close(pluribus.Predictive(folded).probs, ensemble.predict(x).probs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("spec", [Inner(3, include="*"), Inner(3, fold="inverse-variance"), Single()], ids=str)
@pytest.mark.parametrize("output", [None, "logits"])
def test_the_member_of_one_network_is_the_users_own_class_and_its_state_loads_there(spec, output):
    class Named(NestedMLP):
        def forward(self, x):
            return super().forward(x) if output is None else {"logits": super().forward(x), "extra": x}

    ensemble = pluribus.ensemble(Named(), spec, output=output).eval()
    member, mine, x = ensemble.member(0), Named().eval(), vectors(4)
    assert type(member) is Named
    mine.load_state_dict(member.state_dict())
    answer = mine(x)
    torch.testing.assert_close(member(x), answer if output is None else answer["logits"])


# --- hooks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        *(
            Inner(2),
            BatchEnsemble(2),
            LowRank(2),
            Mixture(2),
            Variance(samples=3, include="0"),
            MCDropout(samples=3, include="0"),
        ),
        *(DeepEnsemble(2), DeepEnsemble(2, stacked=True), TreeNet(2, split="0"), MIMO(2), Multihead(2, last="4")),
    ],
    ids=str,
)
def test_a_forward_hook_on_a_converted_layer_runs_in_predict_and_in_members(spec):
    calls = []
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    for layer in net:
        layer.register_forward_hook(lambda module, args, output: calls.append(output.shape[-1]) or output * 2)
    base, x = net.eval()(torch.ones(1, 4)), torch.ones(1, 4)
    ensemble = pluribus.ensemble(net, spec).eval()
    calls.clear()
    answers = ensemble.predict(x).outputs
    assert set(calls) == {8, 3}
    if ensemble.count_plain_members():
        torch.testing.assert_close(ensemble.member(0)(x), answers[0])
    if spec.get_keeps() in ("predictions", "member 0"):
        torch.testing.assert_close(answers[0], base)


def test_a_hook_may_change_what_enters_a_converted_layer():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    net[2].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    x = torch.randn(5, 4)
    torch.testing.assert_close(pluribus.ensemble(net, Inner(2)).predict(x).outputs[0], net.eval()(x))


# --- changes in place ----------------------------------------------------------------------------------------------


class InPlace(nn.Module):
    """Changes its input, and keeps the batch on the second axis inside, so that members run one after the other."""

    def __init__(self, transposes: bool) -> None:
        super().__init__()
        self.first, self.last, self.transposes = nn.Linear(4, 8), nn.Linear(8, 3), transposes

    def forward(self, x):
        x.mul_(3).sub_(1)
        h = self.first(x)
        h = h - h.mean(0) if self.transposes else h
        return self.last(torch.relu(h))


@pytest.mark.parametrize("transposes", [False, True])
@pytest.mark.parametrize("spec", [BatchEnsemble(3), DeepEnsemble(3), DeepEnsemble(2, of=Inner(2)), MIMO(2)], ids=str)
def test_a_network_that_changes_its_input_gives_the_right_members_and_leaves_the_callers_rows(spec, transposes):
    if isinstance(spec, MIMO) and transposes:
        pytest.skip("it cannot merge a network that mixes rows")
    ensemble = pluribus.ensemble(InPlace(transposes).double(), spec).eval()
    x = torch.randn(5, 4, dtype=torch.double)
    before = x.clone()
    answers = ensemble(x)
    assert torch.equal(x, before)
    torch.testing.assert_close(ensemble.predict(x).outputs, answers)
    for index in range(ensemble.members):
        torch.testing.assert_close(ensemble.member(index)(x.clone()), answers[index], rtol=0, atol=1e-10)
    assert torch.equal(x, before)


# --- errors --------------------------------------------------------------------------------------------------------


class Failing(NestedMLP):
    """Raises what it is given, and counts how often it was run."""

    error: BaseException | None = None
    runs = 0

    def forward(self, x):
        self.runs += 1
        if self.error is not None:
            raise self.error
        return super().forward(x)


OWN_ERRORS = [
    RuntimeError("my own"),
    ValueError("no"),
    KeyError("k"),
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory"),
]


@pytest.mark.parametrize("error", OWN_ERRORS, ids=repr)
@pytest.mark.parametrize("spec", [BatchEnsemble(2), MCDropout(samples=2), MIMO(2), Single()], ids=str)
def test_an_error_of_the_users_network_is_raised_at_once_and_untouched(spec, error):
    ensemble = pluribus.ensemble(Failing(), spec, example=vectors(2)).eval()
    plan = ensemble.executor.plan
    ensemble.net.runs, ensemble.net.error = 0, error
    with pytest.raises(type(error)) as caught:
        ensemble(vectors(4))
    assert caught.value is error
    assert not getattr(error, "__notes__", [])
    assert ensemble.net.runs == 1, "it is not run again"
    assert ensemble.executor.plan is plan


def test_rows_of_another_size_show_the_networks_own_error():
    ensemble = pluribus.ensemble(NestedMLP(), MCDropout(samples=2), example=vectors(2)).eval()
    with pytest.raises(RuntimeError, match="mat1 and mat2") as caught:
        ensemble(torch.randn(3, 9))
    assert not getattr(caught.value, "__notes__", [])


# --- loaders -------------------------------------------------------------------------------------------------------


def test_predict_takes_a_loader():
    ensemble = pluribus.ensemble(NestedMLP(), BatchEnsemble(2))
    x = vectors(10)
    whole = ensemble.predict(x).outputs
    for rows in (TensorDataset(x, torch.zeros(10)), TensorDataset(x)):
        torch.testing.assert_close(ensemble.predict(DataLoader(rows, batch_size=4)).outputs, whole)
    torch.testing.assert_close(ensemble.predict(iter([x[:3], x[3:]])).outputs, whole)


def test_modules_that_a_network_keeps_in_plain_lists_are_in_evaluation_mode_in_predict():
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.head = nn.Linear(4, 8), nn.Dropout(0.9), nn.Linear(8, 3)
            self.steps = [self.a, self.b]
            self.last = self.head.forward

        def forward(self, x):
            for step in self.steps:
                x = step(x)
            return self.last(x)

    net = Listed()
    ensemble = pluribus.ensemble(net, Single()).train()
    x = torch.randn(5, 4)
    torch.testing.assert_close(ensemble.predict(x).outputs[0], net.eval()(x))
    assert ensemble.training


def test_predict_follows_every_change_of_the_network():
    """The copy that predictions run on is kept, but never stale: weights, attributes, children, modules in lists."""

    class Free(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head, self.factor, self.more = nn.Linear(4, 8), nn.Linear(8, 3), 1.0, [nn.Identity()]

        def forward(self, x):
            for module in self.more:
                x = module(x)
            return self.head(torch.relu(self.body(x))) * self.factor

    ensemble = pluribus.ensemble(Free(), Single()).eval()
    x = torch.randn(5, 4)

    def check() -> None:
        torch.testing.assert_close(ensemble.predict(x).outputs[0], ensemble.net(x).detach())

    check()
    ensemble.net.factor = 3.0
    check()
    ensemble.net.head = nn.Linear(8, 3)
    check()
    ensemble.net.body.weight.data.mul_(2)
    check()
    ensemble.net.body.weight = nn.Parameter(torch.ones(8, 4))
    check()
    ensemble.net.more.append(nn.Tanh())
    check()
    ensemble.net.register_buffer("extra", torch.ones(2))
    check()
    ensemble.double()
    x = x.double()
    check()
    ensemble.net.head.register_forward_hook(lambda module, args, output: output + 1)
    check()


@pytest.mark.parametrize("training", [False, True])
def test_weights_that_a_layer_computed_are_not_stale_in_predict(training):
    ensemble = pluribus.ensemble(nn.Linear(4, 3), Inner(3)).train(training)
    x = torch.randn(5, 4)
    before = ensemble.predict(x).outputs
    with torch.no_grad():
        ensemble.net.weights.mul_(2)
        ensemble.net.biases.mul_(2)
    torch.testing.assert_close(ensemble.predict(x).outputs, 2 * before)
