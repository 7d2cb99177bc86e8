"""Quantile normalisation: exact scores, weights, and what a run keeps of it."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from pluribus.core.errors import DataError
from pluribus.data import Columns, Preparation, load
from pluribus.data.quantiles import KNOTS, fit_quantiles
from pluribus.file_formats.run_files import ColumnsPreparation


def test_scores_are_normal_quantiles_of_the_middle_of_equal_rows():
    fitted = fit_quantiles(np.array([5.0, 1.0, 5.0, 5.0, 2.0]))
    assert fitted.values == (1.0, 2.0, 5.0)
    np.testing.assert_allclose(fitted.scores, norm.ppf([0.1, 0.3, 0.7]), atol=1e-12)
    between = fitted.normalize(np.array([1.25, 3.5]))
    np.testing.assert_allclose(between, [0.75 * norm.ppf(0.1) + 0.25 * norm.ppf(0.3), (norm.ppf(0.3) + norm.ppf(0.7)) / 2])
    np.testing.assert_allclose(fitted.normalize(np.array([-9.0, 1e300])), norm.ppf([0.1, 0.7]))


def test_any_column_becomes_standard_normal():
    values = np.exp(3 * np.random.default_rng(0).standard_normal(20_000))
    fitted = fit_quantiles(values)
    scores = fitted.normalize(values)
    assert len(fitted.values) <= KNOTS
    assert abs(scores.mean()) < 0.01
    assert abs(scores.std() - 1) < 0.02
    for share in (0.1, 0.5, 0.9):
        assert abs((scores < norm.ppf(share)).mean() - share) < 0.005


def test_a_weight_of_two_is_the_row_twice():
    values, weights = np.array([3.0, 1.0, 2.0, 7.0]), np.array([1.0, 2.0, 3.0, 1.0])
    assert fit_quantiles(values, weights) == fit_quantiles(np.repeat(values, weights.astype(int)))


def test_a_table_keeps_its_quantiles(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 10.0, 100.0, np.nan], "b": ["x", "y", "x", "y"], "y": [0.5, 1.5, 2.5, 3.5]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    data = load(str(tmp_path / "table.csv"), numbers="quantile", test_mask=[0, 0, 0, 0])
    z = norm.ppf(1 / 6)
    expected = torch.tensor([[z, 0, 1, 0], [0, 0, 0, 1], [-z, 0, 1, 0], [0, 1, 0, 1]], dtype=torch.float)
    torch.testing.assert_close(data.train.x, expected)
    content = json.loads(json.dumps(data.preparation.to_json()))
    ColumnsPreparation(**content)
    again = Preparation.from_json(content)
    assert again == data.preparation
    assert torch.equal(again.encode(frame), data.train.x)


def test_a_run_recorded_before_there_were_quantiles_is_read():
    content = json.loads(json.dumps(Columns.fit(pd.DataFrame({"a": [1.0, 2.0]})).to_json()))
    del content["quantiles"]
    ColumnsPreparation(**content)
    assert Preparation.from_json(content) == Columns.fit(pd.DataFrame({"a": [1.0, 2.0]}))


@pytest.mark.parametrize(
    ("quantiles", "message"),
    [
        ([[[1.0, 2.0], [0.0, 1.0]], [[], []]], "do not fit 1 columns"),
        ([[[1.0, 2.0], [0.0]]], "as many values as scores"),
        ([[[], []]], "as many values as scores"),
        ([[[2.0, 1.0], [0.0, 1.0]]], "must rise"),
    ],
)
def test_damaged_quantiles_are_refused(quantiles, message):
    content = json.loads(json.dumps(Columns.fit(pd.DataFrame({"a": [1.0, 2.0]})).to_json())) | {"quantiles": quantiles}
    with pytest.raises(ValueError, match=message):
        ColumnsPreparation(**content)


def test_an_unknown_way_to_scale_is_refused(tmp_path):
    pd.DataFrame({"a": [1, 2, 3, 4], "y": [0.5, 1.5, 2.5, 3.5]}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="numbers must be standard or quantile, got 'ranks'"):
        load(str(tmp_path / "t.csv"), numbers="ranks")
