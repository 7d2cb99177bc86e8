"""The recorded page of benchmarks/serving.py follows from its recorded numbers."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import serving_page

    yield serving_page
    sys.modules.pop("serving_page")


def test_the_page_is_that_of_the_recorded_results(page):
    results = json.loads((BENCHMARKS / "results" / "serving.json").read_text())
    assert page.write_page(results) == (BENCHMARKS / "results" / "serving.md").read_text()
    assert results["soak"]["minutes"] >= 10
    assert results["soak"]["wrong"] == 0
    assert results["soak"]["end"] <= results["soak"]["start"] * (1 + page.GROWTH)
