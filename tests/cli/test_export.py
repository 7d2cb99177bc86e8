"""`pluribus export`: one file that takes stored rows and answers as `pluribus predict` does, rules included."""

import json

import torch

from pluribus.data import load
from tests.cli.files import npz

TRAIN = "train --quiet --model mlp:hidden=[8] --epochs 2 --rows 300 --validation 0.3 --out run --data digits"


def test_the_file_answers_as_predict_does_with_preparation_and_rules_inside(pluribus, work):
    assert pluribus(f"{TRAIN} --method mimo:members=2").code == 0
    assert pluribus("calibrate run --coverage 0.8 --risk 0.9").code == 0
    images = load("digits").test.x[:20]
    npz("new.npz", x=images.numpy())(work)
    rows = [json.loads(line) for line in pluribus("predict run new.npz --json").out.splitlines()]
    answer = pluribus("export run --out model.pt2")
    assert answer.code == 0, answer.err
    assert "answers: probs, label, members, entropy, mutual_information, set, answered" in answer.out
    probs, label, *_, sets, answered = torch.export.load(work / "model.pt2").module()(images)
    for row, found in enumerate(rows):
        assert str(label[row].item()) == found["label"]
        assert abs(probs[row].max().item() - found["confidence"]) < 1e-5
        assert [str(place) for place in sets[row].nonzero().flatten().tolist()] == found["set"]
        assert bool(answered[row]) == found["answered"]
    card = (work / "model.pt2.md").read_text()
    for words in ("digits", "MIMO(members=2)", "| `input` | uint8 | [B, 1, 8, 8] |", "test rows of digits", "with 80 %"):
        assert words in card
    code = card.split("```python\n")[1].split("```")[0]
    exec(code, {"print": lambda found: None})  # the lines that the card shows run


def test_a_draw_is_fixed_and_wrong_wishes_are_refused(pluribus, work):
    assert pluribus(f"{TRAIN} --method mc-dropout:samples=3").code == 0
    assert pluribus("export run --format torch --samples 5").code == 0
    images = load("digits").test.x[:4]
    assert torch.export.load(work / "model.pt2").module()(images)[2].shape == (5, 4, 10)
    for words, message in (
        ("export run --out model.bin", "must end in .onnx or .pt2"),
        ("export run --format tflite", "onnx or torch"),
        ("export nowhere", "nowhere"),
        ("export run --samples 0", "samples"),
    ):
        answer = pluribus(words)
        assert answer.code == 2
        assert message in answer.err
    assert not (work / "model.bin").exists()
