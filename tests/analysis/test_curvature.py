"""Every way to κ against the Hessian that torch.func computes of a plain network, in double precision."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, hessian

import pluribus
from pluribus import DeepEnsemble, Variance, VariationalDropout
from pluribus.analysis.curvature import LayerPass, kappa
from pluribus.core.modes import evaluation_mode
from pluribus.core.random_weights import find_random_layers, use_fixed_weights
from tests.analysis.curvature_networks import CLOSED, NETS, C
from tests.networks import Transformer, tokens

B = 9
SPECS = {
    "variance": lambda name: Variance(include=name),
    "variance-uniform": lambda name: Variance(include=name, noise="uniform"),
    **{
        kind: lambda name, kind=kind: VariationalDropout(parameterization=kind, include=name)
        for kind in ("layer", "neuron", "weight", "additive", "zero-mean")
    },
}


def data(shape=(4,), classes=C) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(B, *shape, dtype=torch.double), torch.arange(B) % classes


def build_ensemble(make, spec) -> tuple[nn.Module, pluribus.Ensemble]:
    net = make().double().eval()
    ensemble = pluribus.ensemble(net, spec)
    for layer in find_random_layers(ensemble).values():
        for noise in (layer.sigma, getattr(layer, "log_alpha", None)):
            if noise is not None:
                nn.init.uniform_(noise, -1, 1)  # every factor σ² its own
    return net, ensemble


def whole_hessian(net: nn.Module, name: str, mu: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """∂²L/∂W∂W of the summed negative log-likelihood of a plain network, `[weights, weights]`."""

    def loss(weight):
        output = functional_call(net, {f"{name}.weight".removeprefix("."): weight}, (x,))
        return -output.log_softmax(1).gather(1, y.unsqueeze(1)).sum()

    return hessian(loss)(mu.detach()).reshape(mu.numel(), mu.numel())


def by_hand(layer) -> torch.Tensor:
    """σ² of every weight, from the definitions."""
    if layer.sigma is not None:
        return layer.sigma.square().detach() / (3 if getattr(layer, "noise", "") == "uniform" else 1)
    alpha = layer.log_alpha.detach().exp()
    return (alpha.view(-1, 1) if alpha.dim() == 1 else alpha) * layer.mean.detach().square()


def mean_by_hand(net: nn.Module, name: str, layer) -> torch.Tensor:
    weight = net.get_parameter(f"{name}.weight".removeprefix("."))
    return torch.zeros_like(weight) if layer.mean is None else weight


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("kind", NETS)
def test_kappa_is_the_variance_times_the_diagonal_of_the_hessian(kind, spec):
    name, make = NETS[kind]
    net, ensemble = build_ensemble(make, SPECS[spec](name))
    layer = ensemble.net.get_submodule(name)
    x, y = data()
    mu = mean_by_hand(net, name, layer)
    expected = by_hand(layer) * whole_hessian(net, name, mu, x, y).diagonal().view_as(mu)
    assert expected.abs().max() > 1e-4
    found = kappa(ensemble, [(x, y)])
    assert list(found) == [name]
    torch.testing.assert_close(found[name], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", CLOSED)
def test_the_closed_form_and_both_kinds_of_products_agree(kind):
    name, make = NETS[kind]
    _, ensemble = build_ensemble(make, VariationalDropout(include=name))
    layer = ensemble.net.get_submodule(name)
    each = LayerPass(ensemble, layer, *data(), torch.Generator().manual_seed(0))
    with evaluation_mode(ensemble), use_fixed_weights({layer: layer.mu.detach()}):
        (a,), (response,), logits = each.split_at_layer()
        closed = each.differentiate_by_class(response, logits)
        assert closed is not None
        torch.testing.assert_close(closed, each.differentiate_by_unit(response, logits), rtol=1e-10, atol=1e-13)
        torch.testing.assert_close(closed.mT @ a.square(), each.differentiate_by_weight(), rtol=1e-10, atol=1e-13)


def test_the_closed_form_is_that_of_the_notes():
    """z = s·(Wa) + b, h = φ'²(Σ p V² − (Σ p V)²) + φ''·Σ (p − y) V, ∂²L/∂W_ij² = Σ_n s_i² h_ni a_nj²."""
    _, ensemble = build_ensemble(NETS["batchnorm"][1], Variance(include="0"))
    x, y = data()
    layer, norm, _, _, head = ensemble.net
    with torch.no_grad():
        s = norm.weight * (norm.running_var + norm.eps).rsqrt()
        z = s * (layer.offset - norm.running_mean) + norm.bias  # at W = 0
        p = head(F.softplus(z)).softmax(0)
        first, second = z.sigmoid(), z.sigmoid() * (1 - z.sigmoid())
        bend = first**2 * (p @ head.weight**2 - (p @ head.weight) ** 2) + second * ((p - F.one_hot(y, C)) @ head.weight)
        expected = layer.sigma**2 * s[:, None] ** 2 * (bend.mT @ x**2)
    torch.testing.assert_close(kappa(ensemble, [(x, y)])["0"], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", NETS)
def test_each_network_takes_the_cheapest_way_that_is_exact(kind, monkeypatch):
    taken = []
    for way in ("differentiate_by_class", "differentiate_by_unit", "differentiate_by_weight"):
        original = getattr(LayerPass, way)

        def spy(self, *args, way=way, original=original):
            answer = original(self, *args)
            taken.extend([way] if answer is not None else [])
            return answer

        monkeypatch.setattr(LayerPass, way, spy)
    name, make = NETS[kind]
    kappa(build_ensemble(make, VariationalDropout(include=name))[1], [data()])
    other = "differentiate_by_weight" if kind in ("mixing", "twice", "positions") else "differentiate_by_unit"
    assert taken == ["differentiate_by_class" if kind in CLOSED else other]


@pytest.mark.parametrize(
    "layer", [nn.Conv2d(2, 3, 2), nn.Conv2d(2, 4, 2, groups=2, stride=2, padding=1), nn.ConvTranspose2d(2, 3, 2)], ids=str
)
def test_a_convolution_is_exact_by_a_product_for_each_weight(layer):
    net, ensemble = build_ensemble(lambda: pooled(layer), VariationalDropout(include="0", parameterization="neuron"))
    x, y = data((2, 3, 3))
    weight = net[0].weight
    expected = ensemble.net[0].variance().detach() * whole_hessian(net, "0", weight, x, y).diagonal().view_as(weight)
    torch.testing.assert_close(kappa(ensemble, [(x, y)])["0"], expected, rtol=1e-9, atol=1e-12)


def pooled(layer: nn.Module) -> nn.Module:
    return nn.Sequential(layer, nn.Softplus(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * layer.out_channels, C))


def test_hutchinsons_estimate_is_unbiased_with_the_error_that_theory_says():
    """Var v_i (Hv)_i = Σ_{j≠i} H_ij²: with S products the standard error is its root by √S."""
    net, ensemble = build_ensemble(lambda: pooled(nn.Conv2d(2, 3, 2)), Variance(include="0"))
    x, y = data((2, 3, 3))
    full = whole_hessian(net, "0", torch.zeros_like(net[0].weight), x, y)
    variance = ensemble.net[0].variance().detach().flatten()
    samples = 1000
    error = variance * (full.square().sum(1) - full.diagonal().square()).sqrt() / samples**0.5
    found = kappa(ensemble, [(x, y)], samples=samples)["0"].flatten()
    z = (found - variance * full.diagonal()) / error
    assert z.abs().max() < 5  # of 24
    assert 0.5 < z.square().mean() < 2
    again, other = (kappa(ensemble, [(x, y)], samples=3, seed=seed)["0"] for seed in (0, 1))
    assert torch.equal(kappa(ensemble, [(x, y)], samples=3)["0"], again)
    assert not torch.equal(again, other)


def test_samples_leave_exact_ways_exact():
    _, ensemble = build_ensemble(NETS["deep"][1], Variance(include="0"))
    batch = data()
    assert torch.equal(kappa(ensemble, [batch], samples=1)["0"], kappa(ensemble, [batch])["0"])


def test_the_sign_is_that_of_the_loss_and_not_of_the_likelihood():
    """The negative log-likelihood of a softmax regression is convex: Σ_n p(1 − p) a² > 0."""
    net, ensemble = build_ensemble(lambda: nn.Linear(4, C), VariationalDropout(parameterization="additive"))
    x, y = data()
    p = net(x).softmax(1).detach()
    expected = ensemble.net.sigma.detach() ** 2 * ((p * (1 - p)).mT @ x**2)
    torch.testing.assert_close(kappa(ensemble, [(x, y)])[""], expected, rtol=1e-10, atol=0)
    assert (expected > 0).all()


def test_other_random_layers_are_at_their_means_too():
    net, ensemble = build_ensemble(NETS["deep"][1], VariationalDropout())
    ensemble.answer = "zero-mean"  # however it answers otherwise
    x, y = data()
    found = kappa(ensemble, [(x, y)])
    assert list(found) == ["0", "2", "4"]
    for name, value in found.items():
        weight = net.get_submodule(name).weight
        expected = by_hand(ensemble.net.get_submodule(name)) * whole_hessian(net, name, weight, x, y).diagonal().view_as(weight)
        torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-12)


def test_one_logit_is_two_classes():
    two = nn.Sequential(nn.Linear(4, 5), nn.Softplus(), nn.Linear(5, 2)).double()
    one = nn.Sequential(two[0], two[1], nn.Linear(5, 1)).double()
    one[2].weight.data, one[2].bias.data = two[2].weight[1:] - two[2].weight[:1], two[2].bias[1:] - two[2].bias[:1]
    x, y = data(classes=2)
    spec = VariationalDropout(include="0")
    expected = kappa(pluribus.ensemble(two, spec), [(x, y)])["0"]
    for target in (y, y.unsqueeze(1)):
        torch.testing.assert_close(kappa(pluribus.ensemble(one, spec), [(x, target)])["0"], expected, rtol=1e-9, atol=1e-12)


def test_batches_add_up_and_progress_is_told():
    _, ensemble = build_ensemble(NETS["batchnorm"][1], Variance(include="0"))
    x, y = data()
    done = []
    parts = kappa(ensemble, iter([(x[:4], y[:4]), (x[4:], y[4:])]), progress=done.append)
    torch.testing.assert_close(parts["0"], kappa(ensemble, [(x, y)])["0"], rtol=1e-10, atol=1e-13)
    assert done == [4, 9]


def test_a_part_of_a_deep_ensemble_has_its_own_loss():
    net = NETS["softplus"][1]().double()
    deep = pluribus.ensemble(net, DeepEnsemble(2, of=Variance()))
    batch = data()
    found = kappa(deep, [batch])
    for name, part in zip(("0.net.0", "1.net.0"), deep.net, strict=True):
        assert torch.equal(found[name], kappa(part, [batch])["0"])
    assert list(kappa(deep, [batch], layers="1")) == ["1.net.0"]


@pytest.mark.parametrize("spec", ["variance", "layer"])
def test_nothing_is_left_behind(spec):
    _, ensemble = build_ensemble(NETS["batchnorm"][1], SPECS[spec]("0"))
    ensemble.train()
    x, y = data()
    before, random = ensemble.state_dict(), torch.random.get_rng_state()
    kept = {name: tensor.clone() for name, tensor in before.items()}
    expected = kappa(ensemble, [(x, y)])["0"]
    with torch.no_grad():
        assert torch.equal(kappa(ensemble, [(x, y)])["0"], expected)
    assert expected.any()
    assert torch.equal(torch.random.get_rng_state(), random)
    assert all(module.training for module in ensemble.modules())
    assert all(parameter.grad is None for parameter in ensemble.parameters())
    assert list(ensemble.state_dict()) == list(kept)
    assert all(torch.equal(tensor, kept[name]) for name, tensor in ensemble.state_dict().items())
    first, second = ensemble.eval()(x), ensemble(x)
    assert not torch.equal(first, second)  # it draws again


def test_frozen_draws_have_the_curvature_of_what_they_were_drawn_from():
    _, ensemble = build_ensemble(NETS["softplus"][1], Variance(include="0"))
    x, y = data()
    ensemble(x)
    assert torch.equal(kappa(ensemble.freeze(), [(x, y)])["0"], kappa(ensemble, [(x, y)])["0"])


def test_a_layer_behind_attention_can_be_estimated():
    spec = VariationalDropout(include="encoder.layers.0.linear1")
    ensemble = pluribus.ensemble(Transformer().double(), spec, example=tokens())
    found = kappa(ensemble, [(tokens(B), torch.arange(B) % C)], samples=2)["encoder.layers.0.linear1"]
    assert found.isfinite().all()
    assert found.abs().max() > 0


def test_behind_a_relu_a_layer_without_means_and_biases_has_no_curvature():
    net = nn.Sequential(nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Linear(5, C)).double()
    assert not kappa(pluribus.ensemble(net, Variance(include="0")), [data()])["0"].any()


def test_single_precision_is_stable_where_the_network_is_sure():
    """The variance over classes is not a difference of large numbers."""
    _, ensemble = build_ensemble(NETS["softplus"][1], Variance(include="0"))
    ensemble.net[2].weight.data.mul_(3)
    ensemble.net[2].bias.data.copy_(torch.tensor([0.0, 18.0, -3.0]))
    batch = data()
    batch = batch[0], torch.ones_like(batch[1])
    double = kappa(ensemble, [batch])["0"]
    single = kappa(ensemble.float(), [(batch[0].float(), batch[1])])["0"]
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=0)


def test_given_weights_answer_for_every_member():
    for spec in (Variance(include="2", samples=3), VariationalDropout(samples=3)):
        net = NETS["middle"][1]().double()
        ensemble = pluribus.ensemble(net, spec).eval()
        x, _ = data()
        ensemble(x)
        with use_fixed_weights(
            {layer: net.get_submodule(name).weight.detach() for name, layer in find_random_layers(ensemble.net).items()}
        ):
            torch.testing.assert_close(ensemble(x), net(x).expand(3, B, C))


def test_mistakes_are_answered_with_a_sentence():
    _, ensemble = build_ensemble(NETS["softplus"][1], Variance(include="0"))
    x, y = data()
    for call, said in [
        (lambda: kappa(ensemble, []), "at least one row"),
        (lambda: kappa(ensemble, [(x, y[:4])]), "a class for each of"),
        (lambda: kappa(ensemble, [(x, y.double())]), "a class for each of"),
        (lambda: kappa(ensemble, [(x, y)], layers="2"), "names no layer with random weights: there are '0'"),
        (lambda: kappa(ensemble, [(x, y)], samples=0), "samples must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=said):
            call()
    regression = pluribus.ensemble(nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 1)), Variance(), task="regression")
    with pytest.raises(ValueError, match="got one for regression"):
        kappa(regression, [(x, y)])
