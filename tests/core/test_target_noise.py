"""Regression whose members predict the noise: the loss, the head, and both parts of the variance in every form."""

import math

import pytest
import torch
from torch import nn

import pluribus
from pluribus import ConversionError, FileError, Predictive, TargetNoise, Unsupported
from pluribus.core import execution
from pluribus.core.target_noise import NoiseHead, compute_gaussian_loss
from tests.contract_rows import METHODS, check_same_averages

DOUBLE = torch.double


def build_net(outputs=1):
    body = [nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU()]
    return nn.Sequential(*body, nn.Linear(16, outputs))


def build_ensemble(spec, outputs=1, noise="beta-nll"):
    """An ensemble in double precision whose noise differs from row to row, and seven rows."""
    torch.manual_seed(0)
    x = torch.randn(7, 4, dtype=DOUBLE)
    ensemble = pluribus.ensemble(build_net(outputs).double(), spec, task="regression", noise=noise, example=x[:2])
    with torch.no_grad():
        for parameter in ensemble.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return ensemble.eval(), x


def draws_noise(ensemble):
    return any(getattr(part, "sampled", False) for part in ensemble.modules())


# --- the loss ---------------------------------------------------------------------------------------------------------


def draw_outputs(rows=50):
    torch.manual_seed(0)
    output = torch.cat([torch.randn(rows, 2, dtype=DOUBLE), torch.rand(rows, 2, dtype=DOUBLE) + 0.1], 1)
    return output.requires_grad_(), torch.randn(rows, 2, dtype=DOUBLE)


def test_without_beta_the_loss_is_the_gaussian_likelihood():
    output, y = draw_outputs()
    mean, variance = output[:, :2], output[:, 2:]
    expected = -torch.distributions.Normal(mean, variance.sqrt()).log_prob(y).mean()
    torch.testing.assert_close(compute_gaussian_loss(output, y, 0.0), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_gradients_are_those_of_the_likelihood_times_a_constant_power_of_the_variance(beta):
    """∂/∂μ = −(y − μ) σ^(2β−2) and ∂/∂σ² = ½ (σ² − (y − μ)²) σ^(2β−4), divided by the number of targets."""
    output, y = draw_outputs()
    (found,) = torch.autograd.grad(compute_gaussian_loss(output, y, beta), output)
    mean, variance = output.detach()[:, :2], output.detach()[:, 2:]
    error = y - mean
    by_mean = -error * variance ** (beta - 1)
    by_variance = 0.5 * (variance - error.square()) * variance ** (beta - 2)
    torch.testing.assert_close(found, torch.cat([by_mean, by_variance], 1) / y.numel(), rtol=1e-12, atol=1e-14)


def test_targets_of_one_column_may_lack_its_axis_and_others_are_refused():
    output = torch.tensor([[0.0, 1.0], [2.0, 4.0]])
    flat, column = compute_gaussian_loss(output, torch.ones(2), 0.5), compute_gaussian_loss(output, torch.ones(2, 1), 0.5)
    assert flat == column
    with pytest.raises(ValueError, match="shape of the means"):
        compute_gaussian_loss(output, torch.ones(3), 0.5)
    with pytest.raises(ValueError, match="pass example="):
        compute_gaussian_loss(torch.ones(2, 3), torch.ones(2), 0.5)


# --- the head ---------------------------------------------------------------------------------------------------------


class Squeezed(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.body, self.fc, self.change = nn.Linear(4, 8), nn.Linear(8, 1), change

    def forward(self, x):
        return self.change(self.fc(self.body(x).relu()))


def test_the_means_stay_and_the_variance_begins_with_one():
    net, x = build_net(outputs=3).double().eval(), torch.randn(5, 4, dtype=DOUBLE)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    ensemble = pluribus.ensemble(net, pluribus.Single(), task="regression", noise="gaussian")
    p = ensemble.predict(x)
    torch.testing.assert_close(p.mean, net(x).detach(), rtol=0, atol=1e-12)
    assert torch.equal(p.noise_variance, torch.ones(5, 3, dtype=DOUBLE))
    assert [name for name, module in ensemble.net.named_modules() if isinstance(module, NoiseHead)] == ["7"]
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


@pytest.mark.parametrize(
    ("net", "x"),
    [
        (nn.Linear(4, 2), torch.randn(3, 4)),
        (Squeezed(lambda y: y.squeeze(-1)), torch.randn(3, 4)),
        (nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 1, 1)), torch.randn(3, 2, 6, 6)),
        (nn.Sequential(nn.Conv2d(2, 4, 3), nn.ConvTranspose2d(4, 2, 3, stride=2)), torch.randn(3, 2, 6, 6)),
    ],
    ids=["one layer", "squeezed", "convolution", "transposed"],
)
def test_every_kind_of_last_layer_is_widened(net, x):
    ensemble = pluribus.ensemble(net.eval(), pluribus.DeepEnsemble(2), task="regression", noise="beta-nll", example=x)
    p, plain = ensemble.predict(x), net(x).detach()
    torch.testing.assert_close(p.members[0].reshape(plain.shape), plain)
    assert p.noise_variance.shape == p.mean.shape
    loss = ensemble.train().loss(x, torch.randn_like(plain))
    loss.backward()
    assert all(parameter.grad is not None for parameter in ensemble.parameters())


@pytest.mark.parametrize("change", [torch.tanh, lambda y: 10 * y + 3, lambda y: y[:, 0], lambda y: y.repeat(1, 3)])
def test_a_network_that_changes_the_answer_of_its_last_layer_is_refused(change):
    with pytest.raises(ConversionError, match="what its last layer returns"):
        pluribus.ensemble(Squeezed(change), pluribus.Single(), task="regression", noise="gaussian", example=torch.randn(3, 4))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"task": "classification"}, ValueError, "this is a classification"),
        ({"noise": "laplace"}, ValueError, "none, gaussian, beta-nll"),
        ({"net": nn.Sequential(nn.Flatten())}, ConversionError, "has none"),
        ({"net": nn.Sequential(nn.Conv2d(2, 2, 1, groups=2))}, ConversionError, "without groups"),
        ({"net": nn.Sequential(NoiseHead(nn.Linear(4, 2), TargetNoise()))}, ConversionError, "already"),
    ],
)
def test_what_cannot_predict_noise_is_refused(options, error, message):
    made = {"net": build_net(), "task": "regression", "noise": "gaussian"} | options
    with pytest.raises(error, match=message):
        pluribus.ensemble(made.pop("net"), pluribus.Single(), **made)
    with pytest.raises(ValueError, match="beta must be from 0 to 1"):
        TargetNoise(beta=1.5)


def test_variances_neither_vanish_nor_overflow():
    head = NoiseHead(nn.Linear(1, 2, bias=False), TargetNoise())
    with torch.no_grad():
        head.layer.weight.copy_(torch.tensor([[1.0], [1.0]]))
    _, variance = head(torch.tensor([[-1e30], [-1e4], [0.0], [0.01], [1e4], [1e30]])).detach().T
    assert bool((variance[:2] > 9e-14).all())
    assert bool((variance[4:] < 2e13).all())
    assert variance[2] == 1
    assert variance[3] == pytest.approx(math.exp(0.01), rel=1e-5)
    assert head.half()(torch.tensor([[50.0]], dtype=torch.half)).isfinite().all()


# --- both parts of the variance -----------------------------------------------------------------------------------------


def test_the_variance_is_the_mean_noise_plus_the_spread_of_the_means():
    """That of the mixture itself: E var + var E."""
    torch.manual_seed(0)
    mean, noise = torch.randn(4, 6, 2, dtype=DOUBLE), torch.rand(4, 6, 2, dtype=DOUBLE)
    p = Predictive(torch.cat([mean, noise], 2), "regression", has_noise=True)
    torch.testing.assert_close(p.members, mean)
    torch.testing.assert_close(p.mean, sum(mean) / 4)
    torch.testing.assert_close(p.noise_variance, sum(noise) / 4)
    torch.testing.assert_close(p.spread_variance, sum((mean - sum(mean) / 4) ** 2) / 4)
    second_moment = sum(mean**2 + noise) / 4
    torch.testing.assert_close(p.variance, second_moment - p.mean**2, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(p.std, p.variance.sqrt())
    check_same_averages(p.summarize(), p)
    both = Predictive.cat([p, p])
    assert both.has_noise
    assert len(both) == 12


def test_other_units_scale_standard_deviations():
    torch.manual_seed(0)
    p = Predictive(torch.rand(3, 5, 2, dtype=DOUBLE), "regression", has_noise=True)
    for made in (p.rescale(100.0, 7.0), p.summarize().rescale(100.0, 7.0)):
        torch.testing.assert_close(made.mean, 100 * p.mean + 7)
        torch.testing.assert_close(made.noise_variance, 1e4 * p.noise_variance)
        torch.testing.assert_close(made.spread_variance, 1e4 * p.spread_variance)


def test_members_that_predict_no_noise_have_none():
    p = Predictive(torch.randn(3, 5, 2), "regression")
    assert not p.has_noise
    assert not p.summarize().has_noise
    assert torch.equal(p.variance, p.spread_variance)
    assert not p.noise_variance.any()
    with pytest.raises(ValueError, match="means and variances"):
        Predictive(torch.randn(3, 5, 3), "regression", has_noise=True)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_predicts_noise_with_and_without_members_in_chunks_and_for_some(name, monkeypatch):
    ensemble, x = build_ensemble(METHODS[name].spec, outputs=2)
    count = METHODS[name].members
    for most in (execution.CHUNK_SIZE, 64):
        monkeypatch.setattr(execution, "CHUNK_SIZE", most)
        torch.manual_seed(1)
        full = ensemble.predict(x, batch_size=3)
        torch.manual_seed(1)
        short = ensemble.predict(x, batch_size=3, members=False)
        assert full.outputs.shape == (count, 7, 4)
        check_same_averages(short, full)
    assert full.noise_variance.std() > 0
    assert (full.spread_variance.max() > 0) == (count > 1)
    if not draws_noise(ensemble) and count > 1:
        some = ensemble.predict(x, members=[1])
        torch.testing.assert_close(some.noise_variance, full.member_noise[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_saved_folded_and_frozen_it_has_the_same_parts(name, tmp_path):
    ensemble, x = build_ensemble(METHODS[name].spec, noise=TargetNoise(beta=0.3))
    ensemble.predict(x)
    ensemble = ensemble.freeze(3) if ensemble.sampled else ensemble
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "noisy"), build_net().double()).eval()
    assert again.noise == TargetNoise(beta=0.3)
    torch.manual_seed(1)
    p = ensemble.predict(x)
    torch.manual_seed(1)
    assert torch.equal(again.predict(x).outputs, p.outputs)
    if draws_noise(ensemble):
        return
    try:
        folded = ensemble.interpret(ensemble.fold()(x))
    except Unsupported:
        return
    torch.testing.assert_close(folded.noise_variance, p.noise_variance, rtol=0, atol=1e-10)
    torch.testing.assert_close(folded.spread_variance, p.spread_variance, rtol=0, atol=1e-10)
    torch.testing.assert_close(ensemble.member(0)(x), p.outputs[0], rtol=0, atol=1e-10)


def test_a_file_whose_noise_is_damaged_is_refused():
    from pluribus.core.target_distribution import restore_head

    for about in ({"layer": "7"}, {"layer": 7, "beta": 0.5}, {"layer": "7", "beta": 7}, {"layer": "1", "beta": 0.5}, [1]):
        with pytest.raises(FileError):
            restore_head(build_net(), {"noise": about})


def test_a_gradient_reaches_every_parameter_of_the_loss_and_a_deep_ensemble_trains_each_member_alone():
    ensemble, x = build_ensemble(pluribus.DeepEnsemble(3), noise="gaussian")
    y = torch.randn(7, dtype=DOUBLE)
    outputs = ensemble(x)
    alone = sum(compute_gaussian_loss(output, y, 0.0) for output in outputs)
    torch.testing.assert_close(ensemble.loss(x, y), alone)


def test_it_says_what_predicts_the_noise():
    ensemble, _ = build_ensemble(pluribus.Single())
    assert "means and variances" in str(ensemble.describe())


def test_noise_that_depends_on_the_input_is_learnt():
    """y = x + (0.1 + |x|) z: the standard deviation that is learnt is within 25 % of the true one, on average."""
    torch.manual_seed(0)
    x = torch.rand(2000, 1) * 2 - 1
    y = x[:, 0] + (0.1 + x[:, 0].abs()) * torch.randn(2000)
    net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 1))
    ensemble = pluribus.ensemble(net, pluribus.Single(), task="regression", noise="beta-nll")
    history = pluribus.fit(ensemble, (x, y), (x, y), epochs=10, lr=0.02, batch_size=64, progress=False)
    assert history[-1]["validation_nll"] < history[0]["validation_nll"]
    p, true = ensemble.predict(x), 0.1 + x.abs()
    assert ((p.noise_variance.sqrt() - true).abs() / true).mean() < 0.25
    assert p.spread_variance.max() == 0
