"""A killed run goes on exactly: the same weights, bit for bit, as if nothing had happened."""

import multiprocessing
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import pluribus
from pluribus import Single
from pluribus.core import files
from pluribus.core.errors import FileError
from pluribus.runs.config import build_config
from pluribus.runs.run_folder import Run
from pluribus.runs.training import train_run
from pluribus.training.checkpoint_files import read_checkpoint, serialize_checkpoint
from pluribus.training.checkpoints import find_newest_checkpoint, list_checkpoints

COMMON = {"data": "digits", "rows": 330, "epochs": 3, "batch_size": 16, "checkpoint_every": "2"}
STEPS = {"optimizer": "sgd", "warmup": 1, "clip": 1.0}
RUNS = {
    "single": COMMON | STEPS | {"method": "single", "model": "small-cnn"},
    "mimo": COMMON | STEPS | {"method": "mimo", "model": "resnet:depth=8", "augment": "crop-flip", "label_smoothing": 0.1},
    "variance": COMMON | {"method": "variance:samples=4", "model": "small-cnn", "patience": 2},
}


def work(options: dict, folder: Path, fatal_write: int | None) -> None:
    """In a process of its own; with `fatal_write` it dies in the middle of writing that checkpoint."""
    os.setpgid(0, 0)
    if fatal_write is not None:
        fsync, count = os.fsync, [0]

        def die(handle: int) -> None:
            count[0] += 1
            if count[0] == fatal_write:
                os.ftruncate(handle, os.fstat(handle).st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            fsync(handle)

        files.os = type("Os", (), vars(os) | {"fsync": staticmethod(die)})  # type: ignore[assignment]
    train_run(build_config(options), folder, resume=True, progress=False)


def killed(options: dict, folder: Path, chance: random.Random) -> bool:
    """Start or go on, and kill it soon after it has written something new; whether it was killed before it was done."""
    before = list_checkpoints(folder / "checkpoints")
    in_writing = chance.randint(1, 4) if chance.random() < 0.4 else None
    process = multiprocessing.get_context("fork").Process(target=work, args=(options, folder, in_writing))
    process.start()
    while process.is_alive() and list_checkpoints(folder / "checkpoints")[:1] == before[:1]:
        time.sleep(0.001)
    if in_writing is None:
        process.join(chance.uniform(0, 0.05))
        process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("name", "most"), [("mimo", 4), ("variance", 2), *(pytest.param(name, 10, marks=pytest.mark.slow) for name in RUNS)]
)
def test_kills_at_random_moments_change_nothing(name, most, tmp_path):
    options = RUNS[name]
    whole = train_run(build_config(options), tmp_path / "whole", progress=False)
    chance, kills = random.Random(name), 0
    while kills < most:
        assert killed(options, tmp_path / "killed", chance), f"it was done after {kills} kills: make it longer"
        kills += 1
    again = train_run(build_config(options), tmp_path / "killed", resume=True, progress=False)
    assert again["scores"] == whole["scores"]
    for file in ("weights.safetensors", "metrics.csv", "config.yaml"):
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    assert not list((tmp_path / "killed" / "checkpoints").glob(".*")), "half a file was left behind"


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run that nothing stopped."""
    folder = tmp_path_factory.mktemp("single") / "whole"
    train_run(build_config(RUNS["single"]), folder, progress=False)
    return folder


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory) -> Path:
    """The same run, killed in its second epoch, with two checkpoints. Tests copy it."""
    folder = tmp_path_factory.mktemp("single") / "stopped"
    with pytest.raises(RuntimeError, match="enough"):
        train_run(build_config(RUNS["single"]), folder, progress=False, callbacks=[StopAt(27)])
    assert [path.name for path in list_checkpoints(folder / "checkpoints")] == [
        "step-00000026.safetensors",
        "step-00000024.safetensors",
    ]
    return folder


@pytest.fixture
def stopped(stopped_once, tmp_path) -> Path:
    return Path(shutil.copytree(stopped_once, tmp_path / "run"))


class StopAt:
    def __new__(cls, step: int):
        import lightning as L

        class Stop(L.Callback):
            def on_train_batch_start(self, trainer, *_):
                if trainer.global_step == step:
                    raise RuntimeError("enough")

        return Stop()


@pytest.mark.parametrize("damage", ["cut", "a flipped bit", "emptied"])
def test_a_damaged_last_checkpoint_falls_back_to_the_one_before_with_a_warning(damage, stopped, whole):
    last, before = list_checkpoints(stopped / "checkpoints")
    content = bytearray(last.read_bytes())
    if damage == "a flipped bit":
        content[-100] ^= 1
    last.write_bytes({"cut": content[: len(content) // 2], "emptied": b""}.get(damage, content))
    with pytest.warns(UserWarning, match="damaged.*going back to the one before"):
        assert find_newest_checkpoint(stopped / "checkpoints", pluribus.ensemble(nn.Linear(1, 1), Single())) == before
    with pytest.warns(UserWarning, match="damaged"):
        train_run(build_config(RUNS["single"]), stopped, resume=True, progress=False)
    assert (stopped / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()


def test_with_every_checkpoint_damaged_the_run_begins_anew(stopped):
    config = build_config(RUNS["single"])
    for path in list_checkpoints(stopped / "checkpoints"):
        path.write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(RuntimeError, match="enough"):
        train_run(config, stopped, resume=True, progress=False, callbacks=[StopAt(7)])
    kept = [path.name for path in list_checkpoints(stopped / "checkpoints")][2:]
    assert kept == ["step-00000006.safetensors", "step-00000004.safetensors"], "what is damaged does not push them out"
    with pytest.warns(UserWarning, match="damaged"):
        result = train_run(config, stopped, resume=True, progress=False)
    assert result["epochs"] == 3


def test_a_checkpoint_of_another_method_is_refused_and_left_alone(stopped):
    kept = {path: path.read_bytes() for path in list_checkpoints(stopped / "checkpoints")}
    with pytest.raises(FileError, match=r"is of Single\(\), not of Inner\(\)"):
        train_run(build_config(RUNS["single"] | {"method": "inner"}), stopped, resume=True, progress=False)
    assert {path: path.read_bytes() for path in kept} == kept


def test_a_finished_run_is_not_trained_again(tmp_path):
    options = RUNS["single"] | {"epochs": 1, "warmup": 0}
    first = train_run(build_config(options), tmp_path / "run", progress=False)
    written = (tmp_path / "run/weights.safetensors").stat().st_mtime_ns
    assert train_run(build_config(options), tmp_path / "run", resume=True, progress=False) == first
    assert (tmp_path / "run/weights.safetensors").stat().st_mtime_ns == written


def test_a_run_killed_while_its_folder_was_made_goes_on(tmp_path, monkeypatch):
    """Whichever of its first files was the last one to be written."""
    options, save = RUNS["single"] | {"epochs": 1, "warmup": 0}, files.write_file

    def dying(path, data):
        if path.name == name:
            raise KeyboardInterrupt
        save(path, data)

    for name in ("about.json", "data.json", "config.yaml"):
        folder = tmp_path / name
        with monkeypatch.context() as patch:
            patch.setattr("pluribus.file_formats.reading.write_file", dying)
            with pytest.raises(KeyboardInterrupt):
                train_run(build_config(options), folder, resume=True, progress=False)
        train_run(build_config(options), folder, resume=True, progress=False)
        assert {"about.json", "data.json", "config.yaml", "result.json"} <= {path.name for path in folder.iterdir()}


def test_two_processes_do_not_work_in_one_run(tmp_path):
    options = build_config(RUNS["single"] | {"epochs": 1, "warmup": 0})
    run = Run(tmp_path / "run")
    run.create()
    with run.lock(wait=False), pytest.raises(FileError, match="another process is working in"):
        train_run(options, run.path, resume=True, progress=False)
    train_run(options, run.path, resume=True, progress=False)


def test_checkpoints_hold_every_kind_of_value(tmp_path):
    state = {
        "tensors": [torch.arange(3), torch.tensor(1.5, dtype=torch.double), torch.empty(0), torch.randn(2, 2).bfloat16()],
        "numbers": {0: 1, 1: 0.1, "inf": float("inf"), "none": None, "yes": True},
        "nested": ((1, 2), [3, {"a": ()}]),
    }
    (tmp_path / "step-00000001.safetensors").write_bytes(serialize_checkpoint(state))
    back = read_checkpoint(tmp_path / "step-00000001.safetensors")
    assert back["numbers"] == state["numbers"]
    assert back["nested"] == state["nested"]
    for ours, theirs in zip(back["tensors"], state["tensors"], strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)


def test_what_is_not_plain_is_not_written():
    with pytest.raises(TypeError, match="got object"):
        serialize_checkpoint({"thing": object()})
