"""A method whose scores are NaN or infinite is flagged on the page, in the table of the terminal, in Markdown and in CSV."""

import csv
import io

import pytest

from pluribus.comparison.terminal_tables import print_comparison, render_text
from pluribus.reports import format_csv, format_markdown, render_fragment, render_page

from . import sample


@pytest.fixture
def results():
    results = sample.classification(3)
    broken = results["methods"][1]
    broken["not_finite"] = 4
    for name in broken["scores"]:
        broken["scores"][name] = {"mean": None, "std": None, "seeds": [None, None]}
    return results


@pytest.mark.parametrize("show", [render_page, render_fragment, format_markdown], ids=lambda show: show.__name__)
def test_the_table_says_so(show, results):
    assert "not finite" in show(results)
    assert "not finite" not in show(sample.classification(3))


def test_the_terminal_says_so(results):
    text = render_text(lambda console: print_comparison(results, console=console))
    assert text.count("not finite") == 3  # accuracy, NLL and ECE
    assert "nan" not in text


def test_the_csv_counts_the_rows(results):
    rows = list(csv.DictReader(io.StringIO(format_csv(results))))
    assert [row["not_finite"] for row in rows] == ["", "4", ""]
    assert rows[1]["accuracy"] == ""
    assert "not_finite" not in format_csv(sample.classification(3)).splitlines()[0]
