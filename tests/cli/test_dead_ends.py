"""Where a command sends the user on, the next command helps."""

import json
import shutil

import torch
from safetensors import safe_open

from pluribus.training.checkpoint_files import read_checkpoint, serialize_checkpoint
from pluribus.training.checkpoints import list_checkpoints

from .cases import TRAIN
from .files import png


def test_weights_that_are_missing_are_made_again_from_the_last_checkpoint(a_copy, pluribus, work):
    run = a_copy("digits")
    png("a.png")(work)
    expected, before, result = (
        pluribus("predict run a.png --json").out,
        *((run / name).read_bytes() for name in ("weights.safetensors", "result.json")),
    )
    (run / "weights.safetensors").unlink()
    lost = pluribus("predict run a.png")
    assert lost.code == 2
    assert "run has lost its weights: make them again with `pluribus train --resume run`" in lost.err
    assert pluribus("train --resume run --quiet").code == 0
    assert (run / "weights.safetensors").read_bytes() == before
    assert (run / "result.json").read_bytes() == result
    assert pluribus("predict run a.png --json").out == expected


def test_without_a_checkpoint_it_is_said_how_to_train_again(a_copy, pluribus):
    run = a_copy("digits")
    (run / "weights.safetensors").unlink()
    shutil.rmtree(run / "checkpoints")
    answer = pluribus("train --resume run")
    assert answer.code == 2
    assert "no checkpoint to make it from" in answer.err
    assert "pluribus train --config run/config.yaml" in answer.err
    assert pluribus("train --config run/config.yaml --out again --quiet").code == 0


def test_the_next_run_removes_what_a_killed_one_left(a_copy, pluribus):
    run = a_copy("digits")
    (run / "result.json").unlink()
    left = [
        run / ".weights.safetensors.abcd1234.pluribus-tmp",
        run / "checkpoints/.step-00000002.safetensors.abcd1234.pluribus-tmp",
    ]
    for path in left:
        path.write_text("half")
    (run / ".notes").write_text("mine")
    assert pluribus("train --resume run --quiet").code == 0
    assert not any(path.exists() for path in left)
    assert (run / ".notes").read_text() == "mine"


def break_checkpoint(path):
    state = read_checkpoint(path)
    next(iter(state["state_dict"].values())).view(-1)[0] = torch.nan
    path.write_bytes(serialize_checkpoint(state))


def test_a_diverged_run_that_is_resumed_is_told_so(a_copy, pluribus):
    run = a_copy("digits")
    (run / "result.json").unlink()
    for path in list_checkpoints(run / "checkpoints"):
        break_checkpoint(path)
    answer = pluribus("train --resume run --quiet")
    assert answer.code == 2
    assert "Traceback" not in answer.err
    last = answer.err.splitlines()[-1]
    assert last.startswith("pluribus: the run has diverged: net.")
    assert "Train anew, with a lower lr, warmup or clip" in last
    assert not (run / "result.json").exists()


def test_a_run_that_diverges_leaves_no_result_and_no_label(pluribus, work):
    answer = pluribus(f"{TRAIN} --optimizer sgd --lr 1e30 --batch-size 64 --out run".replace("--epochs 1", "--epochs 2"))
    assert answer.code == 2
    assert "became" in answer.err.splitlines()[-1]
    assert not (work / "run/result.json").exists()
    again = pluribus("train --resume run --quiet")
    assert again.code == 2
    assert "Traceback" not in again.err


def test_a_network_that_overflows_after_its_last_step_is_flagged(pluribus, work):
    """The loss of the last step is computed before its update: it is finite, as are the weights."""
    answer = pluribus(f"{TRAIN} --optimizer sgd --lr 1e30 --momentum 0 --batch-size 64 --out run")
    assert answer.code == 0
    assert "rows have no finite answer" in answer.out
    assert set(json.loads((work / "run/result.json").read_text())["scores"].values()) == {None}


def test_damaged_weights_are_refused_by_every_command(a_copy, pluribus, work):
    run = a_copy("digits")
    png("a.png")(work)
    data = bytearray((run / "weights.safetensors").read_bytes())
    data[-2] ^= 64
    (run / "weights.safetensors").write_bytes(data)
    for line in ("predict run a.png", "evaluate run"):
        answer = pluribus(line)
        assert answer.code == 2
        assert "weights.safetensors is damaged: its content is not what was written" in answer.err
    with safe_open(run / "weights.safetensors", "pt") as opened:
        assert "digest" in json.loads(opened.metadata()["pluribus"])
