"""`--quantiles`: from training to intervals whose ends are learnt; wrong wishes end with code 2."""

import json

import numpy as np
import pytest

from tests.cli.files import npz
from tests.cli.test_noise import read_rows, write_houses


def test_intervals_from_quantiles_hold_their_coverage_and_are_wide_where_the_noise_is(pluribus, work):
    """400 test rows and 300 rows for the threshold: σ is 0.023 for 0.9."""
    x, price = write_houses(work)
    options = "--quiet --model mlp:hidden=[32] --epochs 15 --lr 0.01 --validation 0.25 --quantiles 0.05,0.95 --out run"
    assert pluribus(f"train --data houses.csv:test=0.25 --method deep-ensemble:members=2 {options}").code == 0
    assert set(json.loads((work / "run/result.json").read_text())["scores"]) == {"rmse", "pinball"}
    before = read_rows(pluribus("predict run houses.csv --json"))
    assert list(before[0]) == ["file", "row", "value", "spread", "quantiles"]
    assert all(row["quantiles"]["0.05"] <= row["quantiles"]["0.95"] for row in before)
    table = pluribus("predict run houses.csv")
    assert "q0.05" in table.out
    assert "pluribus calibrate run" in table.out
    told = pluribus("calibrate run")
    assert "intervals hold the target with 90 %: from the quantile 0.05 to 0.95" in told.out
    checked = json.loads((work / "run/calibration.json").read_text())["checked"]
    assert abs(checked["coverage"] - 0.9) < 4 * 0.023
    found = read_rows(pluribus("predict run houses.csv --json"))
    assert list(found[0])[2:] == ["value", "low", "high", "spread", "quantiles"]
    moved = [row["quantiles"]["0.05"] - row["low"] for row in found] + [row["high"] - row["quantiles"]["0.95"] for row in found]
    assert moved == pytest.approx([moved[0]] * len(moved), abs=1e-6 * price.max())
    low, high = (np.array([row[end] for row in found]) for end in ("low", "high"))
    assert abs(np.mean((low <= price) & (price <= high)) - 0.9) < 0.05
    width = high - low
    assert width[x[:, 2] > 0.8].mean() > 1.5 * width[x[:, 2] < 0.2].mean()
    table = pluribus("predict run houses.csv").out
    assert "q0.05" not in table
    assert [table.index(name) for name in ("value", "low", "high", "spread")] == sorted(
        table.index(name) for name in ("value", "low", "high", "spread")
    )
    assert "by their distance" not in told.out
    assert "their distance" in pluribus("calibrate run --coverage 0.8 --scale normalised").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--data digits --quantiles 0.1,0.9", "digits has classes"),
        ("--data rows.npz --quantiles 0.9,0.1", "rising numbers between 0 and 1"),
        ("--data rows.npz --quantiles 0.5", "rising numbers between 0 and 1"),
        ("--data rows.npz --quantiles 5,95", "rising numbers between 0 and 1"),
        ("--data rows.npz --quantiles low,high", "quantiles must be"),
        ("--data rows.npz --quantiles 0.1,0.9 --noise gaussian", "leave one of them out"),
    ],
)
def test_wrong_wishes_are_one_sentence(pluribus, work, options, message):
    npz("rows.npz", x=np.random.RandomState(0).rand(40, 3), y=np.random.RandomState(1).rand(40))(work)
    answer = pluribus(f"train {options} --epochs 1 --out run")
    assert answer.code == 2
    assert message in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_no_quantiles_can_be_said(pluribus, work):
    npz("rows.npz", x=np.random.RandomState(0).rand(40, 3), y=np.random.RandomState(1).rand(40))(work)
    assert pluribus("train --data rows.npz --quantiles none --epochs 1 --quiet --out run").code == 0
    assert "quantiles: []" in (work / "run/config.yaml").read_text()


def test_a_student_cannot_learn_quantiles(pluribus, work):
    npz("rows.npz", x=np.random.RandomState(0).rand(40, 3), y=np.random.RandomState(1).rand(40))(work)
    assert pluribus("train --data rows.npz --epochs 1 --quiet --quantiles 0.1,0.9 --out teacher").code == 0
    for wanted, message in (("--quantiles 0.1,0.9", "leave quantiles out"), ("", "means and quantiles")):
        answer = pluribus(f"train --data rows.npz --teacher teacher {wanted} --epochs 1 --out run")
        assert answer.code == 2
        assert message in answer.err
