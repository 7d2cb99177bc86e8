"""Lines through medians."""

import pytest

from pluribus import Spec
from pluribus.analysis.timing import Ratio
from pluribus.bench.growth import AXES, fit_line, fit_lines, list_growth_keys, plan_growth
from pluribus.bench.measurement import CostRatios


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("pluribus.analysis.timing.MIN_SECONDS", 0.0)


def test_a_straight_line_is_found_exactly():
    found = fit_line([(n, 0.9 * n + 0.2) for n in (1, 2, 4, 8, 16)])
    assert (found.slope, found.intercept) == pytest.approx((0.9, 0.2))
    assert found.off == pytest.approx(0, abs=1e-12)


def test_the_deviation_is_the_largest_either_way_and_where_it_is():
    found = fit_line([(0, 0.0), (1, 1.0), (2, 2.0 - 3.0), (3, 3.0), (4, 4.0)])
    assert (found.slope, found.intercept) == pytest.approx((1.0, -0.6))
    assert (found.off, found.at) == (pytest.approx(2.4), 2)


def test_a_line_in_members_begins_with_the_base_network():
    (job,) = [job for job in plan_growth(["mlp"], ["mimo"]) if job.measurement.workload == "forward"]
    found = {str(n): CostRatios(Ratio(1 + 0.1 * n, 1, 9), memory=1.0 * n, flops=None) for n in (2, 4, 8, 16)}
    (row,) = job.make_rows(found)
    assert [point["at"] for point in row["points"]] == [1, 2, 4, 8, 16]
    assert row["points"][0]["time"]["median"] == 1
    assert row["lines"]["memory"]["slope"] == pytest.approx(1)
    assert row["lines"]["flops"] is None  # not all could be counted


def test_every_count_makes_another_size_of_the_method():
    assert {axis.letter for axis in AXES} >= {kind.growth_axis for kind in Spec.registry.values()} - {None}
    grown = {method for _, method, _, _ in list_growth_keys()}
    assert set(Spec.registry) - grown == {"single", "maxout", "variational-dropout"}
    for job in plan_growth(["mlp"], ["inner", "mc-dropout"]):
        counts = [int(candidate.name) for candidate in job.measurement.candidates]
        x, _ = job.measurement.network.draw_batch(2)
        specs = [candidate.build(job.measurement.network.make(), x).spec for candidate in job.measurement.candidates]
        assert [getattr(spec, spec.size_option) for spec in specs] == counts


def test_growth_with_draws_is_measured_by_what_predict_takes():
    (job,) = plan_growth(["mlp"], ["variance"])
    (row,) = job.make_rows(job.measurement.run(2, 1, lambda timings: None))
    assert [point["at"] for point in row["points"]] == [1, 2, 5, 10, 20, 50, 100, 200]
    assert row["lines"]["flops"]["slope"] > 0
    assert row["lines"] == fit_lines(row["points"])
