"""A classifier and a regressor with the interface of scikit-learn, each an ensemble by any method.

Columns are encoded as the command line encodes a table: numbers are standardised, texts and categories become one column each,
missing values are marked. Arguments have scikit-learn's names, `X` among them.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data
from torch import Tensor

from ..core.convert import ensemble as convert
from ..core.ensemble import Ensemble
from ..core.errors import DataError
from ..core.predictive import PredictiveSummary, Task
from ..core.seeds import set_seed
from ..core.spec import Spec
from ..data.column_encoding import Columns
from ..data.preparation import measure_weighted_spread
from ..decisions.intervals import RegressionRules, fit_regression_rules
from ..runs.choices import parse_choice
from ..runs.config import build_spec
from ..training.fit import fit
from .networks import Network, build_network
from .weighted_rows import WeightedBatches, WeightedRows, merge_rows

FEWEST = 10
"""Held-out rows: with fewer, none are held out."""


class EnsembleEstimator(BaseEstimator):
    """What the two estimators share. `task` says what the network's outputs mean."""

    task: Task

    def __init__(
        self,
        method: str | Spec = "batch-ensemble",
        hidden: Sequence[int] | None = None,
        network: Network = None,
        epochs: int = 100,
        batch_size: int = 64,
        lr: float = 2e-3,
        weight_decay: float = 1e-2,
        validation: float = 0.1,
        patience: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.hidden = hidden
        self.network = network
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.validation = validation
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # --- encoding -------------------------------------------------------------------------------------------------

    def _to_frame(self, X: Any, reset: bool) -> Any:
        """The rows as a DataFrame, checked. Raises ValueError if they are no rows, or have other columns than in training."""
        import pandas

        if isinstance(X, pandas.DataFrame) and has_texts(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not len(X) or not len(X.columns):
                raise ValueError(f"there must be a row and a column, got {len(X)} rows and {len(X.columns)} columns")
            return X
        values = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        names = getattr(self, "feature_names_in_", [f"x{place}" for place in range(values.shape[1])])
        return pandas.DataFrame(values, columns=list(names))

    def _encode(self, X: Any) -> Tensor:
        """The rows as the network takes them, in double precision."""
        check_is_fitted(self)
        frame = self._to_frame(X, reset=False)
        try:
            return self.columns_.encode(frame).double()
        except DataError as error:
            raise ValueError(str(error)) from error

    # --- training -------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, targets: np.ndarray, outputs: int, weights: np.ndarray) -> Self:
        """Train on rows and targets: whole numbers for classes, standardised numbers for a regression."""
        frame, known = self._to_frame(X, reset=True), weights > 0
        if len(frame) != len(targets):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(frame), len(targets)]}")
        try:
            self.columns_ = Columns.fit(frame[known], weights[known])
            encoded = self.columns_.encode(frame[known]).numpy()
        except DataError as error:
            raise ValueError(str(error)) from error
        if not encoded.shape[1]:  # all columns are constant: the network learns its biases
            encoded = np.zeros((len(encoded), 1), np.float32)
        rows = merge_rows(encoded, targets[known], weights[known])
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        train, held_out = split_rows(rows, self.validation, seed)
        ensemble = self._build(encoded.shape[1], outputs, train, seed)
        self._train(ensemble, train, held_out, seed)
        if ensemble.sampled:  # answers must not differ from call to call, nor by the rows beside a row
            with torch.random.fork_rng(devices=[]):
                set_seed(seed)
                ensemble = ensemble.freeze()
        self.ensemble_ = ensemble.double().eval()
        self.held_out_rows_ = 0 if held_out is None else len(held_out.y)
        return self._finish(held_out)

    def _build(self, inputs: int, outputs: int, train: WeightedRows, seed: int) -> Ensemble:
        spec = self.method if isinstance(self.method, Spec) else build_spec(parse_choice(self.method))
        with torch.random.fork_rng(devices=[]):
            set_seed(seed)
            net = build_network(self.network, self.hidden, inputs, outputs, self.columns_.column_widths)
            example = torch.from_numpy(train.x[:2]).float()
            example = example if len(example) > 1 else example.repeat(2, 1)
            return convert(net, spec, task=self.task, example=example, **self._get_distribution())

    def _get_distribution(self) -> dict[str, Any]:
        """What the network predicts beside means, as arguments of `pluribus.ensemble`."""
        return {}

    def _train(self, ensemble: Ensemble, train: WeightedRows, held_out: WeightedRows | None, seed: int) -> None:
        loader = WeightedBatches(*self._to_tensors(train), train, self.batch_size)
        stops = self.patience if held_out is not None else None
        options: dict[str, Any] = {
            "epochs": self.epochs,
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "patience": stops,
            "seed": seed,
        }
        judged = self._to_tensors(held_out) if held_out is not None and stops else None
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            set_seed(seed)
            fit(ensemble, loader, judged, progress=bool(self.verbose), accelerator="cpu", **options)

    def _to_tensors(self, rows: WeightedRows) -> tuple[Tensor, Tensor]:
        y = torch.from_numpy(rows.y)
        return torch.from_numpy(rows.x).float(), y.long() if self.task == "classification" else y.float()

    def _finish(self, held_out: WeightedRows | None) -> Self:
        """What is fitted after the training."""
        return self

    def _predict(self, X: Any) -> PredictiveSummary:
        x = self._encode(X)
        return self.ensemble_.predict(x if x.shape[1] else x.new_zeros(len(x), 1), members=False)


class EnsembleClassifier(ClassifierMixin, EnsembleEstimator):
    """A classifier of tables that answers like many networks.

    Parameters: `method`, a name with options ("mimo:members=2") or a spec; `network`, a name with options
    ("tabular:depth=3,dropout=0.1", "mlp:hidden=[64]") or a function of the numbers of inputs and outputs that returns a module;
    without it `hidden`, the sizes of the dense layers of an MLP, and without both the network that the command line begins
    with: "tabular", which embeds every column, up to 1,000 encoded columns, and an MLP beyond; `epochs`, `batch_size`, `lr` and
    `weight_decay` of AdamW; `validation`, the share of rows that is held out; `patience`, epochs without a better score on them
    after which the training ends; `random_state`; `verbose`, a progress bar.

    After `fit`: `ensemble_`, `classes_`, `columns_` (the encoding), `n_features_in_`, `feature_names_in_`.

    >>> from sklearn.datasets import load_iris
    >>> x, y = load_iris(return_X_y=True)
    >>> EnsembleClassifier(epochs=15, batch_size=16, random_state=0).fit(x, y).score(x, y) > 0.9
    True
    """

    task: Task = "classification"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows `[N, F]` (an array or a DataFrame) and their classes `[N]`."""
        check_target(y)
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        weights = check_weights(sample_weight, y)
        self.classes_ = np.unique(y[weights > 0])
        if len(self.classes_) < 2:
            raise ValueError(f"there must be at least two classes, got one class: {self.classes_.tolist()}")
        places = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)  # rows of weight 0 may hold others
        return self._fit(X, places, len(self.classes_), weights)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of the classes, `[N, C]`, averaged over the members."""
        return self._predict(X).probs.numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row, `[N]`."""
        check_is_fitted(self)
        labels = self._predict(X).labels.numpy()
        return self.classes_[labels]


class EnsembleRegressor(RegressorMixin, EnsembleEstimator):
    """A regressor of tables that knows how far it may be off.

    Its parameters are those of `EnsembleClassifier`, and `noise`: with "gaussian" or "beta-nll" (β = 0.5) the network predicts
    a variance beside each mean; with "none" one noise level is fitted on the held-out rows. With `quantiles`, (0.05, 0.95) say,
    it predicts these beside each mean, and intervals are the outermost ones, moved by what the held-out rows ask for.

    After `fit`: `ensemble_`, `columns_`, `noise_` (the standard deviation of the noise, over all rows; None without held-out
    rows, or where it is predicted row by row) and so on.

    >>> import numpy as np
    >>> x = np.random.RandomState(0).rand(300, 1); y = 10 * x[:, 0]
    >>> low, high = EnsembleRegressor(epochs=5, random_state=0).fit(x, y).predict_interval(x, coverage=0.9)
    >>> bool((low < high).all())
    True
    """

    task: Task = "regression"

    def __init__(
        self,
        method: str | Spec = "batch-ensemble",
        hidden: Sequence[int] | None = None,
        network: Network = None,
        epochs: int = 100,
        batch_size: int = 64,
        lr: float = 2e-3,
        weight_decay: float = 1e-2,
        validation: float = 0.1,
        patience: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
        noise: str = "none",
        quantiles: Sequence[float] | None = None,
    ) -> None:
        super().__init__(
            *(method, hidden, network, epochs, batch_size, lr, weight_decay, validation, patience, random_state, verbose)
        )
        self.noise = noise
        self.quantiles = quantiles

    def _get_distribution(self) -> dict[str, Any]:
        return {"noise": self.noise, "quantiles": self.quantiles}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows `[N, F]` (an array or a DataFrame) and their targets `[N]`."""
        check_target(y)
        y = column_or_1d(np.asarray(y), dtype=np.float64, warn=True)
        if not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity: leave these rows out")
        weights = check_weights(sample_weight, y)
        mean, std = measure_weighted_spread(y[weights > 0], weights[weights > 0])
        self.target_scale_ = (mean, std or 1.0)
        return self._fit(X, (y - mean) / (std or 1.0), 1, weights)

    def _finish(self, held_out: WeightedRows | None) -> Self:
        self.rules_: RegressionRules | None = None
        self.noise_ = None
        if held_out is not None:
            p = self.ensemble_.predict(torch.from_numpy(held_out.x), members=False)
            self.rules_ = fit_regression_rules(p, torch.from_numpy(held_out.y))
            if not self.rules_.is_noise_predicted:
                self.noise_ = self.rules_.noise**0.5 * self.target_scale_[1]
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of each row, `[N]`; with `return_std` also its standard deviation, from noise and the members' spread."""
        p, (mean, std) = self._predict(X), self.target_scale_
        values = p.mean.numpy().ravel() * std + mean
        if not return_std:
            return values
        noise = 0.0 if self.rules_ is None else self.rules_.noise
        return values, np.sqrt(p.variance.numpy().ravel() + noise) * std

    def predict_quantiles(self, X: Any) -> np.ndarray:
        """The quantiles of each row as they were learnt, `[N, Q]`, lowest first.

        Raises: ValueError if there are none to predict.

        >>> x = np.random.RandomState(0).rand(100, 1)
        >>> EnsembleRegressor(epochs=2, quantiles=(0.1, 0.5, 0.9)).fit(x, x[:, 0]).predict_quantiles(x).shape
        (100, 3)
        """
        check_is_fitted(self)
        if not self.ensemble_.quantile_levels:
            raise ValueError("this regressor has learnt no quantiles: make it with quantiles=(0.05, 0.95), say")
        mean, std = self.target_scale_
        return self._predict(X).quantiles.flatten(1).T.numpy() * std + mean

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The ends of intervals that hold the target with the probability `coverage`, `[N]` each.

        Raises: ValueError without held-out rows, by which they are fitted.
        """
        check_is_fitted(self)
        if self.rules_ is None:
            raise ValueError(f"intervals need held-out rows: raise validation= above 0, so that it holds {FEWEST} rows or more")
        found, (mean, std) = self.rules_.decide(self._predict(X), coverage), self.target_scale_
        return found.low.numpy().ravel() * std + mean, found.high.numpy().ravel() * std + mean


def split_rows(rows: WeightedRows, share: float, seed: int) -> tuple[WeightedRows, WeightedRows | None]:
    """The rows to train on, and those that are held out; None if these would be fewer than `FEWEST`."""
    if not 0 <= share < 1:
        raise ValueError(f"validation must be at least 0 and below 1, got {share}")
    count = round(share * len(rows.y))
    if count < FEWEST:
        return rows, None
    order = np.random.RandomState(seed).permutation(len(rows.y))
    return rows.take(np.sort(order[count:])), rows.take(np.sort(order[:count]))


def check_weights(sample_weight: Any, y: np.ndarray) -> np.ndarray:
    """The weight of each row, ones if there are none. Raises ValueError if they are negative, or all zero."""
    weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    if not (weights > 0).any():
        raise ValueError("all sample weights are zero: there is nothing to learn from")
    return weights


def has_texts(frame: Any) -> bool:
    """Whether a DataFrame has columns that are no numbers."""
    return any(kind.kind not in "fiu" if isinstance(kind, np.dtype) else True for kind in frame.dtypes)


def check_target(y: Any) -> None:
    """Raise ValueError if there are no targets."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
