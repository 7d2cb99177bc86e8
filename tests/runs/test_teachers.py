"""Runs that learn from another run: what is recorded, what is checked, and how they go on."""

import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from pluribus.core.errors import FileError
from pluribus.file_formats.comparison_files import ConfigFile
from pluribus.file_formats.reading import read_yaml, write_yaml
from pluribus.runs import training
from pluribus.runs.config import ConfigError, build_config, read_config
from pluribus.runs.consent import ConsentError
from pluribus.runs.loading import load_run
from pluribus.runs.run_folder import Run
from pluribus.runs.training import train_run
from pluribus.training.distillation import Teacher

COMMON = {"data": "digits", "model": "mlp:hidden=[8]", "rows": 96, "epochs": 2, "batch_size": 32}
TEACHER = COMMON | {"method": "deep-ensemble:members=2", "epochs": 1}
STUDENT = COMMON | {"method": "multihead:members=2", "mixup": 0.5}


def train(options, folder, **more):
    return train_run(build_config(options), folder, progress=False, **more)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A teacher, and a student that was trained without a stop."""
    folder = tmp_path_factory.mktemp("taught")
    train(TEACHER, folder / "teacher")
    result = train(STUDENT | {"teacher": str(folder / "teacher")}, folder / "student")
    return folder, result


def test_the_configuration_records_the_teacher_its_method_and_its_weights(place):
    folder, result = place
    recorded = read_config(folder / "student/config.yaml").teacher
    ensemble = load_run(Run(folder / "teacher"))[0]
    assert recorded == {
        "run": str((folder / "teacher").resolve()),
        "method": "deep-ensemble:members=2",
        "digest": Teacher(ensemble).digest,
    }
    assert result["title"] == "digits · mlp:hidden=[8] · multihead:members=2 ← deep-ensemble:members=2"


def test_the_student_learns_from_the_teacher(place, tmp_path):
    folder, _ = place
    train(STUDENT, tmp_path / "alone")
    ours, alone = (load_file(path / "weights.safetensors") for path in (folder / "student", tmp_path / "alone"))
    assert any(not torch.equal(ours[name], alone[name]) for name in alone)


def test_a_student_that_was_stopped_goes_on_exactly_and_only_with_the_same_teacher(place, tmp_path, monkeypatch):
    folder, _ = place
    shutil.copytree(folder / "teacher", tmp_path / "teacher")

    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    with monkeypatch.context() as patch:  # after the first checkpoint, at the end of the first epoch
        patch.setattr(training.Run, "write_metrics", die)
        with pytest.raises(Killed):
            train(STUDENT | {"teacher": str(tmp_path / "teacher"), "checkpoint_every": "1"}, tmp_path / "student")
    assert list((tmp_path / "student/checkpoints").glob("step-*"))
    config = tmp_path / "student/config.yaml"
    shutil.move(tmp_path / "teacher", tmp_path / "moved")
    with pytest.raises(FileError, match=r"teacher is missing: bring it back, or name its new place with --teacher"):
        train_run(read_config(config), tmp_path / "student", resume=True, progress=False)
    train(TEACHER | {"lr": 0.01}, tmp_path / "other")
    with pytest.raises(FileError, match="are not those that the run began with"):
        train_run(read_config(config, teacher=str(tmp_path / "other")), tmp_path / "student", resume=True, progress=False)
    moved = read_config(config, teacher=str(tmp_path / "moved"))
    train_run(moved, tmp_path / "student", resume=True, progress=False)
    ours, whole = (load_file(path / "student/weights.safetensors") for path in (tmp_path, folder))
    for name, weight in whole.items():
        assert torch.equal(ours[name], weight), name


def test_a_relative_teacher_lies_beside_the_student(place, tmp_path):
    folder, _ = place
    shutil.copytree(folder / "teacher", tmp_path / "teacher")
    train(STUDENT | {"teacher": {"run": "../teacher"}, "epochs": 1}, tmp_path / "student")
    assert read_yaml(tmp_path / "student/config.yaml", ConfigFile)["teacher"]["run"] == "../teacher"


def test_a_teacher_of_other_rows_is_warned_about(place, tmp_path):
    folder, _ = place
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(STUDENT | {"teacher": str(folder / "teacher"), "seed": 3, "epochs": 1}, tmp_path / "student")
    assert any("validation scores are too good" in str(each.message) for each in caught)


def test_what_cannot_teach_is_refused_before_a_folder_is_made(place, tmp_path):
    folder, _ = place
    images, labels = np.zeros((40, 1, 8, 8), np.uint8), np.arange(40) % 2
    images[::3] = 9
    np.savez(tmp_path / "other.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    other = str(tmp_path / "other.npz")
    wrong = {
        "is missing": ({"teacher": str(tmp_path / "nowhere")}, FileError),
        "is no run": ({"teacher": str(folder)}, FileError),
        "differs from it in its classes": ({"teacher": str(folder / "teacher"), "data": other}, ConfigError),
        "must be the folder of a run": ({"teacher": {"runs": "x"}}, ConfigError),
        "teacher_weight must be at most 1": ({"teacher_weight": 2}, ConfigError),
        "mixup must be at least 0": ({"mixup": -1}, ConfigError),
    }
    for words, (options, kind) in wrong.items():
        with pytest.raises(kind, match=words):
            train(STUDENT | options, tmp_path / "student")
    assert not (tmp_path / "student").exists()
    with pytest.raises(ConfigError, match="cannot be its own teacher"):
        train(STUDENT | {"teacher": str(tmp_path / "student")}, tmp_path / "student")


def test_the_network_of_a_teacher_is_imported_with_consent_only(place, tmp_path):
    folder, _ = place
    shutil.copytree(folder / "teacher", tmp_path / "teacher")
    settings = read_yaml(tmp_path / "teacher/config.yaml", ConfigFile)
    write_yaml(tmp_path / "teacher/config.yaml", settings | {"model": {"name": "teacher_nets:build"}})
    with pytest.raises(ConsentError, match="teacher_nets:build, which would run code"):
        train(STUDENT | {"teacher": str(tmp_path / "teacher")}, tmp_path / "student")
