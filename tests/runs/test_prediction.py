"""Predictions of new files: numbers keep their digits, and rows that mean nothing are refused."""

import numpy as np
import pytest
import torch
from torch import nn

import pluribus
from pluribus.comparison.passed_data import build_data
from pluribus.core.ensemble import Ensemble
from pluribus.core.errors import DataError
from pluribus.data import load
from pluribus.runs.config import build_config
from pluribus.runs.evaluation_case import EvaluationCase
from pluribus.runs.prediction import format_predictions, format_row, predict_files
from pluribus.runs.training import train_run


class Exact(nn.Module):
    """Predicts the standardised targets of the rows 0, 1, …, whose only column is their number."""

    def __init__(self, y):
        super().__init__()
        self.table = nn.Parameter(y[:, None])

    def forward(self, x):
        return self.table[x[:, 0].long()]


@pytest.mark.parametrize(("offset", "width"), [(1.7e9, 100.0), (1e9, 1.0), (-1e12, 1e3)])
@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_large_targets_keep_the_digits_of_their_spread(tmp_path, offset, width, suffix):
    y = offset + np.random.RandomState(0).rand(64) * width
    path = tmp_path / f"times{suffix}"
    if suffix == ".npz":
        np.savez(path, x=np.arange(64.0)[:, None], y=y)
    else:
        path.write_text("number,y\n" + "".join(f"{row},{value!r}\n" for row, value in enumerate(y.tolist())))
    data = load(str(path), test=0)
    assert np.array_equal(data.train.y.numpy(), y)
    scaled = data.preparation.scale_targets(data.train.y)
    assert scaled.dtype == torch.float
    torch.testing.assert_close(scaled.mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaled.std(correction=0), torch.tensor(1.0), atol=1e-5, rtol=0)
    rows = torch.arange(64.0)[:, None]
    ensemble = pluribus.ensemble(Exact(scaled), pluribus.Single(), task="regression", example=rows[:2])
    found = list(format_predictions(ensemble, ensemble.predict(rows), (), data.preparation))
    values = np.array([row["value"] for row in found])
    error = max(1e-6 * width, 2 * np.spacing(abs(offset)))
    assert np.abs(values - y).max() <= error
    shown = np.array([float(format_row(row, data.preparation)["value"]) for row in found])
    assert np.abs(shown - y).max() <= 1e-3 * width


def test_scores_of_large_targets_are_those_of_their_digits(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.arange(64.0)[:, None], y=1.7e9 + np.arange(64) * 1.5)
    data = load(str(tmp_path / "t.npz"), test=0)
    off_by_one = data.preparation.scale_targets(data.train.y + 1)
    ensemble = pluribus.ensemble(Exact(off_by_one), pluribus.Single(), task="regression", example=data.train.x[:2])
    assert EvaluationCase(ensemble, data, data.train).tally_scores().scores()["rmse"] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("y", "said"), [([1e9 + 0.5] * 8, "is 1000000000.5 in every"), ([5e-324, 0.0] * 4, "cannot be standard")]
)
def test_targets_without_a_spread_are_refused_with_their_digits(tmp_path, y, said):
    np.savez(tmp_path / "t.npz", x=np.eye(8), y=np.array(y))
    with pytest.raises(DataError, match=said):
        load(str(tmp_path / "t.npz"), test=0)
    with pytest.raises(DataError, match=said):
        build_data((np.eye(8), np.array(y)))


def test_new_files_are_predicted_without_holding_the_members(tmp_path, monkeypatch):
    rows = np.random.RandomState(0).rand(40, 3).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=rows, y=np.arange(40) % 2)
    options = {"data": str(tmp_path / "data.npz"), "model": "mlp:hidden=[8]", "method": "mc-dropout:samples=5", "epochs": 1}
    train_run(build_config(options), tmp_path / "run", progress=False)
    np.savez(tmp_path / "new.npz", x=rows[:7])
    kept, predict = [], Ensemble.predict
    monkeypatch.setattr(Ensemble, "predict", lambda *args, **options: kept.append(predict(*args, **options)) or kept[-1])
    found = list(predict_files(tmp_path / "run", [tmp_path / "new.npz"]))
    assert [len(p) for p in kept] == [7]
    assert kept[0].count == 5
    assert not hasattr(kept[0], "outputs")
    assert [row["confidence"] for row in found] == kept[0].confidence.tolist()
