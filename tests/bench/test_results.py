"""What is kept when something is measured again."""

import json

import pytest

from pluribus.bench.results import PARTS, create_results, find_processor_name, merge_rows, read_results, save_results
from pluribus.core.errors import FileError

from .example_rows import ABOUT, cell, grown, target


def test_a_run_replaces_the_rows_that_it_measured_and_leaves_the_others():
    old = merge_rows(create_results(), "table", [cell(method="inner"), cell(method="mimo")], "monday", ABOUT)
    old = merge_rows(old, "growth", [grown()], "monday", ABOUT)
    new = merge_rows(old, "table", [cell(method="mimo", time=9.0)], "tuesday", ABOUT)
    assert [(row["method"], row["time"]["median"], row["run"]) for row in new["table"]] == [
        ("inner", 1.5, "monday"),
        ("mimo", 9.0, "tuesday"),
    ]
    assert new["growth"] == old["growth"]
    assert set(new["runs"]) == {"monday", "tuesday"}


def test_a_run_that_nothing_is_left_of_is_forgotten():
    old = merge_rows(create_results(), "table", [cell()], "monday", ABOUT)
    assert set(merge_rows(old, "table", [cell()], "tuesday", ABOUT)["runs"]) == {"tuesday"}


def test_rows_are_in_the_order_of_the_tables_and_cases_that_are_no_more_are_dropped():
    rows = [cell("vit"), cell("mlp", "mimo"), cell("mlp", "inner"), cell("alexnet")]
    found = merge_rows(create_results(), "table", rows, "monday", ABOUT)["table"]
    assert [(row["network"], row["method"]) for row in found] == [("mlp", "inner"), ("mlp", "mimo"), ("vit", "inner")]


def test_what_is_saved_is_read(tmp_path):
    assert read_results(tmp_path) == create_results()
    results = merge_rows(create_results(), "table", [cell()], "monday", ABOUT)
    results = merge_rows(results, "targets", [target()], "monday", ABOUT)
    save_results(tmp_path, results)
    assert read_results(tmp_path) == results
    assert {file.name for file in tmp_path.iterdir()} == {"bench.json", "bench.md", "cost.svg"}  # nothing grew


@pytest.mark.parametrize("text", ["", "[]", "null", '{"format": 2}', '{"format": 1, "runs": {}, "table": [{}]}', "\0"])
def test_a_file_that_is_something_else_is_refused(tmp_path, text):
    (tmp_path / "bench.json").write_text(text)
    with pytest.raises(FileError, match="does not hold results of `pluribus bench`"):
        read_results(tmp_path)


def test_a_row_of_no_run_is_refused(tmp_path):
    results = merge_rows(create_results(), "table", [cell()], "monday", ABOUT) | {"runs": {}}
    (tmp_path / "bench.json").write_text(json.dumps(results))
    with pytest.raises(FileError):
        read_results(tmp_path)


def test_the_parts_and_the_processor_have_names():
    assert PARTS == ("targets", "table", "growth")
    assert find_processor_name()
