import pytest
import torch

from pluribus.metrics.intervals import bootstrap


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
