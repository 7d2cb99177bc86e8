"""The estimators of scikit-learn: its own checks, tables with texts and gaps, weights, intervals."""

import itertools
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pluribus
from pluribus.sklearn import EnsembleClassifier, EnsembleRegressor

CHECKS = """
import sys, warnings
warnings.filterwarnings("ignore")
from sklearn.utils.estimator_checks import check_estimator
import pluribus
kind = getattr(pluribus.sklearn, sys.argv[1])
made = kind(method=sys.argv[2], epochs=15, lr=0.03, random_state=0, **eval(sys.argv[3]))
found = check_estimator(made, on_skip=None, on_fail=None)
wrong = [f"{one['check_name']}: {one['status']}, {one['exception']}" for one in found if one["status"] != "passed"]
print(len(found), wrong)
sys.exit(bool(wrong) or len(found) < 50)
"""


MLP, SMALL, DEFAULT = {"hidden": (16,)}, {"network": "tabular:width=16,depth=1"}, {}


@pytest.mark.parametrize(
    ("kind", "method", "network"),
    [
        ("EnsembleRegressor", "batch-ensemble", SMALL),
        *(
            pytest.param(kind, method, network, marks=pytest.mark.slow)
            for kind, method, network in [
                ("EnsembleClassifier", "batch-ensemble", SMALL),
                ("EnsembleRegressor", "batch-ensemble", DEFAULT),
                ("EnsembleClassifier", "batch-ensemble", DEFAULT),
                ("EnsembleRegressor", "batch-ensemble", MLP | {"quantiles": (0.1, 0.9)}),
                *itertools.product(
                    ("EnsembleRegressor", "EnsembleClassifier"),
                    ("batch-ensemble", "mc-dropout", "deep-ensemble:members=2"),
                    [MLP],
                ),
            ]
        ),
    ],
)
def test_all_checks_of_scikit_learn_pass_and_none_is_skipped(kind, method, network):
    """In a process of its own, because SCIPY_ARRAY_API, without which a check is skipped, is read when SciPy is imported."""
    words = [sys.executable, "-c", CHECKS, kind, method, repr(network)]
    done = subprocess.run(words, env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def make_people(rows=200, seed=0):
    generator = np.random.RandomState(seed)
    age, town = generator.rand(rows) * 60 + 20, generator.choice(["Rome", "Oslo", "Bern"], rows)
    income = np.where(town == "Oslo", 5e4, 3e4) + 500 * age + 2e3 * generator.randn(rows)
    frame = pandas.DataFrame({"age": age, "town": pandas.Categorical(town), "member": generator.rand(rows) > 0.5})
    frame.loc[generator.rand(rows) < 0.1, "age"] = np.nan
    return frame, income


def test_tables_with_texts_truth_values_and_gaps():
    frame, income = make_people()
    model = EnsembleRegressor(epochs=25, batch_size=16, lr=0.01, hidden=(32,), random_state=0).fit(frame, income)
    assert model.score(frame, income) > 0.5
    assert list(model.feature_names_in_) == ["age", "town", "member"]
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"age": "years"}))
    rich = np.where(income > np.median(income), "rich", "poor")
    classifier = EnsembleClassifier(epochs=25, batch_size=16, lr=0.01, hidden=(32,), random_state=0).fit(frame, rich)
    assert classifier.score(frame, rich) > 0.8
    assert set(classifier.predict(frame)) == {"rich", "poor"}
    assert np.allclose(classifier.predict_proba(frame).sum(1), 1)


@pytest.mark.parametrize("method", ["batch-ensemble", pluribus.MCDropout(samples=5), "mimo:members=2"], ids=str)
def test_whole_weights_are_repeated_rows_and_zero_weights_are_none(method):
    generator = np.random.RandomState(0)
    x, y = generator.rand(40, 2), generator.rand(40)
    weights = generator.randint(0, 4, 40)
    made = EnsembleRegressor(method=method, epochs=3, hidden=(8,), random_state=0)
    weighted = clone(made).fit(x, y, sample_weight=weights).predict(x)
    order = generator.permutation(weights.sum())
    repeated = clone(made).fit(np.repeat(x, weights, 0)[order], np.repeat(y, weights)[order]).predict(x)
    assert np.array_equal(weighted, repeated)
    assert not np.array_equal(weighted, clone(made).fit(x, y).predict(x))


def test_fractions_of_weights_move_the_answer_to_what_weighs_more():
    x, y = np.zeros((100, 1)), np.repeat([0.0, 1.0], 50)
    made = EnsembleRegressor(method="single", epochs=200, hidden=(4,), batch_size=100, validation=0, random_state=0)
    answer = made.fit(x, y, sample_weight=np.repeat([0.25, 0.75], 50)).predict(x[:1])
    assert answer == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize("method", ["single", "batch-ensemble"])
def test_intervals_hold_new_targets_as_often_as_asked(method):
    """400 held-out rows of 2,000 and 2,000 new ones: σ of the share is 0.017 (0.023 where half of them fit the noise)."""
    generator = np.random.RandomState(0)
    x = generator.rand(4000, 2)
    y = 1e6 * x[:, 0] + 1e5 * generator.exponential(size=4000)
    model = EnsembleRegressor(method=method, epochs=20, hidden=(32,), validation=0.2, random_state=0).fit(x[:2000], y[:2000])
    for coverage in (0.8, 0.95):
        low, high = model.predict_interval(x[2000:], coverage)
        assert abs(((low <= y[2000:]) & (y[2000:] <= high)).mean() - coverage) < 4 * 0.023
    mean, std = model.predict(x[2000:], return_std=True)
    assert 0.5 < np.sqrt(np.mean((y[2000:] - mean) ** 2)) / std.mean() < 2
    assert model.noise_ > 5e4


def test_predicted_noise_makes_intervals_wide_where_it_is_large():
    """400 held-out rows of 2,000 and 2,000 new ones, σ 0.017; a classifier has no such parameter."""
    generator = np.random.RandomState(0)
    x = generator.rand(4000, 2)
    y = 1e6 * x[:, 0] + 3e5 * x[:, 1] * generator.randn(4000)
    options = {"method": "single", "epochs": 20, "hidden": (32,), "validation": 0.2, "random_state": 0}
    model = EnsembleRegressor(**options, noise="beta-nll").fit(x[:2000], y[:2000])
    low, high = model.predict_interval(x[2000:], 0.9)
    assert abs(((low <= y[2000:]) & (y[2000:] <= high)).mean() - 0.9) < 4 * 0.017
    assert model.noise_ is None
    _, std = model.predict(x[2000:], return_std=True)
    quiet, loud = x[2000:, 1] < 0.2, x[2000:, 1] > 0.8
    assert 2 * (high - low)[quiet].mean() < (high - low)[loud].mean()
    assert 0.8 < std[loud].mean() / 2.7e5 < 1.25
    assert "noise" not in EnsembleClassifier().get_params()


def test_learnt_quantiles_are_the_ends_of_intervals_that_hold_new_targets_as_often_as_asked():
    """400 held-out rows of 2,000 and 2,000 new ones, σ 0.017; the noise is skewed, and the upper end is farther away."""
    generator = np.random.RandomState(0)
    x = generator.rand(4000, 2)
    y = 1e6 * x[:, 0] + 3e5 * x[:, 1] * generator.exponential(size=4000)
    options = {"method": "single", "epochs": 10, "hidden": (32,), "validation": 0.2, "random_state": 0}
    model = EnsembleRegressor(**options, quantiles=(0.05, 0.95)).fit(x[:2000], y[:2000])
    low, high = model.predict_interval(x[2000:], 0.9)
    assert abs(((low <= y[2000:]) & (y[2000:] <= high)).mean() - 0.9) < 4 * 0.017
    loud = x[2000:, 1] > 0.8
    mean, std = model.predict(x[2000:], return_std=True)
    assert (high - mean)[loud].mean() > 1.5 * (mean - low)[loud].mean()
    learnt = model.predict_quantiles(x[2000:])
    assert learnt.shape == (2000, 2)
    assert np.allclose(learnt[:, 0] - low, high - learnt[:, 1])
    assert std.min() == pytest.approx(model.noise_)
    with pytest.raises(ValueError, match="has learnt no quantiles"):
        EnsembleRegressor(epochs=1, hidden=(4,)).fit(x[:20], y[:20]).predict_quantiles(x)
    with pytest.raises(ValueError, match="rising numbers"):
        EnsembleRegressor(epochs=1, hidden=(4,), quantiles=(0.9, 0.1)).fit(x[:20], y[:20])


def test_without_held_out_rows_there_are_no_intervals():
    model = EnsembleRegressor(epochs=1, hidden=(4,), validation=0).fit(np.eye(20), np.arange(20.0))
    with pytest.raises(ValueError, match="held-out rows"):
        model.predict_interval(np.eye(20))


def test_pipelines_grid_search_pickles_and_networks_of_ones_own():
    generator = np.random.RandomState(0)
    x = generator.randn(120, 3)
    y = (x[:, 0] > 0).astype(int)
    made = EnsembleClassifier(method="single", epochs=10, batch_size=16, network=torch.nn.Linear, random_state=0)
    search = GridSearchCV(make_pipeline(StandardScaler(), made), {"ensembleclassifier__lr": [1e-6, 0.05]}, cv=2).fit(x, y)
    assert search.best_params_ == {"ensembleclassifier__lr": 0.05}
    again = pickle.loads(pickle.dumps(search))
    assert np.array_equal(again.predict_proba(x), search.predict_proba(x))


def test_early_stopping_ends_before_the_last_epoch():
    generator = np.random.RandomState(0)
    x, y = generator.randn(200, 2), generator.randn(200)
    options = {"epochs": 150, "hidden": (64,), "lr": 0.01, "validation": 0.3, "random_state": 0}
    stopped, whole = (EnsembleRegressor(patience=patience, **options).fit(x, y).predict(x) for patience in (3, None))
    assert np.mean((stopped - y) ** 2) > np.mean((whole - y) ** 2)  # pure noise is learnt by heart
