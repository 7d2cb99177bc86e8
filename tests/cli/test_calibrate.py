"""`pluribus calibrate`: rules are fitted, checked and obeyed by `predict`, and wrong wishes are refused."""

import json

import numpy as np
import pytest
import torch

from pluribus.data import load
from pluribus.decisions.classification import FOREIGN
from pluribus.runs.calibration import read_rules
from pluribus.runs.run_folder import Run
from tests.cli.files import npz

TRAIN = "train --quiet --model mlp:hidden=[32] --epochs 20 --out run"


def read_lines(answer):
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


def test_a_classification_names_sets_withholds_answers_and_raises_alarms(pluribus, work):
    assert pluribus(f"{TRAIN} --data digits --batch-size 16 --validation 0.4 --method batch-ensemble:members=2").code == 0
    answer = pluribus("calibrate run --coverage 0.99 --risk 0.03 --false-alarms 0.1 --ood noise --json")
    (record,) = read_lines(answer)
    checked = record["checked"]
    assert checked["rows"] == 500
    assert checked["coverage"] > 0.97  # 0.99 with a standard error of 0.006 over 500 test rows and 517 held-out rows
    assert checked["risk"] < 0.03 < 0.3 < checked["answered"]
    assert checked["false_alarms"] < 0.1 + 4 * 0.023
    assert checked["caught"] > 0.5
    assert json.loads((work / "run/calibration.json").read_text())["rules"] == record["rules"]
    rules = read_rules(Run(work / "run"))
    assert rules.coverage == 0.99
    data = load("digits")
    noise = np.random.RandomState(0).randint(0, 256, (20, 1, 8, 8)).astype(np.uint8)
    npz("new.npz", x=np.concatenate([data.test.x[:100].numpy(), noise]))(work)
    rows = read_lines(pluribus("predict run new.npz --json"))
    for row in rows:
        assert row["foreign"] == (row["answer"] == FOREIGN)
        if not row["foreign"] and row["answered"]:
            assert row["answer"] == row["label"] == max(row["probabilities"], key=row["probabilities"].get)
        if " or " in row["answer"]:
            assert row["answer"] == " or ".join(row["set"])
    texts = {row["answer"] for row in rows}
    assert FOREIGN in texts
    assert any(" or " in text for text in texts)
    held = [str(truth) in row["set"] for truth, row in zip(data.test.y[:100].tolist(), rows, strict=False)]
    assert sum(held) > 90
    table = pluribus("predict run new.npz")
    assert table.code == 0
    assert "this is not like" in table.out
    others = pluribus("predict run new.npz --json --members 1")
    assert "answer" not in read_lines(others)[0]
    assert "left out" in others.err


def test_the_alarm_may_be_by_the_distance_to_training_rows(pluribus, work):
    assert pluribus(f"{TRAIN} --data digits --method mc-dropout:samples=3 --validation 0.3").code == 0
    told = pluribus("calibrate run --false-alarms 0.05 --alarm distance")
    assert told.code == 0, told.err
    assert "alarm where distance is above" in told.out
    assert "false alarms" in told.out
    noise = np.random.RandomState(0).randint(0, 256, (50, 1, 8, 8)).astype(np.uint8)
    npz("new.npz", x=np.concatenate([load("digits").test.x[:50].numpy(), noise]))(work)
    rows = read_lines(pluribus("predict run new.npz --json"))
    assert sum(row["foreign"] for row in rows[:50]) < 10
    assert sum(row["foreign"] for row in rows[50:]) > 45
    file = work / "run" / "calibration.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    refused = pluribus("predict run new.npz")
    assert refused.code == 2
    assert "belongs to other rules" in refused.err
    file.unlink()
    refused = pluribus("predict run new.npz")
    assert refused.code == 2
    assert "is missing" in refused.err
    assert "pluribus calibrate" in refused.err
    by_foreign_rows = pluribus("calibrate run --false-alarms 0.05 --ood noise --json")
    (record,) = read_lines(by_foreign_rows)
    assert record["rules"]["alarm_score"] == "distance"
    assert file.is_file()
    assert pluribus("calibrate run --coverage 0.9 --alarm distance").code == 2


@pytest.mark.parametrize("method", ["single", "deep-ensemble:members=2"])
def test_intervals_of_large_skewed_targets_hold_their_coverage(pluribus, work, method):
    """Houses: prices about 2e5 with skewed noise. 300 test rows, 170 or 85 rows for the threshold: σ = 0.028 or 0.037."""
    generator = np.random.RandomState(0)
    x = generator.rand(1200, 3)
    price = 1e5 * (1 + x[:, 0] + x[:, 1] * x[:, 2]) + 3e4 * generator.exponential(size=1200)
    rows = [",".join(map(repr, [*row, value])) for row, value in zip(x.tolist(), price.tolist(), strict=True)]
    (work / "houses.csv").write_text("\n".join(["a,b,c,price", *rows]) + "\n")
    assert pluribus(f"{TRAIN} --data houses.csv:test=0.25 --method {method}").code == 0
    before = pluribus("predict run houses.csv --json")
    assert "low" not in read_lines(before)[0]
    assert "pluribus calibrate run" not in before.err
    assert "pluribus calibrate run" in pluribus("predict run houses.csv").out
    told = pluribus("calibrate run --coverage 0.8")
    assert "intervals hold the target with 80 %" in told.out
    checked = json.loads((work / "run/calibration.json").read_text())["checked"]
    assert abs(checked["coverage"] - 0.8) < 4 * 0.04
    found = read_lines(pluribus("predict run houses.csv --json"))
    inside = [row["low"] <= truth <= row["high"] for row, truth in zip(found, price, strict=True)]
    assert 0.65 < sum(inside) / len(inside) < 0.95
    assert found[0]["noise"] > 1e4
    assert found[0]["low"] < found[0]["value"] < found[0]["high"]
    assert "low" in pluribus("predict run houses.csv").out


def test_rules_belong_to_the_weights_they_were_fitted_with(pluribus, a_copy):
    run = a_copy("flowers")
    assert pluribus("calibrate run --coverage 0.5 --split test").code == 0
    weights = run / "weights.safetensors"
    weights.write_bytes(weights.read_bytes() + b" ")
    with pytest.raises(Exception, match="calibrate"):
        read_rules(Run(run))


def test_a_record_that_was_changed_is_refused(pluribus, a_copy, work):
    run = a_copy("digits")
    assert pluribus("calibrate run").code == 0
    path = run / "calibration.json"
    path.write_text(path.read_text().replace('"coverage": 0.9', '"coverage": 0.99', 1))
    npz("new.npz", x=torch.zeros(1, 1, 8, 8, dtype=torch.uint8).numpy())(work)
    answer = pluribus("predict run new.npz")
    assert answer.code == 2
    assert "pluribus calibrate" in answer.err
