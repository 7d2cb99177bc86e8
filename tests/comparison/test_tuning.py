"""Tuning in a comparison: from the trials to the judged runs and the page."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import pluribus
from pluribus.comparison.comparison_folder import ComparisonFolder
from pluribus.comparison.tuning import choose_trial
from pluribus.core.errors import FileError
from pluribus.file_formats.comparison_files import Results
from pluribus.file_formats.reading import read_json, write_json
from pluribus.file_formats.tuning_files import TuningFile
from pluribus.runs.config import ConfigError, read_config
from pluribus.runs.run_folder import Run

METHODS = ["deep-ensemble:members=2", "inner"]
OPTIONS = {"rows": 120, "epochs": 3, "batch_size": 32, "validation": 0.3, "progress": False}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning") / "c"
    return pluribus.compare("mlp:hidden=[8]", "digits", methods=METHODS, seeds=[0, 2], tune=4, folder=folder, **OPTIONS)


def read_tuning(folder):
    return read_json(folder / "tuning.json", TuningFile)


def test_every_method_has_the_same_number_of_trials_and_the_reference_has_none(found):
    tuning = {entry["name"]: entry for entry in found.results["tuning"]["methods"]}
    assert {name: len(entry["trials"]) for name, entry in tuning.items()} == {
        "single": 4,
        "inner": 4,
        "deep-ensemble:members=2": 0,
    }
    assert tuning["deep-ensemble:members=2"]["trained_as"] == "single"
    assert found.results["tuning"] == read_tuning(found.folder) == read_json(found.folder / "results.json", Results)["tuning"]


def test_the_best_trial_that_was_not_stopped_is_chosen_by_the_scores_of_its_folder(found):
    for entry in found.results["tuning"]["methods"][:2]:
        records = [Run(found.folder / "tuning" / f"{entry['name']}-{n}").read_json("trial.json") for n in range(4)]
        assert [record["score"] for record in records] == [trial["score"] for trial in entry["trials"]]
        whole = {n: record["score"] for n, record in enumerate(records) if record["state"] == "complete"}
        assert entry["chosen"] == min(whole, key=whole.get)


def test_judged_runs_have_what_was_chosen_and_trials_a_seed_of_their_own(found):
    assert found.results["tuning"]["seed"] == 1, "the seeds 0 and 2 are those of judged runs"
    for entry in found.results["tuning"]["methods"][:2]:
        trial = read_config(found.folder / "tuning" / f"{entry['name']}-{entry['chosen']}" / "config.yaml")
        for seed in (0, 2):
            judged = read_config(found.folder / f"{entry['name']}-seed{seed}" / "config.yaml")
            assert judged.model_dump() == trial.model_dump() | {"seed": seed}
        assert trial.seed == 1
        assert entry["spec"] == str(trial.spec)


def test_the_deep_ensemble_is_made_of_networks_that_are_trained_as_the_tuned_one_is(found):
    single = read_config(found.folder / "single-seed0" / "config.yaml")
    deep = read_config(found.folder / "deep-ensemble-members-2-seed0" / "config.yaml")
    assert deep.model_dump(exclude={"method"}) == single.model_dump(exclude={"method"})
    assert deep.spec.of in (None, single.spec)


def test_rows_are_named_as_was_typed_and_the_page_says_what_was_chosen(found):
    assert list(found.methods) == ["single", *METHODS]
    page, text = found.page(), repr(found)
    assert "What tuning chose, and what it brought" in page
    assert "as for single" in page
    assert "before" in text
    for entry in found.results["tuning"]["methods"][:2]:
        assert found.methods[entry["name"]]["spec"] == entry["spec"]
        assert f'title="{entry["spec"]}' in page, "the name of a row says what it stands for"
    assert "validation calibrated NLL before" in (found.folder / "results.md").read_text()


def test_a_row_that_cannot_differ_from_the_base_network_says_so(found):
    said = found.methods["inner"]["equivalence"]
    assert "base network by construction" in said
    assert any(note.startswith("inner: under AdamW") for note in found.results["notes"])
    assert found.methods["single"]["equivalence"] is None
    # It is so: with the same settings the judged runs have the same scores.
    single, inner = (read_config(found.folder / f"{name}-seed0" / "config.yaml") for name in ("single", "inner"))
    if single.model_dump(exclude={"method"}) == inner.model_dump(exclude={"method"}) and single.spec.dropout == 0:
        scores = [found.methods[name]["scores"]["nll"]["mean"] for name in ("single", "inner")]
        assert scores[0] == pytest.approx(scores[1], rel=1e-3)


def test_resuming_a_finished_tuning_runs_no_trial_again(found):
    before = {path: path.stat().st_mtime_ns for path in found.folder.glob("tuning/*/trial.json")}
    again = pluribus.compare(folder=found.folder, resume=True, progress=False)
    assert again.results["tuning"] == found.results["tuning"]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_choice_that_is_no_trial_is_refused(found, tmp_path):
    folder = shutil.copytree(found.folder, tmp_path / "c")
    content = read_tuning(folder)
    content["methods"][0]["chosen"] = 99
    write_json(folder / "tuning.json", content)
    with pytest.raises(FileError, match=r"tuning\.json is damaged, it chooses no trial of single"):
        ComparisonFolder.open(folder).run("1")
    (folder / "tuning.json").write_text((folder / "tuning.json").read_text().replace("99", "98"))
    with pytest.raises(FileError, match=r"tuning\.json was changed or damaged"):
        ComparisonFolder.open(folder).run("1")
    (folder / "tuning.json").unlink()
    (folder / "tuning" / "inner-1" / "trial.json").write_text("{}")
    with pytest.raises(FileError, match=r"trial\.json is damaged"):
        ComparisonFolder.open(folder).run("1")


def test_members_of_another_method_are_tuned_even_if_it_is_not_compared(tmp_path):
    methods = ["deep-ensemble:members=2,of=multihead"]  # three methods with two trials each
    made = ComparisonFolder.plan(
        tmp_path / "c", {"model": "mlp:hidden=[8]", "rows": 80, "epochs": 1, "batch_size": 64}, methods, [0], tune=2
    )
    results = made.run("1")
    tuning = {entry["name"]: entry for entry in results["tuning"]["methods"]}
    assert tuning["deep-ensemble:members=2,of=multihead"]["trained_as"] == "multihead"
    chosen = tuning["multihead"]["trials"][tuning["multihead"]["chosen"]]
    config = read_config(next((tmp_path / "c").glob("deep-*-seed0/config.yaml")))
    assert {name: getattr(config.spec.of, name) for name in chosen["options"]} == chosen["options"]
    assert {name: getattr(config, name) for name in chosen["settings"]} == chosen["settings"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tune": 1}, "tune must be at least 2, got 1"),
        ({"tune": "many"}, "tune must be a whole number of trials, got 'many'"),
        ({"tune": 2.5}, "tune must be a whole number"),
        ({"tune": 10**6}, "tune must be at most 2,500 for 2 methods"),
        ({"tune": 4, "validation": 0}, "tune needs validation rows"),
    ],
)
def test_trials_that_make_no_sense_are_refused_before_anything_is_written(changes, said, tmp_path):
    with pytest.raises(ConfigError, match=said):
        pluribus.compare(None, "digits", methods="mimo", folder=tmp_path / "c", **(OPTIONS | changes))
    assert not (tmp_path / "c").exists()


def test_validation_rows_do_not_choose_where_they_must_judge(tmp_path):
    rows = torch.randn(60, 4), torch.arange(60) % 2
    with pytest.raises(ConfigError, match="has no test rows, so that these must judge"):
        pluribus.compare("mlp", rows, methods="mimo", folder=tmp_path / "c", tune=2, **OPTIONS)


def test_the_lowest_finite_score_is_chosen_and_the_default_if_there_is_none():
    ended = [{"state": "failed", "score": None}, {"state": "complete", "score": None}, {"state": "complete", "score": 0.2}]
    assert choose_trial(ended) == 2
    assert choose_trial(ended[:2]) == 0
    assert choose_trial([{"state": "complete", "score": 0.2}] * 2) == 0


# --- kills and clusters -----------------------------------------------------------------------------------------------

COMMAND = [
    *("compare", "--data", "digits", "--model", "mlp:hidden=[8]", "--methods", "mimo", "--seeds", "1", "--tune", "4"),
    *("--epochs", "3", "--batch-size", "32", "--rows", "120", "--validation", "0.3"),
]


def start(arguments, folder):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        [sys.executable, "-m", "pluribus", *arguments],
        **{"cwd": folder, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True},
    )


def strip_seconds(content):
    if isinstance(content, dict):
        return {key: strip_seconds(value) for key, value in content.items() if key not in ("seconds", "digest")}
    return [strip_seconds(entry) for entry in content] if isinstance(content, list) else content


def read_outcome(folder):
    """What must not depend on kills and workers."""
    tuning = strip_seconds(json.loads((folder / "tuning.json").read_text()))
    results = json.loads((folder / "results.json").read_text())
    return tuning, {method["name"]: (method["spec"], method["scores"]) for method in results["methods"]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The comparison of COMMAND, in one process and without a kill."""
    folder = tmp_path_factory.mktemp("whole") / "c"
    options = {"rows": 120, "epochs": 3, "batch_size": 32, "validation": 0.3, "progress": False}
    pluribus.compare("mlp:hidden=[8]", "digits", methods="mimo", seeds=1, tune=4, folder=folder, **options)
    return read_outcome(folder)


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 5])
def test_a_comparison_that_is_killed_in_its_tuning_ends_as_an_uninterrupted_one(whole, trials, tmp_path):
    """Killed in the first round, and in the second, in the middle of a trial."""
    process = start([*COMMAND, "--out", "c", "--workers", "1"], tmp_path)
    while len(list(tmp_path.glob("c/tuning/*/trial.json"))) < trials:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    while all((path.parent / "trial.json").exists() for path in tmp_path.glob("c/tuning/*/metrics.csv")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)  # until a trial has done an epoch
    process.send_signal(signal.SIGKILL)
    process.wait()
    ended = {path: path.stat().st_mtime_ns for path in tmp_path.glob("c/tuning/*/trial.json")}
    assert not (tmp_path / "c" / "tuning.json").exists()
    assert trials <= len(ended) < 8
    again = start(["compare", "--resume", "c", "--workers", "2"], tmp_path)
    _, said = again.communicate(timeout=600)
    assert again.returncode == 0, said
    assert {path: path.stat().st_mtime_ns for path in ended} == ended, "a trial that has ended is not run again"
    assert read_outcome(tmp_path / "c") == whole


@pytest.mark.slow
def test_a_dask_cluster_chooses_what_one_process_chooses(whole, tmp_path):
    pytest.importorskip("distributed")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{(port := free.getsockname()[1])}"
    base = [sys.executable, "-m"]
    scheduler = subprocess.Popen([*base, "distributed.cli.dask_scheduler", "--port", str(port), "--dashboard-address", ":0"])
    arguments = [*base, "distributed.cli.dask_worker", f"tcp://{address}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    workers = [subprocess.Popen(arguments, env=environment, cwd=tmp_path) for _ in range(2)]
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        process = start([*COMMAND, "--out", "c", "--workers", f"dask://{address}"], tmp_path)
        _, said = process.communicate(timeout=600)
        assert process.returncode == 0, said
        assert "tuning mimo, trial 3" in said
    finally:
        for each in [*workers, scheduler]:
            each.kill()
            each.wait()
    assert read_outcome(tmp_path / "c") == whole
