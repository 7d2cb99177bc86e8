"""Which layers are left alone, and why; which one is the last of an output; what a converted layer still shows."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pluribus
from pluribus import MIMO, BatchEnsemble, Inner, MCDropout, Multihead, Single, TreeNet, Variance
from tests.networks import words


class Heads(nn.Module):
    """Two heads, of which the one that is meant runs first; and weights that are in no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.body, self.label, self.box = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 4)
        self.shift = nn.Parameter(torch.randn(4))

    def forward(self, x):
        h = torch.relu(self.body(self.embed(x) + self.shift))
        return {"logits": self.label(h), "box": self.box(h)}


def draw_words() -> torch.Tensor:
    return torch.randint(0, 9, (5,))


@pytest.mark.parametrize("spec", [MIMO(2), Multihead(2), Variance(samples=2), Single(dropout=0.1)], ids=lambda spec: spec.name)
def test_the_last_layer_is_that_of_the_output_that_is_meant(spec, tmp_path):
    ensemble = pluribus.ensemble(Heads(), spec, example=draw_words(), output="logits")
    changed = ensemble.describe().changed
    assert "box" not in changed
    assert ("body" if spec.name == "variance" else "label") in changed
    loaded = pluribus.load(pluribus.save(ensemble, tmp_path / "e"), Heads())
    assert loaded.describe().changed == changed
    x = draw_words()
    assert loaded.predict(x).probs.shape == (5, 3)  # which checks the order


def test_a_layer_without_a_part_in_the_output_is_left_and_named():
    described = pluribus.ensemble(Heads(), BatchEnsemble(2), example=draw_words(), output="logits").describe()
    assert described.left["box"] == "it has no part in the output 'logits'"
    assert set(described.changed) == {"body", "label"}


def test_everything_with_weights_is_converted_or_named_with_the_reason():
    class Strange(nn.Linear):
        def forward(self, x):
            return super().forward(x).abs()

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return x * self.factor

    net = nn.Sequential(nn.Embedding(9, 4), Scale(), Strange(4, 4), nn.LayerNorm(4), nn.Linear(4, 3))
    net[0].requires_grad_(False)
    with pytest.warns(UserWarning, match="of the weights are in layers that BatchEnsemble left alone"):
        ensemble = pluribus.ensemble(net, BatchEnsemble(2))
    left = ensemble.describe().left
    assert left["0"] == "an embedding, which all members share"
    assert left["1"] == "Scale computes with weights of its own (factor), which all members share"
    assert left["2"] == "Strange has a forward of its own"
    assert set(left) == {"0", "1", "2"}
    text = words(pluribus.ensemble(Heads(), BatchEnsemble(2), output="logits").describe())
    assert "(the network itself): Heads computes with weights of its own (shift)" in text


def test_no_warning_where_the_caller_chose_the_layers(recwarn):
    net = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(30, 30)), nn.ReLU(), nn.Linear(30, 3))
    pluribus.ensemble(net, BatchEnsemble(2, include="2"))
    assert not [warning for warning in recwarn if "left alone" in str(warning.message)]


class Scripted(nn.Linear):
    """As libraries write them for the sake of mixed precision."""

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


class TrainedOtherwise(nn.Linear):
    def forward(self, x):
        return super().forward(x) * (2 if self.training else 1)


class LowRank(nn.Linear):
    """Adds nothing to begin with."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.more = nn.Parameter(torch.zeros(outputs, inputs))

    def forward(self, x):
        return super().forward(x) + F.linear(x, self.more)


def test_a_subclass_of_linear_is_converted_if_it_computes_what_linear_does():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), Scripted(8, 3)), Multihead(2)).eval()
    x = torch.randn(5, 4)
    assert type(ensemble.member(1)[2]) is Scripted
    torch.testing.assert_close(ensemble.member(1)(x), ensemble(x)[1])
    for kind in (TrainedOtherwise, LowRank):
        net = nn.Sequential(nn.Linear(4, 80), nn.ReLU(), nn.Linear(80, 8), kind(8, 3))
        left = pluribus.ensemble(net, BatchEnsemble(2)).describe().left
        assert left["3"] == f"{kind.__name__} has a forward of its own"


def test_a_tied_last_layer_becomes_several_once_it_is_untied():
    net = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 9, bias=False))
    net[2].weight = net[0].weight
    with pytest.raises(pluribus.ConversionError, match="its weight is tied to 0"):
        pluribus.ensemble(net, Multihead(2), example=draw_words())
    net[2].weight = nn.Parameter(net[2].weight.clone())
    assert pluribus.ensemble(net, Multihead(2), example=draw_words())(draw_words()).shape == (2, 5, 9)


# --- what a converted layer still shows ----------------------------------------------------------------------------


class Asking(nn.Module):
    """Reads what the weight of a layer is like, as libraries do."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.drop = nn.Linear(4, 4), nn.Linear(4, 3), nn.Dropout(0.25)

    def forward(self, x):
        assert self.drop.p == 0.25
        assert self.a.bias is not None
        assert self.a.weight.shape == (4, 4)
        assert self.a.weight.numel() == 16
        assert self.b.weight.size(0) == 3
        assert self.b.weight.dim() == self.b.weight.ndim == 2
        x = x.to(self.a.weight.dtype).to(self.a.weight.device).to(self.b.weight)
        return self.b(self.drop(torch.relu(self.a(x))))


@pytest.mark.parametrize(
    "spec", [BatchEnsemble(2), Inner(2), MIMO(2), MCDropout(), TreeNet(2, split="b")], ids=lambda s: s.name
)
def test_dtype_device_and_shape_of_a_weight_may_be_read(spec):
    ensemble = pluribus.ensemble(Asking(), spec)
    assert ensemble.predict(torch.randn(5, 4, dtype=torch.double)).outputs.dtype == torch.float
    assert ensemble.double().predict(torch.randn(5, 4)).outputs.dtype == torch.double


@pytest.mark.parametrize(
    "read",
    [
        lambda layer: layer.weight + 1,
        lambda layer: 2 * layer.weight,
        lambda layer: layer.weight[0],
        lambda layer: layer.weight.sum(),
        lambda layer: layer.weight.data,
        lambda layer: F.linear(torch.zeros(1, 4), layer.weight),
        lambda layer: torch.zeros(4) @ layer.weight,
        lambda layer: F.linear(torch.zeros(1, 4), torch.zeros(4, 4), layer.bias),
    ],
)
def test_numbers_of_a_weight_cannot_be_read(read):
    layer = pluribus.ensemble(Asking(), BatchEnsemble(2)).net.a
    with pytest.raises(AttributeError, match=r"a was converted and has no (weight|bias) to read: leave it out, exclude='a'"):
        read(layer)


# --- several inputs ------------------------------------------------------------------------------------------------


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.numbers, self.head = nn.Embedding(9, 4), nn.Linear(3, 4), nn.Linear(8, 3)

    def forward(self, tokens, numbers):
        return self.head(torch.relu(torch.cat([self.words(tokens), self.numbers(numbers)], 1)))


def test_mimo_merges_each_of_several_inputs(tmp_path):
    net, x = TwoInputs().double(), (draw_words(), torch.randn(5, 3, dtype=torch.double))
    ensemble = pluribus.ensemble(net, MIMO(3, input_repetition=0.0), example=x).eval()
    assert ensemble.spec.first == ("words", "numbers")
    torch.testing.assert_close(ensemble(x), net(*x).expand(3, 5, 3))
    torch.testing.assert_close(ensemble.fold()(*x), ensemble(x))
    loaded = pluribus.load(pluribus.save(ensemble, tmp_path / "e"), TwoInputs().double()).eval()
    assert torch.equal(loaded(x), ensemble(x))
    named = pluribus.ensemble(net, MIMO(3, first=("words", "numbers"))).eval()
    torch.testing.assert_close(named(x), net(*x).expand(3, 5, 3))
    ensemble.train().loss(x, torch.randint(0, 3, (5,))).backward()
    assert all(layer.weights.grad is not None for layer in (ensemble.net.words, ensemble.net.numbers, ensemble.net.head))


def test_the_answer_of_a_member_depends_on_all_of_its_own_inputs_and_on_those_of_others():
    """In training each member has its own row, in both inputs."""
    x = (draw_words(), torch.randn(5, 3, dtype=torch.double))
    ensemble = pluribus.ensemble(TwoInputs().double(), MIMO(2, input_repetition=0.0), example=x).train()
    views, _ = ensemble.deal(x, torch.zeros(5, dtype=torch.long))
    before = ensemble(views)
    for place in range(2):
        batch = [leaf.clone() for leaf in views.batch]
        batch[place][1] = batch[place][1].flip(0) if place == 0 else batch[place][1] + 1
        after = ensemble(type(views)(tuple(batch)))
        assert before.shape == after.shape == (2, 5, 3)
        if not torch.equal(batch[place], views.batch[place]):
            assert not torch.equal(before, after)
