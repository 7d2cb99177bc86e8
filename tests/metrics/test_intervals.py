import math

import numpy as np
import pytest
import torch

from pluribus.metrics.intervals import bootstrap, central_interval, quantile


def test_the_interval_of_a_mean_is_that_of_the_normal_theory():
    rows = torch.randn(2000, generator=torch.Generator().manual_seed(0)) + 3
    value, low, high = bootstrap(rows, draws=2000)
    half = 1.96 * rows.std().item() / 2000**0.5
    assert value == pytest.approx(rows.double().mean().item())
    assert low == pytest.approx(value - half, abs=0.1 * half)
    assert high == pytest.approx(value + half, abs=0.1 * half)


def test_a_statistic_of_ones_own_is_drawn_over_the_same_rows():
    rows = torch.rand(300, 2, generator=torch.Generator().manual_seed(1))
    by_hand = bootstrap(rows[:, 0] - rows[:, 1], seed=4, draws=200)
    own = bootstrap(rows, lambda r: (r[:, 0] - r[:, 1]).mean(), seed=4, draws=200)
    assert own == pytest.approx(by_hand, abs=1e-6)


def test_it_repeats_by_its_seed_and_needs_rows():
    rows = torch.rand(50)
    assert bootstrap(rows, seed=1) == bootstrap(rows, seed=1) != bootstrap(rows, seed=2)
    with pytest.raises(ValueError, match="at least one row"):
        bootstrap(torch.tensor([]))


def test_intervals_hold_the_truth_as_often_as_they_say():
    """90 % intervals of 300 samples: the binomial spread of the count is √(300·0.9·0.1) = 5.2."""
    generator = torch.Generator().manual_seed(2)
    inside = 0
    for trial in range(300):
        _, low, high = bootstrap(torch.randn(60, generator=generator), share=0.9, draws=200, seed=trial)
        inside += low <= 0 <= high
    assert abs(inside - 270) < 4 * 5.2


@pytest.mark.parametrize("size", [1, 2, 7, 100])
@pytest.mark.parametrize("level", [0.0, 0.025, 0.25, 0.5, 0.975, 1.0])
def test_a_quantile_is_numpys_of_a_tensor_or_a_list_in_any_order(size, level):
    values = torch.randn(size, dtype=torch.double)
    assert quantile(values, level) == pytest.approx(np.quantile(values.numpy(), level), abs=1e-12)
    assert quantile(values.tolist(), level) == quantile(values, level)


def test_the_central_interval_leaves_out_as_much_on_either_side():
    assert central_interval([float(value) for value in range(101)], 0.9) == pytest.approx((5.0, 95.0))


def test_a_quantile_next_to_an_infinite_value_is_infinite_and_never_nan():
    assert quantile([0.0, 1.0, math.inf], 0.75) == math.inf
    assert quantile([-math.inf, -math.inf, 1.0], 0.25) == -math.inf
    assert quantile([0.0, 1.0, math.inf], 0.5) == 1.0
    with pytest.raises(ValueError, match="at least one value"):
        quantile([], 0.5)


def test_resamples_are_drawn_one_after_the_other_each_with_as_many_rows():
    seen = []
    bootstrap(torch.rand(20, 3), lambda rows: seen.append(rows.shape) or rows.sum(), draws=5)
    assert seen == [(20, 3)] * 6
