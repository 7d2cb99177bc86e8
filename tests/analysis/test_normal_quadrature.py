"""Expectations by quadrature, against closed forms and against SciPy."""

import math

import pytest
import torch
from scipy import integrate, stats

from pluribus.analysis import compute_maximum_moments
from pluribus.analysis.normal_quadrature import integrate_normal


@pytest.mark.parametrize(("power", "moment"), [(0, 1), (1, 0), (2, 1), (4, 3), (8, 105), (12, 10_395)])
def test_moments_of_the_normal_distribution(power, moment):
    assert integrate_normal(lambda z: z**power) == pytest.approx(moment, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("count", [1, 2, 10, 1000, 10**6])
def test_the_density_of_a_maximum_adds_up_to_one(count):
    assert integrate_normal(torch.ones_like, count) == pytest.approx(1, rel=1e-12)


CLOSED_FORMS = {
    1: (0.0, 1.0),
    2: (1 / math.sqrt(math.pi), 1 - 1 / math.pi),
    3: (1.5 / math.sqrt(math.pi), 1 + math.sqrt(3) / (2 * math.pi) - 9 / (4 * math.pi)),
}


@pytest.mark.parametrize("count", CLOSED_FORMS)
def test_the_maximum_of_up_to_three_has_its_closed_form(count):
    assert compute_maximum_moments(count) == pytest.approx(CLOSED_FORMS[count], rel=1e-13, abs=1e-14)


@pytest.mark.parametrize(("count", "variance"), [(2, 0.682), (4, 0.492), (8, 0.373)])
def test_the_variance_of_a_maximum_is_that_of_another_quadrature(count, variance):
    def density(z):
        return count * stats.norm.pdf(z) * stats.norm.cdf(z) ** (count - 1)

    mean = integrate.quad(lambda z: z * density(z), -10, 10, epsabs=1e-13, epsrel=1e-13)[0]
    theirs = integrate.quad(lambda z: (z - mean) ** 2 * density(z), -10, 10, epsabs=1e-13, epsrel=1e-13)[0]
    assert compute_maximum_moments(count) == pytest.approx((mean, theirs), rel=1e-11)
    assert round(theirs, 3) == variance


def test_the_maximum_of_none_is_refused():
    with pytest.raises(ValueError, match="count must be at least 1"):
        compute_maximum_moments(0)
