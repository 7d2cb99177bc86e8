"""Divergences against numerical integration; parameterisations and answers against their definitions."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import nn

import pluribus
from pluribus import VariationalDropout
from pluribus.core import kl_divergence
from pluribus.methods.variational import ANSWERS, PARAMETERIZATIONS

LOG_ALPHAS = np.linspace(-8, 8, 33)


def expectation(f, *, singular: float | None = None) -> float:
    """E f(ε), ε ~ N(0, 1)."""
    points = sorted({-12.0, 12.0, *(p for p in [singular] if p is not None and abs(p) < 12)})
    total = 0.0
    for low, high in itertools.pairwise(points):
        total += integrate.quad(lambda e: f(e) * stats.norm.pdf(e), low, high, limit=400)[0]
    return total


def log_uniform_truth(log_alpha: float) -> float:
    root = math.exp(log_alpha / 2)
    mean = expectation(lambda e: math.log(abs(1 + root * e) + 1e-300), singular=-1 / root)
    return kl_divergence.LOG_UNIFORM_CONSTANT - log_alpha / 2 + mean


def test_the_log_uniform_approximation_agrees_with_integration_and_decreases():
    truth = np.array([log_uniform_truth(a) for a in LOG_ALPHAS])
    ours = kl_divergence.kl_log_uniform(torch.tensor(LOG_ALPHAS)).numpy()
    assert np.abs(ours - truth).max() < 1e-2
    assert (np.diff(ours) < 0).all()
    assert (np.diff(truth) < 0).all()


def test_the_log_uniform_constant_makes_the_divergence_vanish():
    assert expectation(lambda e: math.log(abs(e) + 1e-300), singular=0.0) == pytest.approx(
        -kl_divergence.LOG_UNIFORM_CONSTANT, abs=1e-6
    )
    assert log_uniform_truth(18.0) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("log_alpha", [-4.0, 0.0, 4.0])
def test_the_log_uniform_estimate_is_unbiased(log_alpha):
    mean = torch.full((400_000,), 0.7, dtype=torch.double)
    variance = mean.square() * math.exp(log_alpha)
    estimate = kl_divergence.estimate_kl_log_uniform(mean, variance.log(), torch.randn_like(mean))
    assert estimate.mean().item() == pytest.approx(log_uniform_truth(log_alpha), abs=6 * estimate.std().item() / 400_000**0.5)


@pytest.mark.parametrize("nu", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("mean", "std"), [(0.5, 0.1), (-1.0, 2.0), (0.0, 0.3)])
def test_the_student_t_estimate_agrees_with_integration(nu, mean, std):
    q = stats.norm(mean, std)
    log_p = stats.t(nu).logpdf
    truth = integrate.quad(lambda w: q.pdf(w) * (q.logpdf(w) - log_p(w)), mean - 12 * std, mean + 12 * std, limit=200)[0]
    means = torch.full((400_000,), mean, dtype=torch.double)
    log_variance = torch.full_like(means, 2 * math.log(std))
    estimate = kl_divergence.estimate_kl_student_t(means, log_variance, nu, torch.randn_like(means))
    assert estimate.mean().item() == pytest.approx(truth, abs=6 * estimate.std().item() / 400_000**0.5 + 1e-9)


def test_student_t_with_few_degrees_of_freedom_differs_from_log_uniform_by_a_constant():
    noise = torch.randn(50_000, dtype=torch.double)
    gaps = []
    for log_alpha in (-3.0, 0.0, 3.0):
        mean = torch.full_like(noise, 0.2)
        log_variance = 2 * mean.log() + log_alpha
        student = kl_divergence.estimate_kl_student_t(mean, log_variance, 1e-16, noise).mean()
        gaps.append((student - kl_divergence.estimate_kl_log_uniform(mean, log_variance, noise).mean()).item())
    assert max(gaps) - min(gaps) < 1e-3
    assert all(math.isfinite(gap) for gap in gaps)
    single = kl_divergence.estimate_kl_student_t(
        torch.zeros(3), torch.zeros(3), 1e-60, torch.zeros(3)
    )  # 1e-60 is zero in single precision
    assert single.isfinite().all()


@pytest.mark.parametrize("log_alpha", [-6.0, -1.0, 0.0, 2.0, 7.0])
def test_ard_agrees_with_integration_and_has_its_half(log_alpha):
    mean, std = 0.8, 0.8 * math.exp(log_alpha / 2)
    q, p = stats.norm(mean, std), stats.norm(0, math.sqrt(mean**2 + std**2))
    truth = integrate.quad(
        lambda w: q.pdf(w) * (q.logpdf(w) - p.logpdf(w)), mean - 12 * std, mean + 12 * std, limit=200, epsabs=1e-12
    )[0]
    assert kl_divergence.kl_ard(torch.tensor(log_alpha, dtype=torch.double)).item() == pytest.approx(truth, rel=1e-6, abs=1e-9)


def test_the_divergence_of_a_zero_mean_gaussian_is_constant_in_sigma():
    noise = torch.randn(1000, dtype=torch.double)
    zero = torch.zeros_like(noise)
    kls = [
        kl_divergence.estimate_kl_log_uniform(zero, torch.full_like(zero, 2 * math.log(s)), noise) for s in (0.01, 1.0, 30.0)
    ]
    torch.testing.assert_close(kls[0], kls[1])
    torch.testing.assert_close(kls[1], kls[2])
    many = torch.randn(400_000, dtype=torch.double)
    estimate = kl_divergence.estimate_kl_log_uniform(torch.zeros_like(many), torch.zeros_like(many), many)
    assert estimate.mean().abs() < 6 * estimate.std() / 400_000**0.5  # and that constant is zero
    for prior in ("log-uniform", "ard"):
        net = pluribus.ensemble(nn.Linear(5, 4), VariationalDropout(parameterization="zero-mean", prior=prior))
        net.penalty().backward()
        assert net.penalty() == 0
        assert net.net.sigma.grad.abs().max() == 0


@pytest.mark.parametrize("kind", ["layer", "neuron", "weight"])
@pytest.mark.parametrize("make", [lambda: nn.Linear(5, 4), lambda: nn.ConvTranspose2d(4, 6, 2, groups=2)])
def test_the_penalty_counts_every_weight_once(kind, make):
    layer = make().double()
    ensemble = pluribus.ensemble(layer, VariationalDropout(parameterization=kind, log_alpha=-2.0))
    expected = layer.weight.numel() * kl_divergence.kl_log_uniform(torch.tensor(-2.0, dtype=torch.double))
    torch.testing.assert_close(ensemble.penalty(), expected)
    sampled = pluribus.ensemble(layer, VariationalDropout(parameterization=kind, log_alpha=-2.0, kl="monte-carlo"))
    torch.manual_seed(0)
    drawn = torch.stack([sampled.penalty() for _ in range(500)])
    error = drawn.std() / 500**0.5
    assert 5 * error < 0.1 * expected  # so that a factor of two, or weights counted twice, would show
    assert (drawn.mean() - expected).abs() < 5 * error


@pytest.mark.parametrize("kind", PARAMETERIZATIONS)
@pytest.mark.parametrize(
    ("make", "shape"), [(lambda: nn.Linear(6, 4), (3, 6)), (lambda: nn.Conv2d(2, 4, 3, groups=2), (2, 2, 5, 5))]
)
def test_activations_have_the_moments_of_the_weights_posterior(kind, make, shape):
    layer = make().double()
    ensemble = pluribus.ensemble(layer, VariationalDropout(parameterization=kind, samples=20_000, log_alpha=-1.0)).eval()
    noisy = ensemble.net
    with torch.no_grad():
        for parameter in (noisy.log_alpha, noisy.sigma):
            if parameter is not None:
                parameter.mul_(1 + 0.3 * torch.rand_like(parameter))  # α's that differ show a mistaken axis
    x = torch.randn(*shape, dtype=torch.double)
    y = ensemble(x).detach()
    mean = noisy.affine(x, noisy.mu, layer.bias).detach()
    variance = noisy.affine(x.square(), noisy.variance()).detach()
    assert ((y.mean(0) - mean).abs() / variance.sqrt()).max() < 6 / 20_000**0.5
    torch.testing.assert_close(y.var(0), variance, rtol=0.1, atol=0)
    if kind == "neuron":
        alpha = noisy.log_alpha.exp().view(-1, *(1 for _ in layer.weight.shape[1:]))
        torch.testing.assert_close(noisy.variance(), alpha * layer.weight.square())


@pytest.mark.parametrize("prior", ["log-uniform", "student-t", "ard"])
@pytest.mark.parametrize("kind", PARAMETERIZATIONS)
def test_every_parameterisation_trains_with_every_prior(kind, prior):
    ensemble = pluribus.ensemble(nn.Linear(5, 3), VariationalDropout(parameterization=kind, prior=prior))
    ensemble.loss(torch.randn(4, 5), torch.arange(4) % 3, examples=100).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in ensemble.parameters())


def test_the_penalty_decreases_in_alpha_for_every_prior():
    for prior in ("log-uniform", "student-t", "ard"):
        penalties = []
        for log_alpha in (-6.0, -2.0, 2.0, 6.0):
            torch.manual_seed(0)
            layer = nn.Linear(60, 50).double()
            penalties.append(pluribus.ensemble(layer, VariationalDropout(prior=prior, log_alpha=log_alpha)).penalty().item())
        assert penalties == sorted(penalties, reverse=True), prior


def test_the_four_answers():
    layer = nn.Linear(4, 3).double()
    ensemble = pluribus.ensemble(layer, VariationalDropout(samples=5000, log_alpha=0.0)).eval()
    x = torch.randn(2, 4, dtype=torch.double)
    shapes = {}
    for answer in ANSWERS:
        ensemble.answer = answer
        shapes[answer] = ensemble(x).shape[0]
    assert shapes == {"average": 5000, "sample": 1, "mean": 1, "zero-mean": 5000}
    ensemble.answer = "mean"
    torch.testing.assert_close(ensemble(x)[0], layer(x), rtol=0, atol=1e-12)
    ensemble.answer = "zero-mean"
    y, std = ensemble(x).detach(), ensemble.net.compute_std(x).detach()
    assert ((y.mean(0) - layer.bias).abs() / std).max() < 6 / 5000**0.5  # the means are gone, the bias is not
    torch.testing.assert_close(y.std(0), std, rtol=0.1, atol=0)
    with pytest.raises(ValueError, match="one of 'average'"):
        ensemble.answer = "best"


def test_the_loss_is_the_negative_elbo_over_the_number_of_examples():
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    ensemble = pluribus.ensemble(net, VariationalDropout(log_alpha=-30.0))  # no noise to speak of
    x, y = torch.randn(10, 4, dtype=torch.double), torch.randint(0, 3, (10,))
    elbo = ensemble.elbo([(x[:6], y[:6]), (x[6:], y[6:])])
    data = -nn.functional.cross_entropy(net(x), y, reduction="sum").item()
    assert elbo.data == pytest.approx(data, abs=1e-4)
    assert elbo.kl == pytest.approx(ensemble.penalty().item())
    assert elbo.total == elbo.data - elbo.kl
    assert ensemble.loss(x, y, examples=10).item() == pytest.approx(-elbo.total / 10, abs=1e-4)


def test_fixed_draws_have_no_elbo_and_no_settings():
    x, y = torch.randn(5, 4), torch.zeros(5, dtype=torch.long)
    frozen = pluribus.ensemble(nn.Linear(4, 3), VariationalDropout(), example=x).freeze()
    with pytest.raises(pluribus.Unsupported, match="no ELBO"):
        frozen.elbo([(x, y)])
    with pytest.raises(ValueError, match="draws are fixed"):
        frozen.answer = "mean"
    with pytest.raises(ValueError, match="draws are fixed"):
        frozen.samples = 3
    with pytest.raises(ValueError, match="samples must be at least 1"):
        pluribus.ensemble(nn.Linear(4, 3), VariationalDropout()).elbo([(x, y)], samples=0)


def test_the_elbo_leaves_no_trace():
    ensemble = pluribus.ensemble(nn.Linear(4, 3), VariationalDropout(samples=7, answer="mean")).train()
    ensemble.elbo([(torch.randn(5, 4), torch.zeros(5, dtype=torch.long))], samples=3)
    assert (ensemble.training, ensemble.samples, ensemble.answer) == (True, 7, "mean")


def test_the_penalty_wants_to_know_the_number_of_examples():
    ensemble = pluribus.ensemble(nn.Linear(4, 3), VariationalDropout())
    with pytest.raises(ValueError, match="examples="):
        ensemble.loss(torch.randn(5, 4), torch.zeros(5, dtype=torch.long))


def test_rates_and_deviations_are_not_decayed():
    for kind, name in (("layer", "log_alpha"), ("additive", "sigma")):
        ensemble = pluribus.ensemble(nn.Linear(4, 3), VariationalDropout(parameterization=kind))
        decayed, spared = ensemble.param_groups()
        assert [id(getattr(ensemble.net, name))] == [id(p) for p in spared["params"]]
        assert spared["weight_decay"] == 0
        assert len(decayed["params"]) == 2
