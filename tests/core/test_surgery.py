"""Layer surgery: what it reaches, what it leaves, what it says."""

import copy
import warnings

import pytest
import torch
from torch import nn

import pluribus
from pluribus import (
    MIMO,
    BatchEnsemble,
    ConversionError,
    DeepEnsemble,
    Inner,
    Maxout,
    MCDropout,
    Mixture,
    Multihead,
    TreeNet,
    Variance,
    VariationalDropout,
)
from pluribus.methods.batch_ensemble import RankOne
from pluribus.methods.inner import Averaged
from tests.networks import NestedMLP, ResidualCNN, Transformer, images, tokens, vectors, words


def list_changes(net: nn.Module, **options) -> list[str]:
    return [change.name for change in pluribus.ensemble(net, Inner(**options)).conversion.changes]


def test_names_globs_blocks_and_types_choose_layers():
    net = ResidualCNN()
    assert list_changes(net, include="blocks.0.conv1") == ["blocks.0.conv1"]
    assert list_changes(net, include="*.conv2") == ["blocks.0.conv2", "blocks.1.conv2", "blocks.2.conv2"]
    assert list_changes(net, include="blocks.2") == ["blocks.2.conv1", "blocks.2.conv2"]
    assert list_changes(net, include=nn.Linear) == ["head"]
    assert list_changes(net, include=[nn.Linear, "stem.*"]) == ["stem.0", "head"]
    assert list_changes(net, include="*", exclude=["blocks", nn.Linear]) == ["stem.0"]
    assert "blocks.1.shortcut" not in list_changes(net, exclude="*.shortcut")


def test_a_pattern_that_matches_nothing_lists_what_it_could_have_matched():
    with pytest.raises(ConversionError, match=r"include='hed' matched no layer\. Did you mean 'head'\?(.|\n)*stem\.0: Conv2d"):
        list_changes(ResidualCNN(), include="hed")
    with pytest.raises(ConversionError, match="exclude='nothing' matched no layer"):
        list_changes(ResidualCNN(), exclude="nothing")
    with pytest.raises(ConversionError, match="left nothing to convert"):
        list_changes(ResidualCNN(), include="head", exclude=nn.Linear)
    with pytest.raises(ConversionError, match="nothing to convert: ReLU has no layer of the types Linear, Conv1d"):
        list_changes(nn.ReLU())


class Twice(nn.Module):
    """One module under two names, and run three times."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 8)
        self.step = nn.Linear(8, 8)
        self.again = self.step
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for layer in (self.step, self.again, self.step):
            x = torch.relu(layer(x))
        return self.head(x)


@pytest.mark.parametrize(
    "spec", [Inner(), BatchEnsemble(members=3), TreeNet(members=3, split="step"), Variance(include="step"), MIMO()], ids=str
)
def test_a_module_used_twice_stays_one(spec):
    net = Twice().double()
    ensemble = pluribus.ensemble(net, spec).eval()
    assert ensemble.net.step is ensemble.net.again
    x = torch.randn(5, 4, dtype=torch.double)
    answers = ensemble(x)
    if not ensemble.sampled:
        for index in range(ensemble.members):
            member = ensemble.member(index)
            assert member.step is member.again
            torch.testing.assert_close(member(x), answers[index], rtol=0, atol=1e-10)


def test_draws_of_a_module_used_twice_are_independent():
    ensemble = pluribus.ensemble(Twice(), Variance(include="step", samples=3)).eval()
    assert "entering" not in str(ensemble.describe(torch.randn(2, 4)).branch)  # it would branch twice there
    assert ensemble(torch.randn(5, 4)).shape == (3, 5, 3)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.body(self.embed(x).mean(1)))


def test_tied_weights_stay_tied_and_are_left_out():
    for spec in (Inner(), BatchEnsemble(members=2), DeepEnsemble(2), DeepEnsemble(2, of=Inner())):
        ensemble = pluribus.ensemble(Tied(), spec)
        nets = [part.net for part in ensemble.net] if isinstance(spec, DeepEnsemble) else [ensemble.net]
        assert all(net.head.weight is net.embed.weight for net in nets)
        assert ensemble(tokens(3)).shape == (ensemble.members, 3, 11)
    described = words(pluribus.ensemble(Tied(), Inner()).describe())
    assert "head: its weight is tied to embed" in described
    with pytest.raises(ConversionError, match="names head, which cannot be converted: its weight is tied to embed"):
        pluribus.ensemble(Tied(), Inner(include="head"))


def test_tied_weights_are_saved_once_and_loaded_tied(tmp_path):
    ensemble = pluribus.ensemble(Tied(), BatchEnsemble(members=2)).eval()
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "tied"), Tied()).eval()
    assert again.net.head.weight is again.net.embed.weight
    x = tokens(3)
    assert torch.equal(again(x), ensemble(x))


def test_the_projections_of_attention_are_converted_and_members_have_torchs_own_attention():
    net = Transformer()
    ensemble = pluribus.ensemble(net, BatchEnsemble(members=2))
    assert "encoder.layers.0.self_attn.q_proj" in ensemble.describe().changed
    member = ensemble.member(0)
    assert type(member.encoder.layers[0].self_attn) is nn.MultiheadAttention
    assert list(member.state_dict()) == list(net.state_dict())


@pytest.mark.parametrize("mode", ["no_grad", "grad"])
def test_torchs_fused_encoder_does_not_read_past_converted_layers(mode):
    """In evaluation without gradients nn.TransformerEncoderLayer hands its children's weights to one kernel."""
    ensemble = pluribus.ensemble(Transformer().double(), BatchEnsemble(members=3)).eval()
    x = tokens(4)
    with torch.no_grad() if mode == "no_grad" else torch.enable_grad():
        answers = ensemble(x)
    for index in range(3):
        torch.testing.assert_close(ensemble.member(index)(x), answers[index], rtol=0, atol=1e-10)


def test_the_fused_encoder_is_back_after_folding():
    ensemble = pluribus.ensemble(Transformer(), Inner(include="encoder"))
    assert ensemble.net.encoder.layers[0].activation_relu_or_gelu == 0
    assert ensemble.member(0).encoder.layers[0].activation_relu_or_gelu == 1


def test_modules_in_plain_lists_are_copied_with_the_rest():
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.path = [self.first, torch.relu]  # the same module, out of torch's sight

        def forward(self, x):
            for step in self.path:
                x = step(x)
            return x

    ensemble = pluribus.ensemble(Hidden(), Inner())
    assert isinstance(ensemble.net.path[0], Averaged)
    assert ensemble.net.path[0] is ensemble.net.first


def test_parametrized_layers_and_layers_with_their_own_forward_are_left():
    class Doubling(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    net = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), Doubling(4, 4), nn.Linear(4, 2))
    with pytest.warns(UserWarning, match=r"% of the weights are in layers that Inner left alone \(0, "):
        ensemble = pluribus.ensemble(net, Inner())
    assert [change.name for change in ensemble.conversion.changes] == ["2"]
    assert "parametrization" in ensemble.conversion.left["0"]
    assert "Doubling has a forward of its own" in ensemble.conversion.left["1"]


def test_lazy_layers_must_run_once_first():
    with pytest.raises(ConversionError, match="run the network once"):
        pluribus.ensemble(nn.Sequential(nn.LazyLinear(3)), Inner())


def test_a_network_that_cannot_be_copied_is_explained():
    net = nn.Sequential(nn.Linear(3, 2))
    net.cache = net[0].weight * 2
    with pytest.raises(ConversionError, match="cannot be copied"):
        pluribus.ensemble(net, Inner())


def test_frozen_parameters_stay_frozen_and_modes_are_kept():
    net = ResidualCNN().train()
    for parameter in net.stem.parameters():
        parameter.requires_grad_(False)
    net.stem[1].eval()
    for spec in (Inner(), BatchEnsemble(members=2, batchnorm="own"), MCDropout()):
        ensemble = pluribus.ensemble(net, spec)
        assert not any(
            p.requires_grad for name, p in ensemble.net.stem.named_parameters() if "weight" in name or "shared" in name
        )
        assert ensemble.training
        assert ensemble.net.blocks.training
        assert not ensemble.net.stem[1].training
        ensemble.predict(images(2))
        assert not ensemble.net.stem[1].training


@pytest.mark.parametrize("spec", [Variance(include="a"), Inner(), BatchEnsemble(), VariationalDropout(), Maxout()], ids=str)
def test_a_network_that_reads_weights_directly_gets_a_hint(spec):
    class Direct(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            return self.b(nn.functional.linear(x, self.a.weight))

    ensemble = pluribus.ensemble(Direct(), spec)
    with pytest.raises(AttributeError, match="a was converted and has no weight to read: leave it out, exclude='a'"):
        ensemble(torch.randn(2, 4))


def test_a_network_may_still_ask_what_a_layer_was_like():
    class Asking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            return self.b(self.a(x.view(-1, self.a.in_features))) * (self.b.out_features > 0)

    for spec in (Inner(), BatchEnsemble(members=2), MIMO(2), TreeNet(members=2, split="b"), Variance(), MCDropout()):
        assert pluribus.ensemble(Asking(), spec).eval()(torch.randn(5, 4)).shape[1:] == (5, 3)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = pluribus.ensemble(nn.Linear(2, 2), Inner()).net.nonsense


def test_a_layer_that_is_converted_but_held_elsewhere_is_pointed_out():
    class Closure(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 3)
            self.middle = lambda x: self.a(x)  # a copy of the network still calls this one's layer

        def forward(self, x):
            return self.b(self.middle(x))

    with pytest.warns(UserWarning, match="converted, but did not run in evaluation: a"):
        pluribus.ensemble(Closure(), BatchEnsemble(members=2))(torch.randn(2, 4))


def test_old_weight_norm_is_left():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = nn.Sequential(nn.Linear(4, 4), nn.utils.weight_norm(nn.Linear(4, 3)))
        net[1].weight = net[1].weight.detach()
    assert "parametrization" in pluribus.ensemble(net, Inner()).conversion.left["1"]


def test_new_weights_train_even_in_place_of_frozen_ones():
    net = NestedMLP().requires_grad_(False)
    for spec in (Maxout(), Variance(), Multihead(), Inner(init="paper"), MIMO(init="fresh")):
        ensemble = pluribus.ensemble(net, spec)
        fresh = [p for change in ensemble.conversion.changes for p in ensemble.net.get_submodule(change.name).parameters()]
        assert any(p.requires_grad for p in fresh), spec
    for spec in (Inner(), MIMO(), Mixture(parameters=3.0)):
        kept = pluribus.ensemble(net, spec)
        new = [] if not isinstance(spec, Mixture) else [*kept.banks.parameters(), *(m.coefficients for m in find_mixed(kept))]
        assert not any(p.requires_grad for p in kept.parameters() if not any(p is q for q in new)), spec
    assert not any(p.requires_grad for p in pluribus.ensemble(net, Inner()).fold().parameters())


def find_mixed(ensemble):
    return [module for module in ensemble.modules() if hasattr(module, "coefficients")]


def test_a_frozen_backbone_keeps_its_statistics_in_every_member():
    net = ResidualCNN()
    net(images(8))
    net.stem.requires_grad_(False)
    first, second = pluribus.ensemble(net, DeepEnsemble(2)).net
    assert torch.equal(first.net.stem[1].running_mean, second.net.stem[1].running_mean)
    assert not torch.equal(first.net.blocks[0].bn1.running_mean, second.net.blocks[0].bn1.running_mean)


def test_a_member_shares_nothing_with_its_ensemble():
    for spec in (TreeNet(members=2), BatchEnsemble(members=2, batchnorm="own"), MIMO(2)):
        ensemble = pluribus.ensemble(ResidualCNN(), spec).train()
        before = copy.deepcopy(ensemble.state_dict())
        member = ensemble.member(0).eval()
        with torch.no_grad():
            for parameter in member.parameters():
                parameter.zero_()
        assert all(module.training for module in ensemble.modules())
        assert not any(module.training for module in member.modules())
        assert all(torch.equal(before[name], tensor) for name, tensor in ensemble.state_dict().items())


def test_a_single_layer_can_be_the_whole_network():
    ensemble = pluribus.ensemble(nn.Linear(4, 3), BatchEnsemble(members=2)).eval()
    assert isinstance(ensemble.net, RankOne)
    assert ensemble(torch.randn(5, 4)).shape == (2, 5, 3)


def test_vectors_are_what_the_nested_network_takes():
    assert NestedMLP()(vectors(2)).shape == (2, 3)
