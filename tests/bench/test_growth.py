"""Lines through medians."""

import pytest

from pluribus.analysis.timing import Ratio
from pluribus.bench.growth import AXES, fit_line, fit_lines, plan_growth
from pluribus.bench.measurement import CostRatios
from pluribus.bench.targets import METHODS


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("pluribus.bench.race.SLICE", 0.0)


def test_a_straight_line_is_found_exactly():
    found = fit_line([(n, 0.9 * n + 0.2) for n in (1, 2, 4, 8, 16)])
    assert (found.slope, found.intercept) == pytest.approx((0.9, 0.2))
    assert found.off == pytest.approx(0, abs=1e-12)


def test_the_deviation_is_the_largest_either_way_and_where_it_is():
    found = fit_line([(0, 0.0), (1, 1.0), (2, 2.0 - 3.0), (3, 3.0), (4, 4.0)])
    assert (found.slope, found.intercept) == pytest.approx((1.0, -0.6))
    assert (found.off, found.at) == (pytest.approx(2.4), 2)


def test_a_line_in_members_begins_with_the_base_network():
    (job,) = [job for job in plan_growth(["mlp"], ["mimo"]) if job.heat.work == "forward"]
    found = {str(n): CostRatios(Ratio(1 + 0.1 * n, 1, 9), memory=1.0 * n, flops=None) for n in (2, 4, 8, 16)}
    (row,) = job.rows(found)
    assert [point["at"] for point in row["points"]] == [1, 2, 4, 8, 16]
    assert row["points"][0]["time"]["median"] == 1
    assert row["lines"]["memory"]["slope"] == pytest.approx(1)
    assert row["lines"]["flops"] is None  # not all could be counted


def test_every_count_makes_another_size_of_the_method():
    for axis in AXES:
        assert set(axis.options) <= set(METHODS)
        for method, option in axis.options.items():
            assert hasattr(METHODS[method], option)
    counted = {method for axis in AXES for method in axis.options}
    assert set(METHODS) - counted == {"single", "maxout", "variational-dropout"}


def test_growth_with_draws_is_measured_by_what_predict_takes():
    (job,) = plan_growth(["mlp"], ["variance"])
    (row,) = job.rows(job.heat.run(2, 1, lambda slices: None))
    assert [point["at"] for point in row["points"]] == [1, 2, 5, 10, 20, 50, 100, 200]
    assert row["lines"]["flops"]["slope"] > 0
    assert row["lines"] == fit_lines(row["points"])
