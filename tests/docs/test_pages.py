"""What holds for pages that teach: no measured number by hand, and pages and drawings of methods belong to methods."""

import importlib
import re
from pathlib import Path

import pytest

import pluribus
from tests.test_promises import LESSONS

ROOT = Path(__file__).parent.parent.parent
PAGES = [*(ROOT / "docs" / name for name in sorted(LESSONS)), *sorted(ROOT.glob("docs/*/*.md"))]
MEASURED = re.compile(r"\d[\d.,]*(?: %|×)|\d+\.\d\d+")
LEVELS = {"90 %", "95 %"}
"""Of intervals: nobody measured these."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_no_measured_number_is_written_by_hand(page):
    """What is measured changes when it is measured again: generated blocks and pages with tests of their own hold it."""
    prose = re.sub(r"^```.*?^```|<!--.*?-->|`[^`\n]+`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = set(MEASURED.findall(prose)) - LEVELS
    assert not found, "a block of docs/generator/ can read these from the records"


def test_a_page_of_results_would_be_found():
    """The pattern above finds what the page of results is full of."""
    assert MEASURED.findall("worth 0.5063, at 4.03× and 92 %") == ["0.5063", "4.03×", "92 %"]


def test_pages_and_drawings_of_methods_belong_to_methods(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "generator")
    drawings = importlib.import_module("drawings").DRAWINGS
    pages = {path.stem for path in ROOT.glob("docs/methods/*.md")}
    assert pages <= set(pluribus.Spec.registry)
    assert set(drawings) <= set(pluribus.Spec.registry)
    assert len(pages) >= 12
    for name in pages:
        assert "## When not" in (ROOT / "docs" / "methods" / f"{name}.md").read_text(), name
