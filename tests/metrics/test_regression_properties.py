"""The metrics of regressions, and the bootstrap, against scipy, scikit-learn and all resamples one by one."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import ndtr
from sklearn.metrics import mean_squared_error

from pluribus import Predictive
from pluribus.metrics import rmse
from pluribus.metrics.intervals import bootstrap
from pluribus.metrics.regression import TINY, coverage, crps, gaussian_nll

from .strategies import DTYPES, near, regressions, repeatable

NOISES = st.sampled_from([0.0, 0.25, 4.0])


def gaussians(p, targets, noise):
    """Mean, deviation and target of every answer, from the members in double precision."""
    values = p.outputs.double().numpy().reshape(len(p.outputs), -1)
    std = np.sqrt(np.maximum(values.var(0) + noise, TINY))
    return values.mean(0), std, targets.double().numpy().flatten()


@repeatable
@given(regressions())
def test_rmse_is_the_root_of_scikit_learns_error_of_the_mean(case):
    p, targets = case
    mean, _, y = gaussians(p, targets, 0.0)
    assert rmse(p, targets) == near(math.sqrt(mean_squared_error(y, mean)), p, scale=10)


@repeatable
@given(regressions(), NOISES)
def test_nll_is_scipys_density_of_the_gaussian(case, noise):
    p, targets = case
    mean, std, y = gaussians(p, targets, noise)
    assert gaussian_nll(p, targets, noise) == near(-stats.norm(mean, std).logpdf(y).mean(), p)


def test_members_that_are_equal_in_single_precision_have_no_spread():
    """In single precision their mean is another number, and their variance 5.8e-11: the NLL was a 58th of what it is."""
    p = Predictive(torch.full((3, 1), 106.12279), "regression")
    assert gaussian_nll(p, torch.tensor([92.0])) == pytest.approx((p.outputs[0].item() - 92) ** 2 / (2 * TINY), rel=1e-6)


@settings(repeatable, max_examples=40)
@given(regressions(rows=2), NOISES)
def test_crps_is_the_area_between_the_distribution_and_the_step_at_the_target(case, noise):
    """In units of the deviation, to twenty of them; beyond, the distribution is the step at its mean."""
    p, targets = case
    areas = []
    for mean, std, y in zip(*gaussians(p, targets, noise), strict=True):
        z = (y - mean) / std
        near_z = float(np.clip(z, -20, 20))
        below, _ = integrate.quad(lambda t: ndtr(t) ** 2, -40, near_z, points=(0,), limit=200)
        above, _ = integrate.quad(lambda t: ndtr(-t) ** 2, near_z, 40, points=(0,), limit=200)
        areas.append(std * (below + above + abs(z - near_z)))
    assert crps(p, targets, noise) == pytest.approx(np.mean(areas), rel=1e-5, abs=2e-6)


@repeatable
@given(regressions(), NOISES, st.sampled_from([0.05, 0.5, 0.95, 0.999]))
def test_coverage_counts_the_targets_in_scipys_central_interval(case, noise, share):
    p, targets = case
    mean, std, y = gaussians(p, targets, noise)
    low, high = stats.norm(mean, std).interval(share)
    assume((np.minimum(abs(y - low), abs(y - high)) > 1e-9 * (1 + abs(y))).all())  # on an end, rounding may choose
    assert coverage(p, targets, share, noise) == pytest.approx(np.mean((low <= y) & (y <= high)))


# --- the bootstrap ------------------------------------------------------------------------------------------------------

ROWS = st.builds(torch.tensor, st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=4), dtype=DTYPES)


@settings(repeatable, max_examples=30)
@given(ROWS, st.integers(0, 9))
def test_the_bounds_are_quantiles_over_all_resamples(rows, seed):
    """Of 1000 draws the distribution is off by less than 0.085 with a probability of 1 − 10⁻⁶ (Dvoretzky–Kiefer–Wolfowitz)."""
    value, *bounds = bootstrap(rows, share=0.5, seed=seed)
    means = np.array([np.mean(pick) for pick in itertools.product(rows.tolist(), repeat=len(rows))])
    assert value == pytest.approx(np.mean(rows.tolist()))
    for bound, level in zip(bounds, (0.25, 0.75), strict=True):
        assert np.mean(means <= bound + 1e-9) > level - 0.085
        assert np.mean(means < bound - 1e-9) < level + 0.085


@settings(repeatable, max_examples=30)
@given(ROWS, st.integers(0, 9), st.sampled_from([0.5, 0.9, 0.95]))
def test_the_bounds_are_numpys_quantiles_of_what_was_drawn_whichever_way_the_statistic_is_given(rows, seed, share):
    seen = []

    def mean(drawn):
        seen.append(drawn.mean().item())
        return drawn.mean()

    found = bootstrap(rows, mean, share=share, draws=200, seed=seed)
    whole, drawn = seen[0], seen[1:]
    assert found == pytest.approx((whole, *np.quantile(drawn, [(1 - share) / 2, (1 + share) / 2])), abs=1e-12)
    assert found == pytest.approx(bootstrap(rows, share=share, draws=200, seed=seed), abs=1e-12)


@repeatable
@given(
    st.lists(st.sampled_from([-1.0, 0.5, 2.0, math.inf]), min_size=1, max_size=9),
    st.sampled_from([1, -1]),
    st.sampled_from([Fraction(1, 2), Fraction(4, 5), Fraction(0)]),
)
def test_infinite_draws_make_bounds_infinite_where_they_are_reached_but_never_nan(draws, sign, share):
    """As an NLL is, where a target was held impossible. Between a finite and an infinite draw every place is infinite."""
    ordered, told = sorted(sign * draw for draw in draws), iter([0.0, *(sign * draw for draw in draws)])
    _, *bounds = bootstrap(torch.zeros(2), lambda _: torch.tensor(next(told)), share=float(share), draws=len(draws))
    for bound, level in zip(bounds, ((1 - share) / 2, (1 + share) / 2), strict=True):
        place = level * (len(draws) - 1)
        low, high, weight = ordered[math.floor(place)], ordered[math.ceil(place)], float(place % 1)
        infinite = [value for value in (low, high) if math.isinf(value)]
        assume(not infinite or low == high or 0.01 < weight < 0.99)  # on a draw, rounding may reach for the next
        assert bound == (infinite[0] if infinite else pytest.approx(low + weight * (high - low), abs=1e-12))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_row_of_many_that_is_infinite_is_seen_in_one_bound(sign):
    """A resample of 101 rows is without it, and finite, with a probability of (100/101)¹⁰¹ = 0.37."""
    value, *bounds = bootstrap(sign * torch.tensor([1.0] * 100 + [math.inf]))
    assert value == sign * math.inf
    assert sorted(bounds, key=abs) == [sign, sign * math.inf]
