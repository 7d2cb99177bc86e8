"""Methods that are added to a finished comparison."""

import runpy
import shutil
from pathlib import Path

import pytest

import pluribus
from pluribus.comparison.comparison_folder import ComparisonFolder
from pluribus.comparison.extension import extend_command, extend_comparison
from pluribus.file_formats.comparison_files import Results
from pluribus.file_formats.reading import read_json
from pluribus.runs.config import ConfigError

NETWORK = "mlp:hidden=[8]"
OPTIONS = {"rows": 120, "epochs": 1, "batch_size": 32, "validation": 0.3, "progress": False}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extension") / "small"
    methods = ["single", "deep-ensemble:members=2"]
    pluribus.compare(
        NETWORK,
        "digits",
        methods=methods,
        seeds=[0, 2],
        tune=2,
        folder=folder,
        command="pluribus compare --methods single",
        **OPTIONS,
    )
    return folder


def test_the_extended_comparison_has_the_numbers_of_one_that_was_planned_at_once(small, tmp_path):
    folder = shutil.copytree(small, tmp_path / "c")
    before = {place: place.stat().st_mtime_ns for place in folder.glob("*-seed*/result.json")}
    added = ["single", "batch-ensemble:members=2", "deep-ensemble:members=2"]
    more = pluribus.compare(methods=added, distil="single", folder=folder, resume=True, progress=False)
    methods = ["single", "deep-ensemble:members=2", "batch-ensemble:members=2"]
    whole = pluribus.compare(NETWORK, "digits", methods=methods, seeds=[0, 2], tune=2, distil="single", **OPTIONS)
    assert {place: place.stat().st_mtime_ns for place in before} == before, "what was trained is not trained again"
    assert more.results["command"] == "pluribus compare --methods single,batch-ensemble:members=2 --distil single"
    scores = ["nll", "accuracy", "calibrated_nll"]
    assert more.to_frame()[scores].to_dict() == whole.to_frame()[scores].to_dict()
    assert list(more.to_frame().index) == list(whole.to_frame().index)
    tuned = [{entry["name"]: entry["chosen"] for entry in found.results["tuning"]["methods"]} for found in (more, whole)]
    assert tuned[0] == tuned[1]


def test_a_recorded_comparison_has_no_weights_and_can_be_extended(small, tmp_path):
    record = runpy.run_path(str(Path(__file__).parents[2] / "results" / "record.py"))
    record["pack_runs"](small, tmp_path / "runs")
    record["unpack_runs"](tmp_path / "runs", tmp_path / "c")
    assert not [*(tmp_path / "c").rglob("weights.*"), *(tmp_path / "c").rglob("checkpoints")]
    more = pluribus.compare(methods=["multihead:members=2"], folder=tmp_path / "c", resume=True, progress=False)
    before = {each["name"]: each["scores"] for each in read_json(small / "results.json", Results)["methods"]}
    after = {each["name"]: each["scores"] for each in more.results["methods"]}
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"multihead:members=2"}
    assert len([*(tmp_path / "c").rglob("weights.safetensors")]) == 2, "what was trained is not trained again"


def test_what_is_there_is_not_added_again(small):
    made = ComparisonFolder.open(small)
    assert extend_comparison(made, ["deep-ensemble:members=2", pluribus.Single()], []) is made


def test_a_method_that_does_not_fit_is_refused_before_anything_is_written(small):
    before = {place: place.read_bytes() for place in small.rglob("*.*") if place.is_file()}
    with pytest.raises(ConfigError, match="no-such-method"):
        pluribus.compare(methods=["inner", "no-such-method"], folder=small, resume=True, progress=False)
    assert {place: place.read_bytes() for place in small.rglob("*.*") if place.is_file()} == before


def test_the_note_about_many_methods_counts_them_all(small, tmp_path):
    folder = tmp_path / "c"
    shutil.copytree(small, folder)
    added = ["inner", "multihead", "treenet", "mimo"]
    made = extend_comparison(ComparisonFolder.open(folder), added, [])
    notes = [note for note in made.about["notes"] if "beyond the noise by chance" in note]
    assert ["of 6 methods" in note for note in notes] == [True]
    made = extend_comparison(ComparisonFolder.open(folder), ["maxout:copies=2"], [])
    notes = [note for note in made.about["notes"] if "beyond the noise by chance" in note]
    assert ["of 7 methods" in note for note in notes] == [True]


def test_a_reference_that_was_missing_is_missing_no_longer(tmp_path):
    options = OPTIONS | {"progress": False}
    pluribus.compare(NETWORK, "digits", methods=["single", "inner"], seeds=[0], folder=tmp_path / "c", **options)
    made = ComparisonFolder.open(tmp_path / "c")
    assert any(note.startswith("There is no deep-ensemble here") for note in made.about["notes"])
    made = extend_comparison(made, ["multihead"], [])
    assert any(note.startswith("There is no deep-ensemble here") for note in made.about["notes"])
    made = extend_comparison(made, ["deep-ensemble:members=2"], [])
    assert not any(note.startswith("There is no deep-ensemble here") for note in made.about["notes"])


@pytest.mark.parametrize(
    ("command", "settings", "extended"),
    [
        ("pluribus compare", {"epochs": 60}, "pluribus compare --distil single --student epochs=60"),
        (
            "pluribus compare --distil inner --student epochs=60",
            {"epochs": 60},
            "pluribus compare --distil inner,single --student epochs=60",
        ),
        (
            "pluribus compare --distil inner",
            {"epochs": 60},
            "pluribus compare --distil inner\npluribus compare --resume FOLDER --distil single --student epochs=60",
        ),
        (
            "pluribus compare --distil inner --student epochs=60",
            {},
            "pluribus compare --distil inner --student epochs=60\npluribus compare --resume FOLDER --distil single",
        ),
        ("", {"epochs": 60}, ""),
    ],
)
def test_the_command_says_with_which_settings_added_students_learn(command, settings, extended):
    assert extend_command(command, [], [{"name": "single"}], settings) == extended
