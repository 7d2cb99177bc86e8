"""From results to tables."""

import pytest

from pluribus.bench.page import (
    BEGIN,
    END,
    NOTHING,
    format_body,
    format_growth,
    format_page,
    format_section,
    format_table,
    format_targets,
    update_document,
)
from pluribus.bench.results import create_results, merge_rows
from pluribus.core.errors import FileError

from .example_rows import ABOUT, cell, grown, target


def results():
    found = merge_rows(create_results(), "targets", [target()], "2025-01-02T03:04:05", ABOUT)
    found = merge_rows(found, "table", [cell()], "2025-01-02T03:04:05", ABOUT)
    return merge_rows(found, "growth", [grown()], "2025-01-02T03:04:05", ABOUT)


def test_a_target_has_its_ratio_its_spread_and_its_verdict():
    rows = [target(), target("slow", value=1.5), target("beside", most=None), target("lean", "state", 1.0)]
    lines = format_targets(rows).splitlines()[4:]
    assert lines == [
        "| ResNet-20, training step: Inner, m = 4 | 1.04× | 0.94 to 1.24 | ≤ 1.05× | met |",
        "| ResNet-20, training step: slow | 1.50× | 1.40 to 1.70 | ≤ 1.05× | **missed** |",
        "| ResNet-20, training step: beside | 1.04× | 0.94 to 1.24 |  |  |",
        "| ResNet-20, memory of weights and momentum: lean | 1.00× | counted | ≤ 1.05× | met |",
    ]


def test_a_method_has_a_row_a_network_and_what_was_not_measured_or_counted_is_empty():
    rows = [cell(), cell(work="training step", time=2.0) | {"flops": None}, cell("vit")]
    lines = format_table(rows, ".").splitlines()
    assert "| inner | 2.00× (1.90 to 2.20) | 2.00× |  | 1.50× (1.40 to 1.70) | 2.00× | 12.0× |" in lines
    assert "| inner |  |  |  | 1.50× (1.40 to 1.70) | 2.00× | 12.0× |" in lines
    assert lines.index("### LeNet-5") < lines.index("### ViT")
    assert sum(line.startswith("| inner") for line in lines) == 2  # and no row for the methods that were not measured


def test_growth_states_the_line_and_its_deviation():
    assert (
        "| mixture | 1.00× | 1.90× | 3.70× | 0.900 M + 0.10, off by 0.00 at M = 1 | 0.50, 1.00, 2.00 | 1.00× → 4.00× |"
        in format_growth([grown()], ".")
        .replace("at M = 2", "at M = 1")
        .replace("at M = 4", "at M = 1")  # rounding decides where
    )


def test_the_page_says_where_and_when_it_was_measured():
    text = format_page(results())
    said = "- 2025-01-02, 03:04:05: 9 repeats, batches of 128, 2 threads; Abacus, 2 cores; pluribus 0.1, torch 2.9, python 3.11"
    assert said in text
    assert "](./cost.svg)" in text
    assert format_body(create_results(), ".") == NOTHING


def test_a_document_gets_the_section_between_its_marks_and_keeps_the_rest(tmp_path):
    place = tmp_path / "docs" / "costs.md"
    place.parent.mkdir()
    place.write_text(f"# Mine\n\n{BEGIN}\nold\n{END}\n\nmore\n")
    for _ in range(2):  # again, and nothing changes
        update_document(place, results(), tmp_path / "results")
        assert place.read_text() == f"# Mine\n\n{format_section(results(), '../results')}\n\nmore\n"


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END} {BEGIN}"])
def test_a_document_without_both_marks_is_refused_and_left_alone(tmp_path, text):
    place = tmp_path / "a.md"
    place.write_text(text)
    with pytest.raises(FileError, match="no place for the cost table"):
        update_document(place, results(), tmp_path)
    assert place.read_text() == text
