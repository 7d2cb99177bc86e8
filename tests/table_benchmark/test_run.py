"""The whole benchmark, small: what it leaves, what it does not run again, and what has no rank."""

import copy
import json

import pytest

from pluribus.core.errors import FileError
from pluribus.file_formats.reading import read_json
from pluribus.file_formats.table_benchmark_files import TablesFile
from pluribus.table_benchmark import contender
from pluribus.table_benchmark.page import format_page
from pluribus.table_benchmark.run import SMOKE, Benchmark, TableBenchmarkError, plan_cells, run_cells

ABOUT = {"versions": {"python": "3.11"}, "machine": {"cores": 2}}
QUICK = ("hist-gradient-boosting", "sklearn-mlp")


def make_benchmark(*contenders, **changes):
    return Benchmark(**(dict(SMOKE) | {"contenders": contenders or QUICK} | changes))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    return folder, run_cells(make_benchmark(), folder, ABOUT)


def test_it_leaves_a_record_and_the_page_that_follows_from_it(finished):
    folder, results = finished
    record = read_json(folder / "tables.json", TablesFile)
    assert record["ranks"] == results["ranks"]
    assert (folder / "tables.md").read_text() == format_page(record)
    assert [taker["reason"] for taker in record["contenders"]] == ["", ""]
    assert len(record["cells"]) == 4
    assert set(record["ranks"]) == set(record["leads"]) == {"rmse", "crps", "nll"}
    for score, ranks in record["ranks"].items():
        assert sum(rank["rank"] for rank in ranks.values()) == pytest.approx(3), score


def test_finished_cells_are_not_run_again(finished, monkeypatch):
    folder, results = finished
    monkeypatch.setattr("pluribus.table_benchmark.cells.tune", lambda *_: pytest.fail("it ran again"))
    assert run_cells(make_benchmark(), folder, ABOUT) == results


def test_a_contender_is_added_and_one_that_lacks_splits_has_no_rank(finished):
    folder, _ = finished
    results = run_cells(make_benchmark("mlp", splits=1), folder, ABOUT)
    reasons = {taker["name"]: taker["reason"] for taker in results["contenders"]}
    assert reasons == {"mlp": "finished 1 of 2 splits", "hist-gradient-boosting": "", "sklearn-mlp": ""}
    assert set(results["ranks"]["rmse"]) == set(QUICK)
    assert "| one MLP | finished 1 of 2 splits |" in (folder / "tables.md").read_text()


def test_a_missing_library_is_a_row_that_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(contender.importlib.util, "find_spec", lambda name: None if name == "xgboost" else object())
    benchmark = make_benchmark("xgboost", "sklearn-mlp", splits=1)
    cells, _ = plan_cells(benchmark, tmp_path)
    assert [cell.contender for cell in cells] == ["sklearn-mlp"]
    results = run_cells(benchmark, tmp_path, ABOUT)
    assert results["contenders"][0]["reason"] == "skipped: xgboost not installed: pip install 'pluribus[tables]'"
    assert "| XGBoost | skipped: xgboost not installed" in (tmp_path / "tables.md").read_text()


def test_a_contender_that_fails_costs_the_others_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no")

    monkeypatch.setattr("sklearn.neural_network.MLPRegressor.partial_fit", fail)
    results = run_cells(make_benchmark(splits=1), tmp_path, ABOUT)
    assert {taker["name"]: taker["reason"] for taker in results["contenders"]} == {
        "hist-gradient-boosting": "",
        "sklearn-mlp": "finished 0 of 1 splits",
    }


def test_another_benchmark_needs_another_folder(finished, tmp_path):
    folder, _ = finished
    with pytest.raises(FileError, match="holds a benchmark with trials 2, and now it is 3: name another folder"):
        run_cells(make_benchmark(trials=3), folder, ABOUT)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileError, match="is not empty, and holds no benchmark of tables"):
        run_cells(make_benchmark(), tmp_path, ABOUT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": 0}, "trials must be from 1 to 100,000, got 0"),
        ({"rows": 5}, "rows must be at least 20, got 5"),
        ({"tables": ()}, "tables must be names or paths between commas"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(TableBenchmarkError, match=message):
        make_benchmark(**changes)


def test_a_page_shows_scores_that_are_not_finite(finished):
    folder, _ = finished
    record = copy.deepcopy(json.loads((folder / "tables.json").read_text()))
    for cell in record["cells"]:
        cell["scores"]["nll"] = None
    assert "| not finite |" in format_page(record)
