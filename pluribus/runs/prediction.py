"""Predictions of a run for the rows of new files, by its rules if it has any.

Only averages over the members are kept, so that memory does not grow with their number.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.answering import choose_members
from ..core.anytime import AnytimePredictive
from ..core.ensemble import Ensemble
from ..core.errors import DataError, FileError, PluribusError
from ..core.files import NOT_FINITE
from ..core.predictive import Predictive, PredictiveSummary
from ..core.seeds import derive_seed, set_seed
from ..core.texts import format_amount
from ..data import Columns, Pixels, Preparation
from ..data.archives import read_arrays
from ..data.image_folder import SUFFIXES as IMAGES
from ..data.image_folder import decode
from ..data.npz import to_single
from ..data.table_files import SUFFIXES, read_table
from ..decisions.classification import ClassificationRules
from ..decisions.feature_distance import TrainingDistance
from ..decisions.intervals import RegressionRules
from .calibration import CALIBRATION, Rules, needs_features, read_rules
from .config import ConfigError
from .consent import Trust
from .evaluation_case import EVALUATION_SEED
from .loading import load_run, set_samples
from .row_answers import (
    format_classes,
    format_decided,
    format_intervals,
    format_values,
    join_answer,
    mark_not_finite,
)
from .run_folder import open_run
from .training_distance import read_distance

HIDDEN = ("probabilities", "quantiles", "set", "answered", "foreign", "error")
"""What a table for people leaves out."""


class NotFiniteError(PluribusError):
    """The network answered some rows with NaN or infinite numbers."""


def predict_files(
    path: Path,
    files: Sequence[Path],
    samples: int | None = None,
    as_text: bool = False,
    trust: Trust = False,
    members: int | Sequence[int] | None = None,
    until: float | None = None,
    report: Callable[[str], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Predict every row of every file with the run in the folder `path`, in order.

    A file is an image, a table or an .npz archive with x; a folder stands for all of these inside it. Each row yields a
    dictionary with `file`, `row` and, of a classification, `label`, `confidence`, `uncertainty` (entropy, nats),
    `mutual_information` (nats) and `probabilities`; of a regression, `value`, `spread` (the standard deviation of the members)
    and, if they predict them, that of the `noise` or the `quantiles` by their levels. If
    the run has rules (`calibration.py`), a classification also has its `answer` as a text and, as far as there are rules for
    them, the classes of its `set`, whether it is `answered` and whether it is `foreign`; a regression has the ends of its
    interval, `low` and `high`, and the standard deviation of the `noise`. With `as_text` all are texts for a table, and what is
    `HIDDEN` is left out. A row without a finite answer has None for each of these, and an `error`; after the last row a
    NotFiniteError is then raised. `trust` names factories that the run's files may name, as in `pluribus.compare`.

    `members` and `until` are those of `ensemble.predict`. With `until` each row also has the number of `members` that it used;
    after the last one, `report` is called with a sentence about the passes that were saved. Rules hold for all members, so they
    are left out, and `report` says so, where `samples`, `members` or `until` choose others.
    """
    run = open_run(path)
    made, config, about, preparation = load_run(run, trust)
    rules = read_rules(run)
    if isinstance(rules, RegressionRules) and rules.quantiles != made.quantile_levels:
        raise FileError(
            f"{run.path / CALIBRATION} is for other quantiles than {run.weights.name}: fit the rules again with "
            f"`pluribus calibrate {run.path}`"
        )
    if samples is not None:
        set_samples(made, samples)
    check_members(made, members, until)
    if rules is not None and (samples, members, until) != (None, None, None):
        rules = None
        if report is not None:
            report(f"the rules of {run.path / CALIBRATION} are left out: they were fitted with all members")
    keeps_members = rules is not None and rules.needs_members
    asked: list[AnytimePredictive] = []
    distance: TrainingDistance | None = None
    lost, first, total = 0, "", 0
    for number, file in enumerate(list_files(files)):
        rows = read_rows(file, preparation, tuple(about["shape"]), config.data.get("header"))
        set_seed(derive_seed(config.seed, EVALUATION_SEED, number))
        like = next(made.parameters())
        x = preparation(rows).to(like.device, like.dtype)
        p: Predictive | PredictiveSummary
        if until is not None:
            p = made.predict(x, members=True if members is None else members, until=until)
            asked.append(p)
        else:
            p = made.predict(x, members=members) if members is not None else predict_all(made, x, keeps_members)
        far = None
        if needs_features(rules) and len(x):
            distance = distance or read_distance(run, made, run.read_json(CALIBRATION)["features"] or "", x)
            far = distance.measure(x)
        decided = list(format_decisions(rules, p, about["classes"], preparation, far))
        for row, answer in enumerate(format_predictions(made, p, about["classes"], preparation)):
            found = {"file": str(file), "row": row} | join_answer(answer, decided[row] if decided else {})
            total += 1
            if "error" in found:
                lost, first = lost + 1, first or f"{file}, row {row}"
            yield format_row(found, preparation) if as_text else found
    if report is not None and asked:
        report(describe_saved_passes(asked))
    if report is not None and as_text and made.task == "regression" and rules is None and members is None and samples is None:
        report(explain_regression(made, run.path))
    if lost:
        raise NotFiniteError(
            f"the run has no finite answer to {lost:,} of {total:,} rows, the first is {first}: the network overflows there, "
            "as it does on very large inputs"
        )


def predict_all(ensemble: Ensemble, x: Tensor, keep_members: bool) -> Predictive | PredictiveSummary:
    """The answer of all members, which are kept only where a rule needs them."""
    return ensemble.predict(x) if keep_members else ensemble.predict(x, members=False)


def format_decisions(
    rules: Rules | None,
    p: Predictive | PredictiveSummary,
    classes: Sequence[str],
    preparation: Preparation,
    distance: Tensor | None = None,
) -> Iterator[dict[str, Any]]:
    """What the rules say about each row of a prediction; nothing without rules. An alarm may need the rows' `distance`."""
    if rules is None:
        return
    if p.task == "regression":
        mean, std = preparation.target
        assert isinstance(rules, RegressionRules)
        found = rules.decide(p.rescale(std, mean))
        yield from format_intervals(found.low, found.high, None if rules.quantiles else found.noise)
        return
    assert isinstance(rules, ClassificationRules)
    yield from format_decided(rules.decide(p, distance), classes)


def check_members(ensemble: Ensemble, members: int | Sequence[int] | None, until: float | None) -> None:
    """Raise ConfigError if there are no such members, or no class whose probability could reach `until`."""
    try:
        choose_members(ensemble, True if members is None else members)
    except (ValueError, IndexError) as error:
        raise ConfigError(str(error)) from error
    if until is not None and not 0 < until <= 1:
        raise ConfigError(f"until must be a probability above 0, at most 1, got {until}")
    if until is not None and ensemble.task != "classification":
        raise ConfigError(f"until= compares the probability of a class, and this is a {ensemble.task}: leave it out")


def describe_saved_passes(asked: Sequence[AnytimePredictive]) -> str:
    """How many members the rows of all files used, and what that saved."""
    rows = sum(len(p) for p in asked)
    used = sum(int(p.used.sum()) for p in asked) / rows
    saved = sum(p.saved * len(p) for p in asked) / rows
    return f"asked {used:.2f} of {asked[0].count} members on average: {100 * saved:.0f} % of the passes saved"


def format_predictions(
    ensemble: Ensemble, p: Predictive | PredictiveSummary, classes: Sequence[str], preparation: Preparation
) -> Iterator[dict[str, Any]]:
    """One dictionary for each row of a prediction; if its answer is not finite, all is None but the `error`."""
    yield from map(mark_not_finite, _format_answers(ensemble, p, classes, preparation))


def _format_answers(
    ensemble: Ensemble, p: Predictive | PredictiveSummary, classes: Sequence[str], preparation: Preparation
) -> Iterator[dict[str, Any]]:
    if ensemble.task == "regression":
        # The mean of the outputs is taken before they are scaled back: then no digit of a large target is rounded away.
        std = preparation.target[1]
        values, spreads = preparation.unscale_targets(p.mean), p.spread_variance.double().sqrt() * std
        noises = p.noise_variance.double().sqrt() * std if p.has_noise else None
        quantiles = preparation.unscale_targets(p.quantiles).flatten(1).T.tolist() if p.quantile_levels else []
        yield from format_values(values, spreads, noises, p.quantile_levels, quantiles)
        return
    used = p.used.tolist() if isinstance(p, AnytimePredictive) else ()
    yield from format_classes((p.labels, p.confidence, p.entropy, p.mutual_information), p.probs, classes, used)


def format_row(row: dict[str, Any], preparation: Preparation) -> dict[str, str]:
    """One row of a prediction as texts for a table, without the probabilities; quantiles only where there is no interval.

    A real number has four digits, and all those before its point. The value of a regression has as many decimals as the
    standard deviation of the training targets has with four digits, however large the value is.

    >>> format_row({"row": 0, "value": 1700000043.21987, "spread": 2.34567}, Preparation(target=(1.7e9, 28.9)))
    {'row': '0', 'value': '1700000043.22', 'spread': '2.346'}
    >>> format_row({"row": 0, "value": None, "spread": None, "error": "it overflows"}, Preparation())
    {'row': '0', 'value': 'not finite', 'spread': 'not finite'}
    >>> format_row({"row": 0, "value": 2.0, "spread": 0.0, "quantiles": {"0.1": 1.0}}, Preparation())
    {'row': '0', 'value': '2.000', 'spread': '0.000', 'q0.1': '1.000'}
    """
    std = preparation.target[1]
    quantiles = {} if "low" in row else {f"q{level}": value for level, value in row.get("quantiles", {}).items()}
    decimals = max(3 - math.floor(math.log10(std)), 0)

    def format_cell(key: str, value: Any) -> str:
        if not isinstance(value, float):
            return NOT_FINITE if value is None else str(value)
        is_scaled = (key in ("value", "low", "high") or key in quantiles) and preparation.target != (0.0, 1.0)
        return f"{value:.{decimals}f}" if is_scaled and decimals < 15 and abs(value) < 1e15 else format_amount(value)

    hidden = (*HIDDEN, "mutual_information") if "answer" in row else HIDDEN  # so that the table stays narrow
    first = {key: row[key] for key in ("file", "row", "answer") if key in row}
    return {key: format_cell(key, value) for key, value in (first | row | quantiles).items() if key not in hidden}


def explain_regression(ensemble: Ensemble, path: Path) -> str:
    """A sentence about the numbers that a regression without rules answers with; `path` is the folder of its run."""
    if ensemble.quantile_levels:
        return (
            f"quantiles are as the network learnt them, and hold what they say only about: `pluribus calibrate {path}` fits "
            "intervals that do"
        )
    without = "" if ensemble.noise else ", without noise"
    return f"spread is what the members differ by{without}: `pluribus calibrate {path}` fits intervals"


def list_files(paths: Sequence[Path]) -> list[Path]:
    """The files to predict, with those of every folder, and of its subfolders, in its place, by name."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        kinds = (*IMAGES, *SUFFIXES, ".npz")
        inside = [file for file in sorted(path.rglob("*")) if file.name.lower().endswith(kinds) and file.is_file()]
        inside = [file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts)]
        if not inside:
            raise DataError(f"{path} holds nothing to predict: no images, no tables ({', '.join(SUFFIXES)}), no .npz files")
        found += inside
    return found


def read_rows(file: Path, preparation: Preparation, shape: tuple[int, ...], header: bool | None = None) -> Tensor:
    """Read the rows of a file as the run's data are stored, `[N, *shape]`; `header` is that of the table it was trained on."""
    if not file.is_file():
        raise DataError(f"there is no file {file}")
    if isinstance(preparation, Columns):
        if not file.name.lower().endswith(SUFFIXES):
            raise DataError(f"the run was trained on a table, and {file.name} is none: it must end in {', '.join(SUFFIXES)}")
        try:
            return preparation.encode(read_table(file, header, infer=False))
        except DataError as error:
            raise DataError(str(error) if str(file) in str(error) else f"{file}: {error}") from error
    if file.suffix == ".npz":
        return read_archive_rows(file, shape, isinstance(preparation, Pixels))
    if isinstance(preparation, Pixels):
        if file.name.lower().endswith(SUFFIXES):
            raise DataError(f"the run was trained on images, and {file.name} is a table: give images, or x in an .npz file")
        channels, height, width = shape
        return decode([file], height, width, channels)
    raise DataError(f"the run was trained on rows of {shape[0]} numbers: give them as x in an .npz file, got {file.name}")


def read_archive_rows(file: Path, shape: tuple[int, ...], pixels: bool) -> Tensor:
    """The array x of an .npz file, `[N, *shape]`, with its channels first."""
    x = read_arrays(file, ["x"])["x"]
    if x.dtype != np.uint8 if pixels else x.dtype.kind not in "fiub":
        raise DataError(f"x of {file} must hold {'bytes (uint8), as pixels are' if pixels else 'numbers'}, got {x.dtype}")
    if not x.ndim or not len(x):
        raise DataError(f"{file} holds no rows: x has the shape {list(x.shape)}")
    if x.ndim == len(shape) + 1 and x.shape[1:] != shape and len(shape) == 3 and x.shape[1:] == (*shape[1:], shape[0]):
        x = x.transpose(0, 3, 1, 2)
    if x.ndim == 3 and len(shape) == 3 and shape[0] == 1:
        x = x[:, None]
    if x.shape[1:] != shape:
        wanted = "×".join(map(str, shape))
        raise DataError(f"the rows of {file} must be of {wanted}, got {'×'.join(map(str, x.shape[1:])) or 'one number'}")
    return torch.from_numpy(np.ascontiguousarray(x) if pixels else to_single(file, x))
