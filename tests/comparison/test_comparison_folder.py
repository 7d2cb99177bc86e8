"""The main job, whole, on a few rows: what it writes, that it goes on, and that one failure does not spoil the rest."""

import csv
import json
import shutil

import pytest
import torch

from pluribus.comparison import comparison_folder as comparing
from pluribus.comparison.comparison_folder import ComparisonFolder
from pluribus.comparison.statistics import read_row_scores
from pluribus.core.errors import FileError
from pluribus.core.spec import list_methods
from pluribus.core.tensor_files import serialize_tensors
from pluribus.file_formats.comparison_files import Results
from pluribus.file_formats.reading import read_json
from pluribus.runs.config import ConfigError
from pluribus.runs.evaluation import ROWS_FORMAT, ROWS_KEY, build_evaluation_settings
from pluribus.runs.grid import Grid
from pluribus.runs.run_folder import Run

OPTIONS = {"data": "digits", "model": "mlp:hidden=[16]", "rows": 300, "epochs": 2, "batch_size": 64}


def planned(path, methods=("single", "mimo", "deep-ensemble:members=2"), seeds=(0, 1), **options):
    judging = options.pop("judging", build_evaluation_settings(ood=("noise",)))
    return ComparisonFolder.plan(path, OPTIONS, list(methods), list(seeds), judging=judging, command="as typed", **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    threads = torch.get_num_threads()
    made = planned(tmp_path_factory.mktemp("compare") / "first", methods=("single", "mc-dropout:samples=3", "deep-ensemble"))
    states = []
    results = made.run("1", states.append)
    torch.set_num_threads(threads)
    return made, results, states


def test_everything_that_people_and_programs_read_is_there(finished):
    made, results, _ = finished
    for name in ("results.json", "results.csv", "results.md", "picture.svg", "report.html", "grid.csv", "compare.yaml"):
        assert (made.path / name).stat().st_size > 0, name
    assert read_json(made.path / "results.json", Results) == json.loads(json.dumps(results))
    rows = list(csv.DictReader((made.path / "results.csv").open()))
    assert [row["name"] for row in rows] == ["single", "mc-dropout:samples=3", "deep-ensemble"]


def test_results_say_what_was_compared(finished):
    _, results, _ = finished
    assert (results["title"], results["command"], results["seeds"]) == ("digits · mlp", "as typed", [0, 1])
    assert results["data"]["task"] == "classification"
    assert results["settings"]["epochs"] == 2
    assert "torch" in results["versions"]
    assert any("2 seeds" in note for note in results["notes"])
    assert "/" not in str(results["settings"].get("data_dir"))


def test_every_number_is_the_mean_of_its_runs(finished):
    made, results, _ = finished
    for method in results["methods"]:
        own = [json.loads((made.path / run / "judgement.json").read_text()) for run in method["runs"]]
        for name, number in method["scores"].items():
            assert number["seeds"] == [one["scores"][name] for one in own]
            assert number["mean"] == pytest.approx(sum(number["seeds"]) / 2)
        assert method["scores"]["nll"]["low"] < method["scores"]["nll"]["mean"] < method["scores"]["nll"]["high"]


def test_gains_are_over_the_single_network_on_the_same_rows(finished):
    _, results, _ = finished
    single, dropout, deep = results["methods"]
    assert single["gain"] is None
    for method in (dropout, deep):
        gain = single["scores"]["calibrated_nll"]["mean"] - method["scores"]["calibrated_nll"]["mean"]
        assert method["gain"]["value"] == pytest.approx(gain, rel=1e-4, abs=1e-6)
    assert deep["share"] in (None, {"value": 1, "low": 1, "high": 1})  # of its own gain, if there is one
    assert deep["cost"]["deployed_parameters"] == deep["cost"]["deployed_flops"] == 4
    assert dropout["members"] == 3


def test_the_smaller_ensembles_of_the_reference_are_judged_and_make_a_curve(finished):
    made, results, _ = finished
    deep = results["methods"][-1]
    table = read_row_scores(made.path / deep["runs"][0])
    assert {f"calibrated_nll_{size}" for size in (1, 2, 3, 4)} | {f"right_{size}" for size in (1, 2, 3, 4)} <= set(table)
    assert table["calibrated_nll_4"].mean().item() == pytest.approx(table["calibrated_nll"].mean().item(), rel=1e-5)
    assert table["right_1"].mean().item() == pytest.approx(deep["member_scores"]["accuracy"]["seeds"][0])
    assert "calibrated_nll_1" not in read_row_scores(made.path / results["methods"][1]["runs"][0])
    curve = results["reference_curve"]
    assert (curve["method"], len(curve["nll"])) == ("deep-ensemble", 4)
    assert curve["nll"][-1]["value"] == pytest.approx(deep["scores"]["calibrated_nll"]["mean"], rel=1e-4)
    latency = deep["cost"]["latency"]["value"]
    assert curve["latency"] == pytest.approx([1 + (latency - 1) * place / 3 for place in range(4)])
    assert all(1 <= method["equivalents"]["value"] <= 4 for method in results["methods"])
    assert (deep["equivalents"]["above"], deep["equivalents"]["most"]) == (False, 4)
    assert results["decided_by"] == "calibrated_nll"


def test_intervals_never_leave_what_is_possible(finished):
    """Student's t of two seeds reaches far."""
    _, results, _ = finished
    for method in results["methods"]:
        assert 0 <= method["scores"]["accuracy"]["low"] <= method["scores"]["accuracy"]["high"] <= 1
        assert method["scores"]["nll"]["low"] >= 0
        assert method["scores"]["calibrated_nll"]["low"] >= 0


def test_runs_that_an_older_version_judged_are_compared_by_their_plain_nll(finished, tmp_path):
    made, _, _ = finished
    folder = shutil.copytree(made.path, tmp_path / "old")
    for file in folder.glob("*/rows.safetensors"):
        table = read_row_scores(file.parent)
        old = {name: column for name, column in table.items() if name in ("nll", "right", "brier")}
        file.write_bytes(serialize_tensors(old, {"format": ROWS_FORMAT}, ROWS_KEY))
        judged = json.loads((file.parent / "judgement.json").read_text())
        del judged["scores"]["calibrated_nll"], judged["intervals"]["calibrated_nll"]
        Run(file.parent).write_json("judgement.json", {key: value for key, value in judged.items() if key != "digest"})
    again = ComparisonFolder.open(folder).collect_results(json.loads((folder / "costs.json").read_text()))
    assert again["decided_by"] == "nll"
    assert any("the plain NLL decides" in note for note in again["notes"])
    single, dropout, _ = again["methods"]
    gain = single["scores"]["nll"]["mean"] - dropout["scores"]["nll"]["mean"]
    assert dropout["gain"]["value"] == pytest.approx(gain, rel=1e-4)
    assert dropout["equivalents"] is None
    assert again["reference_curve"] is None
    assert all("calibrated" not in each["text"] for each in again["recommendation"])


def test_out_of_distribution_detection_is_among_the_results(finished):
    _, results, _ = finished
    deep = results["methods"][-1]
    assert 0 <= deep["ood"]["noise"]["auroc"]["mutual-information"]["mean"] <= 1
    assert "mutual-information" not in results["methods"][0]["ood"]["noise"]["auroc"]


def test_the_states_went_from_waiting_to_done(finished):
    _, _, states = finished
    assert {state["state"] for state in states[-1]} == {"done"}


def test_what_is_there_is_not_done_again(finished, monkeypatch):
    made, results, _ = finished
    before = {path: path.stat().st_mtime_ns for path in made.path.glob("*/weights.safetensors")}
    monkeypatch.setattr(comparing, "measure_cost", lambda *_: pytest.fail("measured again"))
    again = ComparisonFolder.open(made.path).run("1")
    assert again == results
    assert {path: path.stat().st_mtime_ns for path in made.path.glob("*/weights.safetensors")} == before


def test_a_run_that_lost_its_judgement_is_judged_and_not_trained_again(finished):
    made, results, _ = finished
    lost = made.path / results["methods"][0]["runs"][0]
    kept = (lost / "judgement.json").read_text()
    weights = (lost / "weights.safetensors").stat().st_mtime_ns
    (lost / "judgement.json").unlink()
    assert [state["state"] for state in made.grid.read_states()].count("judging") == 1
    ComparisonFolder.open(made.path).run("1")
    assert (lost / "judgement.json").read_text() == kept
    assert (lost / "weights.safetensors").stat().st_mtime_ns == weights


def test_any_plain_deep_ensemble_is_the_standard(tmp_path):
    made = planned(tmp_path / "c", methods=("single", "deep-ensemble:of=mimo", "deep-ensemble:members=2"))
    assert made.reference == "deep-ensemble:members=2"  # one of other ensembles is not it
    more = planned(tmp_path / "d", methods=("deep-ensemble:members=2", "deep-ensemble:members=3"))
    assert more.reference == "deep-ensemble:members=3"
    assert not any("no deep-ensemble" in note for note in made.about["notes"])


def test_without_test_rows_one_half_of_the_validation_rows_judges(tmp_path):
    import numpy as np

    x = np.random.default_rng(0).normal(size=(60, 3)).astype("float32")
    np.savez(tmp_path / "rows.npz", x=x, y=(x[:, 0] > 0).astype(int))
    options = {"data": f"{tmp_path}/rows.npz:test=0", "model": "mlp:hidden=[4]", "epochs": 1, "validation": 0.5}
    made = ComparisonFolder.plan(tmp_path / "c", options, ["single", "inner"], [0, 1])
    results = made.run("1")
    judged = json.loads((made.path / results["methods"][0]["runs"][0] / "judgement.json").read_text())
    assert judged["rows"] == 15  # of 30 set aside, the other half fits the temperature
    assert results["methods"][0]["tempered"] is not None
    assert results["judged_by"] == "validation"
    assert results["methods"][1]["gain"] is not None


def test_without_rows_to_tell_its_noise_a_regression_has_errors_alone(tmp_path):
    options = {"data": "blundell", "model": "mlp:hidden=[8]", "epochs": 1, "validation": 0}
    results = ComparisonFolder.plan(tmp_path / "c", options, ["single", "deep-ensemble:members=2"], [0]).run("1")
    assert set(results["methods"][0]["scores"]) == {"rmse"}
    assert results["recommendation"] == []


def test_a_method_that_lacks_a_seed_is_left_out_of_the_pairs_and_named(finished, monkeypatch):
    made, results, _ = finished
    judged = Grid.is_finished
    monkeypatch.setattr(Grid, "is_finished", lambda grid, cell: cell.name != "deep-ensemble-seed1" and judged(grid, cell))
    again = made.collect_results(json.loads((made.path / "costs.json").read_text()))
    single, dropout, deep = again["methods"]
    assert deep["gain"] is None
    assert any("deep-ensemble lacks a seed" in note for note in again["notes"])
    assert dropout["gain"] == results["methods"][1]["gain"]
    assert single["scores"]["nll"]["low"] < single["scores"]["nll"]["mean"] < single["scores"]["nll"]["high"]


@pytest.mark.parametrize("content", ["[1, 2", "[1, 2]", '{"single": {"flops": 1}}'])
def test_damaged_costs_are_measured_anew(finished, content):
    made, results, _ = finished
    (made.path / "costs.json").write_text(content)
    with pytest.warns(UserWarning, match=r"measured anew, as .*costs\.json"):
        again = ComparisonFolder.open(made.path).run("1")
    assert again["methods"][0]["cost"]["parameters"] == results["methods"][0]["cost"]["parameters"]


def test_training_flops_are_of_the_whole_training(tmp_path):
    made = planned(tmp_path / "c", methods=("single", "deep-ensemble:members=2"), seeds=(0,), budget="training-flops")
    results = made.run("1")
    assert results["methods"][1]["cost"]["training_flops"] == pytest.approx(1)


def test_a_method_that_fails_is_said_and_the_others_are_compared(tmp_path, monkeypatch):
    from pluribus.runs import evaluation

    made = planned(tmp_path / "c", methods=("single", "inner"), seeds=(0,), judging=build_evaluation_settings())
    judge = evaluation.judge_run

    def failing(path, judging):
        if "inner" in path.name:
            raise ValueError("no luck")
        judge(path, judging)

    monkeypatch.setattr(evaluation, "judge_run", failing)
    results = made.run("1")
    assert [method["name"] for method in results["methods"]] == ["single"]
    assert any("inner-seed0 failed: ValueError: no luck" in note for note in results["notes"])


def test_the_single_network_is_added_and_a_missing_deep_ensemble_is_said(tmp_path):
    made = planned(tmp_path / "c", methods=("mimo",))
    assert [cell.method for cell in made.grid.cells][:2] == ["single", "single"]
    assert any("single was added" in note for note in made.about["notes"])
    assert any("no deep-ensemble" in note for note in made.about["notes"])


def test_a_budget_gives_each_method_its_own_settings(tmp_path):
    made = planned(tmp_path / "c", methods=("single", "deep-ensemble:members=2"), budget="training-flops")
    assert {cell.method: cell.options["epochs"] for cell in made.grid.cells} == {"single": 2, "deep-ensemble:members=2": 1}
    narrow = planned(tmp_path / "d", methods=("single", "deep-ensemble:members=2"), budget="parameters")
    models = {cell.method: cell.options["model"] for cell in narrow.grid.cells}
    assert "width" not in models["single"]
    assert 0.4 < models["deep-ensemble:members=2"]["width"] < 0.6
    results = narrow.run("1")
    assert 0.8 < results["methods"][1]["cost"]["deployed_parameters"] <= 1.005  # of the single one's, not of its own


def test_what_does_not_fit_the_budget_is_left_out_with_its_reason(tmp_path):
    made = planned(tmp_path / "c", methods=("single", "mc-dropout:samples=500"), budget="deployed-flops")
    assert {cell.method for cell in made.grid.cells} == {"single"}
    assert any("Left out: mc-dropout:samples=500" in note for note in made.about["notes"])
    for budget in ("training-flops", "deployed-flops", "parameters"):
        made = planned(tmp_path / budget, methods=("single", "mixture:parameters=0.001"), budget=budget)
        assert {cell.method for cell in made.grid.cells} == {"single"}
        assert any("Left out: mixture" in note and "cannot convert" in note for note in made.about["notes"])


def test_all_methods_begin_with_the_single_network_and_end_with_the_standard_to_meet():
    from pluribus import Spec

    assert list_methods()[0] == "single"
    assert list_methods()[-1] == "deep-ensemble"
    assert set(list_methods()) == set(Spec.registry)


def test_nothing_is_begun_where_the_data_cannot_be_judged_so(tmp_path):
    options = OPTIONS | {"data": "four-gaussians"}
    with pytest.raises(ConfigError, match="images"):
        ComparisonFolder.plan(
            tmp_path / "c", options, ["single"], [0], judging=build_evaluation_settings(corruptions="standard")
        )
    assert not (tmp_path / "c").exists()


def test_a_folder_that_is_no_comparison_is_said(tmp_path):
    with pytest.raises(FileError, match="no comparison"):
        ComparisonFolder.open(tmp_path)
    (tmp_path / "compare.yaml").write_text("budget: epochs\n")
    with pytest.raises(FileError, match="damaged"):
        ComparisonFolder.open(tmp_path)


def test_a_regression_is_compared_too(tmp_path):
    options = {"data": "blundell", "model": "mlp:hidden=[8]", "epochs": 2}
    results = ComparisonFolder.plan(tmp_path / "c", options, ["single", "deep-ensemble:members=2"], [0]).run("1")
    assert results["data"]["task"] == "regression"
    assert {"rmse", "nll", "crps"} <= set(results["methods"][0]["scores"])
    assert (tmp_path / "c" / "report.html").is_file()
