"""What is pruned is exactly that, the rest stays, and the sparse product is the dense one."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import DeepEnsemble, MCDropout, Variance, VariationalDropout
from pluribus.analysis.pruning import prune, sparsity, standard_deviations
from pluribus.core import random_weights
from pluribus.methods.variational import PARAMETERIZATIONS
from tests.networks import words

SPECS = {
    **{f"variance {noise}": Variance(noise=noise, include="0", samples=4) for noise in ("gaussian", "bernoulli", "uniform")},
    **{kind: VariationalDropout(parameterization=kind, include="0", samples=4) for kind in PARAMETERIZATIONS},
}
LAYERS = {
    "linear": (lambda: nn.Linear(6, 8), (3, 6)),
    "conv": (lambda: nn.Conv2d(4, 8, 3, groups=2), (3, 4, 5, 5)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 8, 2, groups=2), (3, 4, 3, 3)),
}


def build_ensemble(spec=SPECS["variance gaussian"], kind="linear") -> pluribus.Ensemble:
    ensemble = pluribus.ensemble(nn.Sequential(LAYERS[kind][0](), nn.Flatten(), nn.Tanh()).double(), spec).eval()
    for layer in random_weights.find_random_layers(ensemble).values():
        if getattr(layer, "log_alpha", None) is not None:
            nn.init.uniform_(layer.log_alpha, -2, 1)
    return ensemble


def half(ensemble) -> dict[str, torch.Tensor]:
    return {name: torch.rand_like(layer.mu) for name, layer in random_weights.find_random_layers(ensemble.net).items()}


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_what_scores_little_is_zero_or_its_mean_and_the_rest_is_as_it_was(spec, kind):
    ensemble = build_ensemble(spec, kind)
    before, scores = ensemble.net[0], half(ensemble)
    low = scores["0"] < 0.5
    zero = prune(ensemble, scores, threshold=0.5).net[0]
    mean = prune(ensemble, scores, threshold=0.5, to="mean").net[0]
    assert torch.equal(zero.mu, before.mu.masked_fill(low, 0))
    assert torch.equal(mean.mu, before.mu)
    for after in (zero, mean):
        assert torch.equal(after.variance(), before.variance().masked_fill(low, 0))
    assert (before.variance() > 0).all()  # a copy was pruned


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("to", ["zero", "mean"])
@pytest.mark.parametrize("kind", LAYERS)
def test_answers_are_those_of_the_pruned_weights(spec, to, kind):
    x = torch.randn(*LAYERS[kind][1], dtype=torch.double)
    ensemble = build_ensemble(spec, kind)
    pruned = prune(ensemble, half(ensemble), share=0.5, to=to)
    layer = pruned.net[0]
    deviation = layer.affine(x.square(), layer.variance()).sqrt()
    torch.testing.assert_close(layer.compute_std(x), deviation, rtol=1e-9, atol=2e-8)  # √1e-16 stands for √0
    pruned(x)
    member = pruned.freeze(samples=1).member(0)
    fixed = layer.variance() == 0
    assert torch.equal(member[0].weight[fixed], layer.mu[fixed])
    assert not (member[0].weight == layer.mu)[~fixed].any()


def test_all_weights_at_their_mean_answer_as_the_mean():
    x = torch.randn(5, 6, dtype=torch.double)
    for kind in ("layer", "neuron", "weight", "additive"):
        ensemble = build_ensemble(SPECS[kind])
        pruned = prune(ensemble, standard_deviations(ensemble), share=1.0, to="mean")
        ensemble.answer = "mean"
        torch.testing.assert_close(pruned(x), ensemble(x).expand(4, -1, -1), rtol=0, atol=1e-6)


def test_deviations_are_those_of_draws():
    """With 500 draws a normal deviation is known to 0.03 of itself, and the mean of 48 such ratios to 0.005."""
    for spec in SPECS.values():
        ensemble = build_ensemble(spec)
        ensemble(torch.randn(2, 6, dtype=torch.double))
        layer = ensemble.freeze(samples=500).net[0]
        ratio = torch.stack([layer.to_plain(i).weight for i in range(500)]).std(0) / standard_deviations(ensemble)["0"]
        assert (ratio - 1).abs().max() < 0.2
        assert ratio.mean().item() == pytest.approx(1, abs=0.025)


def test_the_share_is_of_all_layers_together_and_exact_among_equals():
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 6)).double()
    ensemble = pluribus.ensemble(net, Variance(include="*"))
    scores = {"0": torch.full((5, 4), 2.0), "2": torch.cat([torch.zeros(1, 5), torch.full((5, 5), 2.0)])}
    pruned = prune(ensemble, scores, share=0.3)  # 15 of 50: the five zeros, then the first of the others
    assert sparsity(pruned) == {"0": 0.5, "2": pytest.approx(5 / 30)}
    assert sparsity(prune(ensemble, scores, share=0.0)) == {"0": 0, "2": 0}
    assert sparsity(prune(ensemble, scores, share=1.0)) == {"0": 1, "2": 1}
    assert sparsity(prune(ensemble, {"0": scores["0"]}, share=0.3)) == {"0": pytest.approx(0.3), "2": 0}
    assert sparsity(prune(ensemble, scores, threshold=2.0)) == {"0": 0, "2": pytest.approx(5 / 30)}  # below, not at it


def test_weights_at_their_mean_are_not_zero_unless_that_is():
    for name, spec in SPECS.items():
        ensemble = build_ensemble(spec)
        pruned = prune(ensemble, standard_deviations(ensemble), share=0.5, to="mean")
        assert sparsity(pruned) == {"0": 0.5 if "variance" in name or name == "zero-mean" else 0.0}
        assert sparsity(prune(pruned, standard_deviations(pruned), share=0.75)) == {"0": 0.75}


def test_pruning_twice_adds_up():
    ensemble = build_ensemble(SPECS["layer"])
    first, second = (torch.arange(48.0).view(8, 6) != place for place in (3, 40))
    twice = prune(prune(ensemble, {"0": first}, threshold=1, to="mean"), {"0": second}, threshold=1, to="mean")
    assert (twice.net[0].variance() == 0).flatten().nonzero().flatten().tolist() == [3, 40]


@pytest.mark.parametrize("to", ["zero", "mean"])
@pytest.mark.parametrize("spec", [*SPECS.values(), DeepEnsemble(2, of=SPECS["layer"])], ids=str)
def test_a_pruned_ensemble_is_saved_and_loaded(spec, to, tmp_path):
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    ensemble = pluribus.ensemble(net, spec).eval()
    x = torch.randn(3, 6, dtype=torch.double)
    pruned = prune(ensemble, standard_deviations(ensemble), share=0.6, to=to)
    again = pluribus.load(pluribus.save(pruned, tmp_path / "pruned"), net).eval()
    for name, deviation in standard_deviations(pruned).items():
        assert torch.equal(standard_deviations(again)[name], deviation)
    assert sparsity(again) == sparsity(pruned)
    answers = []
    for each in (pruned, again):
        torch.manual_seed(3)
        answers.append(each(x))
    assert torch.equal(*answers)
    frozen = pruned.freeze()
    torch.testing.assert_close(pluribus.load(pluribus.save(frozen, tmp_path / "frozen"), net).eval()(x), frozen(x))


def test_the_parts_of_a_deep_ensemble_are_pruned_by_name():
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    ensemble = pluribus.ensemble(net, DeepEnsemble(3, of=Variance()))
    scores = standard_deviations(ensemble)
    assert list(scores) == ["0.net.0", "1.net.0", "2.net.0"]
    pruned = prune(ensemble, {"1.net.0": scores["1.net.0"]}, share=0.5)
    assert sparsity(pruned) == {"0.net.0": 0, "1.net.0": 0.5, "2.net.0": 0}
    assert pruned.eval()(torch.randn(2, 6)).shape == (60, 2, 3)


def test_describe_tells_what_was_pruned():
    ensemble = build_ensemble(SPECS["additive"])
    assert "pruned" not in words(ensemble.describe())
    zero = prune(ensemble, standard_deviations(ensemble), share=0.25)
    assert "pruned 0: 25.0 % of 48 weights are zero" in words(zero.describe())
    both = prune(zero, standard_deviations(zero), share=0.5, to="mean")
    assert "pruned 0: 25.0 % of 48 weights are zero, 25.0 % of 48 weights are their mean" in words(both.describe())


@pytest.mark.parametrize("shape", [(7, 40), (2, 5, 40), (0, 40), (1, 40)])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_the_sparse_product_is_the_dense_one(spec, shape, monkeypatch):
    monkeypatch.setattr(random_weights, "LARGE", 1000)
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(40, 30)).double(), spec).eval()
    layer = prune(ensemble, half(ensemble), share=0.96).net[0]
    x = torch.randn(*shape, dtype=torch.double)
    seen = []
    original = layer.affine.measure_deviation
    monkeypatch.setattr(layer.affine, "measure_deviation", lambda x, v: (seen.append((v.layout, id(v))), original(x, v))[1])
    with torch.no_grad():
        sparse, again = layer.compute_std(x), layer.compute_std(x)
    dense = layer.compute_std(x)  # with gradients, as in training
    assert [layout for layout, _ in seen] == [torch.sparse_csr, torch.sparse_csr, torch.strided]
    assert seen[0][1] == seen[1][1]  # made once
    torch.testing.assert_close(sparse, dense, rtol=1e-12, atol=0)
    assert sparse.is_contiguous()
    assert torch.equal(sparse, again)
    with torch.no_grad():
        next(p for p in (layer.sigma, layer.mean) if p is not None).mul_(2)
        torch.testing.assert_close(layer.compute_std(x) ** 2, 4 * dense**2, rtol=1e-9, atol=1e-14)  # changed weights are seen


def test_few_zeros_and_convolutions_stay_dense(monkeypatch):
    monkeypatch.setattr(random_weights, "LARGE", 1)
    ensemble = build_ensemble(kind="conv")
    layer = prune(ensemble, standard_deviations(ensemble), share=0.99).net[0]
    linear = prune(build_ensemble(), standard_deviations(build_ensemble()), share=0.8).net[0]
    with torch.no_grad():
        assert layer.compress(layer.variance()).layout is torch.strided
        assert linear.compress(linear.variance()).layout is torch.strided


def test_half_precision_answers_in_half_precision(monkeypatch):
    monkeypatch.setattr(random_weights, "LARGE", 1000)
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(40, 30)).bfloat16(), Variance(include="0")).eval()
    pruned = prune(ensemble, standard_deviations(ensemble), share=0.96)
    with torch.no_grad():
        assert pruned.net[0].compress(pruned.net[0].variance()).layout is torch.sparse_csr
        assert pruned(torch.randn(3, 40, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_a_pruned_ensemble_can_be_trained():
    ensemble = prune(build_ensemble(), standard_deviations(build_ensemble()), share=0.95)
    x = torch.randn(4, 6, dtype=torch.double)
    ensemble.predict(x)
    ensemble.train().loss(x, torch.arange(4)).backward()
    assert ensemble.net[0].sigma.grad.isfinite().all()


@pytest.mark.parametrize(
    ("scores", "options", "said"),
    [
        ({"0": torch.zeros(8, 6)}, {}, "threshold= or share="),
        ({"0": torch.zeros(8, 6)}, {"share": 0.5, "threshold": 1.0}, "threshold= or share="),
        ({"0": torch.zeros(8, 6)}, {"share": 1.5}, "from 0 to 1, got 1.5"),
        ({"0": torch.zeros(8, 6)}, {"share": 0.5, "to": "one"}, "to must be one of 'zero'"),
        ({"0": torch.zeros(6, 8)}, {"share": 0.5}, r"\[8, 6\], got \[6, 8\]"),
        ({"2": torch.zeros(8, 6)}, {"share": 0.5}, "got '2': there are '0'"),
        ({"0": torch.full((8, 6), torch.nan)}, {"share": 0.5}, "48 nan"),
        ({}, {"share": 0.5}, "must name a layer"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(scores, options, said):
    with pytest.raises(ValueError, match=said):
        prune(build_ensemble(), scores, **options)


def test_an_ensemble_without_random_weights_says_so():
    ensemble = pluribus.ensemble(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), MCDropout())
    with pytest.raises(ValueError, match="got none in MCDropout"):
        standard_deviations(ensemble)
