"""Contenders of other libraries: scikit-learn's MLP and histogram boosting, LightGBM, XGBoost and CatBoost.

Each stops early by the validation rows. They predict a mean; their variance is the noise that those rows show.
"""

import copy
import inspect
import math
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .contender import Contender, Limits, Options, Predict, Tuned, choose_batch_size
from .rows import Rows
from .scores import Gaussians


def make_predict(model: Any) -> Predict:
    """Means of a model with a `predict` on arrays, and no variance."""

    def predict(x: Tensor) -> Gaussians:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # LightGBM misses names of features
            mean = torch.from_numpy(np.array(model.predict(x.numpy()), dtype=np.float64)).flatten()
        return Gaussians(mean, torch.zeros_like(mean))

    return predict


def to_arrays(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return rows.train.x.numpy(), rows.train.y.numpy(), rows.validation.x.numpy(), rows.validation.y.numpy()


def count_threads() -> int:
    """The threads that a contender may use: those of torch."""
    return torch.get_num_threads()


def fit_mlp(rows: Rows, options: Options, seed: int, limits: Limits) -> Predict:
    """scikit-learn's MLP, one pass at a time, because its own early stopping sets other rows aside."""
    from sklearn.neural_network import MLPRegressor

    x, y, x_validation, y_validation = to_arrays(rows)
    model = MLPRegressor(
        hidden_layer_sizes=(options["width"],) * options["depth"],
        learning_rate_init=options["lr"],
        alpha=options["alpha"],
        batch_size=min(choose_batch_size(len(y)), len(y)),
        random_state=seed % 2**32,
    )
    best, kept, waited = math.inf, None, 0
    for _ in range(limits.epochs):
        model.partial_fit(x, y)
        error = float(np.square(model.predict(x_validation) - y_validation).mean())
        waited += 1
        if error < best:
            best, waited = error, 0
            kept = copy.deepcopy((model.coefs_, model.intercepts_))
        if waited >= limits.patience:
            break
    if kept is not None:
        model.coefs_, model.intercepts_ = kept
    return make_predict(model)


def fit_histogram(rows: Rows, options: Options, seed: int, limits: Limits) -> Predict:
    from sklearn.ensemble import HistGradientBoostingRegressor

    x, y, x_validation, y_validation = to_arrays(rows)
    patience: Options = {"early_stopping": True, "n_iter_no_change": limits.tree_patience}
    model = HistGradientBoostingRegressor(max_iter=limits.trees, random_state=seed % 2**32, **patience, **options)
    return make_predict(model.fit(x, y, X_val=x_validation, y_val=y_validation))


def fit_lightgbm(rows: Rows, options: Options, seed: int, limits: Limits) -> Predict:
    import lightgbm

    x, y, x_validation, y_validation = to_arrays(rows)
    fixed: Options = {"n_estimators": limits.trees, "subsample_freq": 1, "n_jobs": count_threads(), "verbosity": -1}
    model = lightgbm.LGBMRegressor(random_state=seed % 2**31, **fixed, **options)
    stop = lightgbm.early_stopping(limits.tree_patience, verbose=False)
    held_out: Options = {"eval_set": [(x_validation, y_validation)]}
    if "eval_X" in inspect.signature(model.fit).parameters:  # from version 4.7 on
        held_out = {"eval_X": x_validation, "eval_y": y_validation}
    return make_predict(model.fit(x, y, callbacks=[stop], **held_out))


def fit_xgboost(rows: Rows, options: Options, seed: int, limits: Limits) -> Predict:
    import xgboost

    x, y, x_validation, y_validation = to_arrays(rows)
    fixed: Options = {"n_estimators": limits.trees, "early_stopping_rounds": limits.tree_patience, "n_jobs": count_threads()}
    model = xgboost.XGBRegressor(random_state=seed % 2**31, tree_method="hist", **fixed, **options)
    return make_predict(model.fit(x, y, eval_set=[(x_validation, y_validation)], verbose=False))


def fit_catboost(rows: Rows, options: Options, seed: int, limits: Limits) -> Predict:
    import catboost

    x, y, x_validation, y_validation = to_arrays(rows)
    fixed: Options = {
        "iterations": limits.trees,
        "early_stopping_rounds": limits.tree_patience,
        "thread_count": count_threads(),
    }
    quiet: Options = {"verbose": False, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(random_seed=seed % 2**31, **fixed, **quiet, **options)
    return make_predict(model.fit(x, y, eval_set=(x_validation, y_validation)))


RATE = Tuned(0.1, "log", (0.01, 0.3))
OTHERS = (
    Contender(
        "sklearn-mlp",
        "scikit-learn's MLP",
        fit_mlp,
        {
            "lr": Tuned(1e-3, "log", (3e-4, 5e-3)),
            "alpha": Tuned(1e-4, "log", (1e-6, 1e-1)),
            "width": Tuned(128, "choice", (64, 128, 256)),
            "depth": Tuned(2, "int", (1, 3)),
        },
        ("sklearn",),
    ),
    Contender(
        "hist-gradient-boosting",
        "scikit-learn's HistGradientBoosting",
        fit_histogram,
        {
            "learning_rate": RATE,
            "max_leaf_nodes": Tuned(31, "int", (4, 128)),
            "min_samples_leaf": Tuned(20, "int", (2, 60)),
            "l2_regularization": Tuned(1e-4, "log", (1e-4, 10.0)),
        },
        ("sklearn",),
    ),
    Contender(
        "lightgbm",
        "LightGBM",
        fit_lightgbm,
        {
            "learning_rate": RATE,
            "num_leaves": Tuned(31, "int", (4, 128)),
            "min_child_samples": Tuned(20, "int", (2, 60)),
            "reg_lambda": Tuned(1e-4, "log", (1e-4, 10.0)),
            "subsample": Tuned(1.0, "float", (0.5, 1.0)),
            "colsample_bytree": Tuned(1.0, "float", (0.5, 1.0)),
        },
        ("lightgbm",),
    ),
    Contender(
        "xgboost",
        "XGBoost",
        fit_xgboost,
        {
            "learning_rate": RATE,
            "max_depth": Tuned(6, "int", (2, 10)),
            "min_child_weight": Tuned(1.0, "log", (1.0, 60.0)),
            "reg_lambda": Tuned(1.0, "log", (1e-4, 10.0)),
            "subsample": Tuned(1.0, "float", (0.5, 1.0)),
            "colsample_bytree": Tuned(1.0, "float", (0.5, 1.0)),
        },
        ("xgboost",),
    ),
    Contender(
        "catboost",
        "CatBoost",
        fit_catboost,
        {
            "learning_rate": RATE,
            "depth": Tuned(6, "int", (3, 8)),
            "l2_leaf_reg": Tuned(3.0, "log", (0.1, 30.0)),
            "random_strength": Tuned(1.0, "log", (0.1, 10.0)),
        },
        ("catboost",),
    ),
)
