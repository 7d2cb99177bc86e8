"""Equivalents, calibrated NLL and both sizes in every form of a report; older results look as they did."""

import csv
import io
import json
import math
from pathlib import Path

import pytest

from pluribus.comparison.result_objects import Comparison
from pluribus.reports import format_csv, format_markdown, render_fragment, render_page, write_summary_figure
from pluribus.reports.figures import make_figures
from pluribus.reports.figures.cost import make_equivalents_figure, make_lead_figure
from pluribus.reports.table_columns import CLASSIFICATION, EQUIVALENTS, STORED, select_columns
from pluribus.reports.values import Value, format_with_spread

from . import sample

RECORDED = sorted((Path(__file__).parents[2] / "results").glob("*/results.json"))


def results(methods=5):
    """Results with a deep ensemble of four: one method is below one network, one above four, and one stores less."""
    made = sample.classification(methods) | {"decided_by": "calibrated_nll"}
    nll = [0.18, 0.16, 0.15, 0.145]
    made["reference_curve"] = {
        "method": "deep-ensemble:members=4",
        "nll": [{"value": value, "low": value - 0.01, "high": value + 0.01} for value in nll],
        "latency": [1.0, 2.0, 3.0, 4.1],
    }
    values = [(1.0, 1.0, 1.3), (4.0, 4.0, 4.0), (1.0, 1.0, 1.0), (2.34, 1.0, 3.1), (4.0, 3.3, 4.0)]
    for place, (method, (value, low, high)) in enumerate(zip(made["methods"], values, strict=True)):
        method["scores"]["calibrated_nll"] = {"mean": 0.1 + 0.01 * place, "std": 0.002, "seeds": [0.1, 0.1]}
        method["equivalents"] = {"value": value, "low": low, "high": high, "below": place == 2, "above": place == 4, "most": 4}
    made["methods"][4]["cost"] |= {"parameters": 1.0, "deployed_parameters": 4.0}
    return made


def test_the_table_has_both_columns_and_says_what_is_beyond_the_curve():
    text = format_markdown(results())
    head = next(line for line in text.splitlines() if line.startswith("| method"))
    assert "| calibrated NLL |" in head
    assert "| equivalents |" in head
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert "2.3 (≤ 1 to 3.1)" in rows["mimo:members=3"]
    assert "< 1" in rows["inner:copies=4"]
    assert "> 4** (3.3 to ≥ 4)" in rows["batch-ensemble:members=4"]


def test_the_csv_has_the_flags_of_what_is_beyond():
    rows = list(csv.DictReader(io.StringIO(format_csv(results()))))
    assert [row["equivalents"] for row in rows] == ["1.0", "4.0", "1.0", "2.34", "4.0"]
    assert [(row["equivalents_below"], row["equivalents_above"]) for row in rows][2:] == [("1", "0"), ("0", "0"), ("0", "1")]
    assert "calibrated_nll" in rows[0]


def test_stored_and_deployed_parameters_stand_side_by_side_where_they_differ():
    shown = select_columns(results())
    places = [column.key for column in shown]
    assert places.index("parameters") == places.index("deployed_parameters") + 1
    same = results()
    same["methods"][4]["cost"]["parameters"] = 4.0
    assert STORED not in select_columns(same)


def test_the_page_leads_with_equivalents_against_latency():
    made = results()
    page = render_page(made)
    assert page.index('id="equivalents"') < page.index('id="advice"') < page.index('id="table"')
    assert page.count('<section class="figure" id="equivalents"') == 1
    assert 'id="share"' not in page
    figure = make_equivalents_figure(made)
    line, *points = figure.panels[0].views[0].data
    assert (line["x"], line["y"]) == ([1.0, 2.0, 3.0, 4.1], [1, 2, 3, 4])
    assert [point["y"][0] for point in points] == [1.0, 4.0, 1.0, 2.34, 4.0]
    assert [point["meta"].get("beyond") for point in points] == [None, None, " (< 1)", None, " (> 4)"]
    assert points[3]["error_y"]["arrayminus"] == [pytest.approx(1.34)]
    assert "2.3 (≤ 1 to 3.1)" in str(figure.numbers[0].rows)
    assert make_figures(made)[0].name == "equivalents"


def test_without_equivalents_the_page_shows_shares():
    assert make_lead_figure(sample.classification()).name == "share"
    assert 'id="equivalents"' not in render_page(sample.classification())


def test_the_static_figure_has_equivalents_and_names_what_is_beyond(tmp_path):
    write_summary_figure(results(), tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_bytes()
    write_summary_figure(results(), tmp_path / "b.svg")
    assert (tmp_path / "b.svg").read_bytes() == drawn
    fragment = render_fragment(results())
    assert "Equivalents against cost" in fragment
    assert "Gain against cost" in render_fragment(sample.classification())


def test_the_terminal_says_what_methods_are_worth_and_both_sizes():
    made = results()
    for method in made["methods"]:
        method["scores"]["nll"] |= {"seeds": [0.1, 0.2]}
    text = repr(Comparison(made))
    assert "worth" in text
    assert "2.3 (≤ 1 to 3.1)" in text
    assert "1.00/4.00" in text
    assert "kept %" not in text
    assert "kept %" in repr(Comparison(sample.classification()))


# --- bars -------------------------------------------------------------------------------------------------------------


def test_bars_stay_within_what_is_possible():
    accuracy = CLASSIFICATION[0]
    wide = accuracy.read({"scores": {"accuracy": {"mean": 0.98, "std": 0.1, "seeds": [0.9, 1.0], "low": 0.6, "high": 1.3}}})
    assert wide.reach == (0.6, 1.0)
    narrow = accuracy.read({"scores": {"accuracy": {"mean": 0.98, "std": 0.1, "seeds": [0.9, 1.0]}}})
    assert narrow.reach == (pytest.approx(0.88), 1.0)
    nll = next(column for column in CLASSIFICATION if column.key == "nll")
    assert nll.read({"scores": {"nll": {"mean": 0.1, "std": 0.0, "seeds": [0, 0], "low": -0.2, "high": 0.4}}}).reach == (0, 0.4)


def test_an_interval_that_ends_at_the_curve_says_so():
    assert format_with_spread(Value(2.0, None, 1.5, 2.5, (1.0, 4.0)), "equivalents") == "2.0 (1.5 to 2.5)"
    assert format_with_spread(Value(1.0, None, 1.0, 1.0, (1.0, 4.0), "<"), "equivalents") == "< 1"
    assert math.isinf(Value(1.0).limits[1])
    assert EQUIVALENTS.read({"equivalents": None}) is None


# --- what was recorded before -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_recorded_results_look_as_they_did(path, tmp_path):
    found = json.loads(path.read_text())
    if "decided_by" in found:
        pytest.skip("recorded with calibrated NLL")
    assert format_markdown(found) == path.with_name("results.md").read_text()
    assert format_csv(found) == path.with_name("results.csv").read_text()
    write_summary_figure(found, tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_bytes() == path.with_name("picture.svg").read_bytes()
