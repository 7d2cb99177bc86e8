"""`pluribus predict --members` and `--until`: the answers are those of Python, and the saved passes are shown."""

import json

import pytest
import torch

from pluribus import load as load_weights
from pluribus.data import load
from pluribus.models import build
from tests.cli.files import npz

TRAIN = "train --data digits --model mlp:hidden=[16] --rows 64 --epochs 1 --quiet --out run --method"


def read_lines(answer):
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


def test_some_members_answer_and_passes_are_saved_as_in_python(pluribus, work):
    assert pluribus(f"{TRAIN} batch-ensemble:members=3").code == 0
    data = load("digits")
    npz("five.npz", x=data.test.x[:5].numpy())(work)
    ensemble = load_weights(work / "run/weights.safetensors", build("mlp", (1, 8, 8), 10, hidden=[16]))
    x = data.preparation(data.test.x[:5]).to(torch.float)
    for option, members in (("2", 2), ("0,2", [0, 2]), ("1,", [1])):
        told = read_lines(pluribus(f"predict run five.npz --json --members {option}"))
        confidence = ensemble.predict(x, members=members).confidence.tolist()
        assert [row["confidence"] for row in told] == pytest.approx(confidence)
        assert "members" not in told[0]
    until = ensemble.predict(x, members=1).confidence.median().item() - 1e-4
    expected = ensemble.predict(x, until=until)
    answer = pluribus(f"predict run five.npz --json --until {until}")
    told = read_lines(answer)
    assert [row["members"] for row in told] == expected.used.tolist()
    assert [row["confidence"] for row in told] == pytest.approx(expected.confidence.tolist())
    note = f"of 3 members on average: {100 * expected.saved:.0f} % of the passes saved"
    assert note in answer.err
    assert 0 < expected.saved < 1
    shown = pluribus(f"predict run five.npz --until {until}")
    assert note in shown.out
    assert "members" in shown.out
    for options, words in (
        ("--members 4", "members must be from 1 to 3"),
        ("--members 0,3", "there are members 0 to 2, got 3"),
        ("--members two", "number of members (2), or their numbers (0,3)"),
        ("--until 0", "until must be a probability above 0"),
        ("--until 1.5", "--until"),
    ):
        refused = pluribus(f"predict run five.npz {options}")
        assert refused.code == 2
        assert words in " ".join(refused.err.replace("│", " ").split())
