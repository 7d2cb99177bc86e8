"""Regression whose members predict quantiles: the loss, the head, and how members' quantiles become one answer."""

import numpy as np
import pytest
import torch
from torch import nn

import pluribus
from pluribus import ConversionError, FileError, Predictive, TargetQuantiles, Unsupported
from pluribus.core import execution
from pluribus.core.target_distribution import restore_head
from pluribus.core.target_quantiles import QuantileHead, compute_pinball, compute_quantile_loss, read_quantiles
from tests.contract_rows import METHODS, check_same_averages
from tests.core.test_target_noise import build_net, draws_noise

DOUBLE = torch.double
LEVELS = (0.1, 0.5, 0.9)


def build_ensemble(spec, outputs=1, levels=LEVELS):
    """An ensemble in double precision whose quantiles differ from row to row, and seven rows."""
    torch.manual_seed(0)
    x = torch.randn(7, 4, dtype=DOUBLE)
    ensemble = pluribus.ensemble(build_net(outputs).double(), spec, task="regression", quantiles=levels, example=x[:2])
    with torch.no_grad():
        for parameter in ensemble.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return ensemble.eval(), x


# --- the loss ---------------------------------------------------------------------------------------------------------


def test_the_pinball_loss_weighs_errors_above_the_quantile_by_its_level_and_those_below_by_the_rest():
    error = torch.tensor([3.0, -3.0, 0.0], dtype=DOUBLE)
    torch.testing.assert_close(compute_pinball(error, 0.9), torch.tensor([2.7, 0.3, 0.0], dtype=DOUBLE))
    assert torch.equal(compute_pinball(error, 0.5), error.abs() / 2)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_pinball_loss_of_a_sample_is_least_at_its_quantile(level):
    """Of 1,001 exponential numbers, against all candidates on a grid of 0.01."""
    y = torch.empty(1001, dtype=DOUBLE).exponential_(generator=torch.Generator().manual_seed(0))
    grid = torch.arange(0, 5, 0.01, dtype=DOUBLE)
    best = grid[compute_pinball(y.unsqueeze(1) - grid, level).mean(0).argmin()]
    assert abs(best - y.quantile(level)) <= 0.01


def test_the_loss_is_the_squared_error_of_the_mean_plus_each_quantiles_pinball_loss():
    """∂/∂μ = −2(y − μ), and ∂/∂q_τ is −τ where the target lies above, 1 − τ where below; divided by the number of targets."""
    torch.manual_seed(0)
    output, y = torch.randn(50, 8, dtype=DOUBLE, requires_grad=True), torch.randn(50, 2, dtype=DOUBLE)
    mean, *quantiles = output.detach().chunk(4, 1)
    loss = compute_quantile_loss(output, y, LEVELS)
    expected = (y - mean).square() + sum(compute_pinball(y - q, n) for q, n in zip(quantiles, LEVELS, strict=True))
    torch.testing.assert_close(loss.detach(), expected.mean(), rtol=1e-12, atol=0)
    (found,) = torch.autograd.grad(loss, output)
    slopes = [(y <= q).double() - n for q, n in zip(quantiles, LEVELS, strict=True)]
    torch.testing.assert_close(found, torch.cat([-2 * (y - mean), *slopes], 1) / y.numel(), rtol=1e-12, atol=1e-14)


def test_sorting_never_increases_the_loss():
    torch.manual_seed(0)
    crossed, y = torch.randn(300, 4, dtype=DOUBLE), torch.randn(300, dtype=DOUBLE)
    ordered = torch.cat([crossed[:, :1], crossed[:, 1:].sort(1).values], 1)
    for before, after, target in zip(crossed.split(1), ordered.split(1), y, strict=True):
        pair = [compute_quantile_loss(output, target.view(1), LEVELS) for output in (before, after)]
        assert pair[1] <= pair[0] + 1e-12


def test_targets_and_outputs_that_do_not_fit_are_refused():
    output = torch.tensor([[0.0, -1.0, 1.0], [2.0, 1.0, 4.0]])
    flat, column = (compute_quantile_loss(output, y, (0.1, 0.9)) for y in (torch.ones(2), torch.ones(2, 1)))
    assert flat == column
    with pytest.raises(ValueError, match="shape of the means"):
        compute_quantile_loss(output, torch.ones(3), (0.1, 0.9))
    with pytest.raises(ValueError, match="pass example="):
        compute_quantile_loss(torch.ones(2, 4), torch.ones(2), (0.1, 0.9))


# --- the head ---------------------------------------------------------------------------------------------------------


def test_the_means_stay_and_the_quantiles_begin_as_those_of_standardised_targets():
    net, x = build_net(outputs=3).double().eval(), torch.randn(5, 4, dtype=DOUBLE)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    ensemble = pluribus.ensemble(net, pluribus.Single(), task="regression", quantiles=[0.025, 0.5, 0.975])
    p = ensemble.predict(x)
    torch.testing.assert_close(p.mean, net(x).detach(), rtol=0, atol=1e-12)
    assert p.quantile_levels == ensemble.quantile_levels == (0.025, 0.5, 0.975)
    starts = torch.tensor([-1.959964, 0.0, 1.959964], dtype=DOUBLE).view(3, 1, 1).expand(3, 5, 3)
    torch.testing.assert_close(p.quantiles, starts, rtol=0, atol=1e-6)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_quantiles_never_cross_and_a_wrong_order_is_sorted():
    head = QuantileHead(nn.Linear(1, 3, bias=False), TargetQuantiles((0.1, 0.9)))
    with torch.no_grad():
        head.layer.weight.copy_(torch.tensor([[7.0], [5.0], [-5.0]]))  # at x = 1 the lower one lies above
    mean, low, high = head(torch.tensor([[1.0]])).detach()[0]
    assert (mean.item(), low.item(), high.item()) == pytest.approx((7.0, -5 + 1.2816, 5 - 1.2816), abs=1e-3)
    ensemble, x = build_ensemble(pluribus.DeepEnsemble(3), outputs=2)
    assert bool((ensemble.predict(x).member_quantiles.diff(dim=0) >= 0).all())
    assert bool((ensemble.predict(100 * x).quantiles.diff(dim=0) >= 0).all())


@pytest.mark.parametrize(
    ("net", "x"),
    [
        (nn.Linear(4, 2), torch.randn(3, 4)),
        (nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), torch.randn(3, 4)),
        (nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 1, 1)), torch.randn(3, 2, 6, 6)),
        (nn.Sequential(nn.Conv2d(2, 4, 3), nn.ConvTranspose2d(4, 2, 3, stride=2)), torch.randn(3, 2, 6, 6)),
    ],
    ids=["one layer", "flattened", "convolution", "transposed"],
)
def test_every_kind_of_last_layer_is_widened_or_refused(net, x):
    options = {"task": "regression", "quantiles": LEVELS, "example": x}
    if isinstance(net[-1] if isinstance(net, nn.Sequential) else net, nn.Flatten):
        with pytest.raises(ConversionError, match="quantiles= gives the last layer 4 times its outputs"):
            pluribus.ensemble(net.eval(), pluribus.Single(), **options)
        return
    ensemble = pluribus.ensemble(net.eval(), pluribus.DeepEnsemble(2), **options)
    p, plain = ensemble.predict(x), net(x).detach()
    torch.testing.assert_close(p.members[0], plain)
    assert p.quantiles.shape == (3, *plain.shape)
    ensemble.train().loss(x, torch.randn_like(plain)).backward()
    assert all(parameter.grad is not None for parameter in ensemble.parameters())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"task": "classification"}, ValueError, "this is a classification"),
        ({"noise": "gaussian"}, ValueError, "choose one of them"),
        *(
            ({"quantiles": wrong}, ValueError, "2 to 99 rising numbers between 0 and 1")
            for wrong in (
                (0.9, 0.1),
                (0.5,),
                (),
                (0.1, 1.0),
                (0.0, 0.5),
                0.5,
                "0.1,0.9",
                (0.1, float("nan")),
                (0.1, "0.9"),
                (0.5, 0.5),
            )
        ),
        ({"net": nn.Sequential(nn.Flatten())}, ConversionError, "quantiles= needs a last layer"),
        ({"net": nn.Sequential(nn.Conv2d(2, 2, 1, groups=2))}, ConversionError, "without groups"),
        ({"net": QuantileHead(nn.Linear(4, 3), TargetQuantiles((0.1, 0.9)))}, ConversionError, "already: leave quantiles= out"),
    ],
)
def test_what_cannot_predict_quantiles_is_refused(options, error, message):
    made = {"net": build_net(), "task": "regression", "quantiles": (0.1, 0.9)} | options
    with pytest.raises(error, match=message):
        pluribus.ensemble(made.pop("net"), pluribus.Single(), **made)


# --- members ----------------------------------------------------------------------------------------------------------


def test_the_quantile_of_each_level_is_the_mean_of_the_members_quantiles():
    """By hand, in other units, and without members."""
    torch.manual_seed(0)
    mean = torch.randn(4, 6, 2, dtype=DOUBLE)
    low, high = mean - torch.rand(4, 6, 2, dtype=DOUBLE), mean + torch.rand(4, 6, 2, dtype=DOUBLE)
    p = Predictive(torch.cat([mean, low, high], 2), "regression", quantile_levels=(0.1, 0.9))
    torch.testing.assert_close(p.members, mean)
    torch.testing.assert_close(p.member_quantiles, torch.stack([low, high]))
    torch.testing.assert_close(p.quantiles, torch.stack([sum(low) / 4, sum(high) / 4]))
    torch.testing.assert_close(p.spread_variance, mean.var(0, correction=0))
    assert torch.equal(p.variance, p.spread_variance)
    for made in (p.rescale(100.0, 7.0), p.summarize().rescale(100.0, 7.0)):
        torch.testing.assert_close(made.quantiles, 100 * p.quantiles + 7)
        torch.testing.assert_close(made.mean, 100 * p.mean + 7)
        torch.testing.assert_close(made.spread_variance, 1e4 * p.spread_variance)
    for both in (Predictive.cat([p, p]), pluribus.PredictiveSummary.cat([p.summarize(), p.summarize()])):
        torch.testing.assert_close(both.quantiles, torch.cat([p.quantiles, p.quantiles], 1))


def test_a_prediction_without_quantiles_says_how_to_get_them():
    p = Predictive(torch.randn(3, 5, 2), "regression")
    for each in (p, p.summarize()):
        with pytest.raises(AttributeError, match="convert with quantiles="):
            _ = each.quantiles
    with pytest.raises(ValueError, match="3C"):
        Predictive(torch.randn(3, 5, 4), "regression", quantile_levels=(0.1, 0.9))
    with pytest.raises(ValueError, match="excludes"):
        Predictive(torch.randn(3, 5, 6), "regression", has_noise=True, quantile_levels=(0.1, 0.9))


def test_a_row_with_an_infinite_quantile_is_not_finite():
    p = Predictive(torch.tensor([[[0.0, -1.0, torch.inf], [0.0, -1.0, 1.0]]]), "regression", quantile_levels=(0.1, 0.9))
    assert p.is_finite.tolist() == p.summarize().is_finite.tolist() == [False, True]


def test_levels_may_be_any_row_of_numbers():
    found = {read_quantiles(levels) for levels in ([0.1, 0.9], (0.1, 0.9), np.array([0.1, 0.9]), TargetQuantiles((0.1, 0.9)))}
    assert found == {TargetQuantiles((0.1, 0.9))}
    assert read_quantiles(torch.tensor([0.25, 0.5])) == TargetQuantiles((0.25, 0.5))
    with pytest.raises(ValueError, match="rising"):
        read_quantiles(np.float64(0.5))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_predicts_quantiles_with_and_without_members_in_chunks_and_for_some(name, monkeypatch):
    ensemble, x = build_ensemble(METHODS[name].spec, outputs=2)
    count = METHODS[name].members
    for most in (execution.CHUNK_SIZE, 64):
        monkeypatch.setattr(execution, "CHUNK_SIZE", most)
        torch.manual_seed(1)
        full = ensemble.predict(x, batch_size=3)
        torch.manual_seed(1)
        short = ensemble.predict(x, batch_size=3, members=False)
        assert full.outputs.shape == (count, 7, 8)
        assert short.quantile_levels == LEVELS
        check_same_averages(short, full)
        torch.testing.assert_close(short.quantiles, full.quantiles, rtol=0, atol=1e-12)
    assert full.quantiles.shape == (3, 7, 2)
    assert full.quantiles.std(1).min() > 0
    if not draws_noise(ensemble) and count > 1:
        torch.testing.assert_close(ensemble.predict(x, members=[1]).quantiles, full.member_quantiles[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_saved_folded_and_frozen_it_has_the_same_quantiles(name, tmp_path):
    ensemble, x = build_ensemble(METHODS[name].spec)
    ensemble.predict(x)
    ensemble = ensemble.freeze(3) if ensemble.sampled else ensemble
    again = pluribus.load(pluribus.save(ensemble, tmp_path / "ends"), build_net().double()).eval()
    assert again.quantile_levels == LEVELS
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
    torch.testing.assert_close(folded.quantiles, p.quantiles, rtol=0, atol=1e-10)
    torch.testing.assert_close(ensemble.member(0)(x), p.outputs[0], rtol=0, atol=1e-10)


def test_a_file_whose_quantiles_are_damaged_is_refused():
    wrong = ({"layer": "7"}, {"layer": 7, "levels": [0.1, 0.9]}, {"layer": "7", "levels": [0.9, 0.1]}, [1])
    for about in (
        *wrong,
        {"layer": "1", "levels": [0.1, 0.9]},
        {"layer": "7", "levels": ["a", "b"]},
        {"layer": "7", "levels": 3},
    ):
        with pytest.raises(FileError):
            restore_head(build_net(), {"quantiles": about})


def test_a_deep_ensemble_trains_each_member_alone_and_says_what_it_predicts():
    ensemble, x = build_ensemble(pluribus.DeepEnsemble(3))
    y = torch.randn(7, dtype=DOUBLE)
    alone = sum(compute_quantile_loss(output, y, LEVELS) for output in ensemble(x))
    torch.testing.assert_close(ensemble.loss(x, y), alone)
    assert "the quantiles 0.1, 0.5, 0.9" in str(ensemble.describe())


def test_quantiles_that_depend_on_the_input_are_learnt():
    """y = x + (0.1 + |x|) e with exponential e, which are 0.06 and 1.4 wide on average at the levels 0.1 and 0.9: the quantiles
    are off by less than 0.03 and 0.25, and hold their shares of 2,000 targets within 4 σ (0.027)."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2000, 1, generator=generator) * 2 - 1
    width = 0.1 + x[:, 0].abs()
    y = x[:, 0] + width * torch.empty(2000).exponential_(generator=generator)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 1))
    ensemble = pluribus.ensemble(net, pluribus.Single(), task="regression", quantiles=(0.1, 0.9))
    history = pluribus.fit(ensemble, (x, y), (x, y), epochs=10, lr=0.02, batch_size=64, progress=False)
    assert history[-1]["validation_pinball"] < history[0]["validation_pinball"]
    p = ensemble.predict(x)
    for found, level, most in zip(p.quantiles, (0.1, 0.9), (0.03, 0.25), strict=True):
        true = x[:, 0] - width * torch.tensor(1 - level).log()
        assert (found[:, 0] - true).abs().mean() < most
        assert abs((y <= found[:, 0]).double().mean() - level) < 0.027
    assert pluribus.metrics.pinball(p, y) == pytest.approx(history[-1]["validation_pinball"], rel=1e-4)
