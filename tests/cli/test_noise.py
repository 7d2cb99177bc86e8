"""`--noise`: networks that predict the noise of a regression, from training to intervals; wrong wishes end with code 2."""

import json

import numpy as np
import pytest

from tests.cli.files import npz

REGRESSION = ("value", "low", "high", "noise", "spread")


def write_houses(work, rows=1600):
    """Districts as in California: prices about 2e5, skewed and cut at 5e5, whose noise grows with the third column."""
    generator = np.random.RandomState(0)
    x = generator.rand(rows, 3)
    price = np.exp(11.5 + 1.2 * x[:, 0] + (0.05 + 0.6 * x[:, 2]) * generator.randn(rows)).clip(15_000, 500_001)
    lines = [",".join(map(repr, [*row, value])) for row, value in zip(x.tolist(), price.tolist(), strict=True)]
    (work / "houses.csv").write_text("\n".join(["income,age,rooms,price", *lines]) + "\n")
    return x, price


def read_rows(answer):
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


@pytest.mark.parametrize("method", ["single", "deep-ensemble:members=2"])
def test_intervals_of_predicted_noise_hold_their_coverage_and_are_wide_where_it_is(pluribus, work, method):
    """400 test rows and 300 rows for the threshold: σ is 0.023 for 0.9."""
    x, price = write_houses(work)
    options = "--quiet --model mlp:hidden=[32] --epochs 15 --lr 0.01 --validation 0.25 --noise beta-nll --out run"
    assert pluribus(f"train --data houses.csv:test=0.25 --method {method} {options}").code == 0
    result = json.loads((work / "run/result.json").read_text())
    assert set(result["scores"]) == {"rmse", "nll"}
    before = read_rows(pluribus("predict run houses.csv --json"))
    assert list(before[0]) == ["file", "row", "value", "noise", "spread"]
    told = pluribus("calibrate run --coverage 0.9")
    assert "predicted row by row" in told.out
    assert "e+0" not in told.out
    checked = json.loads((work / "run/calibration.json").read_text())["checked"]
    assert abs(checked["coverage"] - 0.9) < 4 * 0.023
    found = read_rows(pluribus("predict run houses.csv --json"))
    assert list(found[0])[2:] == list(REGRESSION)
    inside = [row["low"] <= truth <= row["high"] for row, truth in zip(found, price, strict=True)]
    assert abs(np.mean(inside) - 0.9) < 0.05
    noise = np.array([row["noise"] for row in found])
    assert [row["noise"] for row in before] == pytest.approx(noise.tolist(), rel=1e-9)
    quiet, loud = noise[x[:, 2] < 0.2], noise[x[:, 2] > 0.8]
    assert loud.mean() > 2 * quiet.mean()
    assert (max(row["spread"] for row in found) > 0) == (method != "single")
    table = pluribus("predict run houses.csv").out
    assert "e+0" not in table
    assert [table.index(name) for name in REGRESSION] == sorted(table.index(name) for name in REGRESSION)
    assert pluribus("evaluate run").code == 0
    judged = json.loads((work / "run/evaluation.json").read_text())
    assert judged["is_noise_predicted"]
    assert judged["noise"] == pytest.approx(np.sqrt(np.mean(noise**2)), rel=0.2)
    assert judged["residuals"]["target"] == "price"
    assert len(judged["residuals"]["truth"]) == 300
    assert judged["interval_calibration"]["held"] == sorted(judged["interval_calibration"]["held"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--data digits --noise gaussian", "digits has classes"),
        ("--data rows.npz --noise laplace", "none, gaussian or beta-nll"),
        ("--data rows.npz --noise gaussian --noise-beta 0.3", "leave it out"),
        ("--data rows.npz --noise beta-nll --noise-beta 2", "at most 1"),
        ("--data rows.npz --noise gaussian --mixup 1", "mixup is for a classification"),
    ],
)
def test_wrong_wishes_are_one_sentence(pluribus, work, options, message):
    npz("rows.npz", x=np.random.RandomState(0).rand(40, 3), y=np.random.RandomState(1).rand(40))(work)
    answer = pluribus(f"train {options} --epochs 1 --out run")
    assert answer.code == 2
    assert message in answer.err
    assert len(answer.err.strip().splitlines()) == 1
