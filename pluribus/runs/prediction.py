"""Predictions of a trained ensemble: batch by batch for evaluation, and row by row for new files.

Rows are evaluated in batches, so that memory does not grow with their number; of files only averages over the members are kept,
so that it does not grow with the number of members.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.answering import choose_members
from ..core.anytime import AnytimePredictive
from ..core.ensemble import Ensemble
from ..core.errors import DataError, PluribusError
from ..core.files import NOT_FINITE
from ..core.modes import copy_for_evaluation
from ..core.predictive import Predictive, PredictiveSummary
from ..core.seeds import derive_seed, set_seed
from ..data import Columns, Data, Pixels, Preparation
from ..data.archives import read_arrays
from ..data.batches import TensorBatches
from ..data.dataset import Part
from ..data.image_folder import decode
from ..data.npz import to_single
from ..data.table_files import SUFFIXES, read_table
from ..metrics.streaming import Tally
from .config import ConfigError
from .consent import Trust
from .loading import load_run, set_samples
from .run_folder import open_run

EVALUATION_SEED = 7
"""Which stream of the run's seed the noise of an evaluation is drawn from."""
BATCH_ROWS = 512
NO_ANSWER = "the network's answer is not finite"


class NotFiniteError(PluribusError):
    """The network answered some rows with NaN or infinite numbers."""


@dataclass(frozen=True)
class EvaluationCase:
    """An ensemble, the rows to evaluate it on, and the seed of its noise. `report` is called with the rows of each batch."""

    ensemble: Ensemble
    data: Data
    part: Part
    seed: int = 0
    report: Callable[[int], None] | None = None

    def predict_batches(self, part: Part | None = None) -> Iterator[tuple[Predictive, Tensor]]:
        """Predictions and targets of each batch; those of a regression are in the units of its targets."""
        ensemble, preparation, part = self.ensemble, self.data.preparation, part or self.part
        like, executor = next(ensemble.parameters()), ensemble.executor
        with torch.random.fork_rng(devices=[]):
            if len(part):  # the size of a batch depends on where members part, which two rows show
                rows = next(iter(TensorBatches(part, 2, preparation))).x.to(like.device, like.dtype)
                executor.prepare(copy_for_evaluation(ensemble), rows)
            size = min(BATCH_ROWS, executor.choose_chunk_rows(ensemble))
            done = 0
            for number, (x, y, _) in enumerate(TensorBatches(part, size, preparation)):
                set_seed(derive_seed(self.seed, EVALUATION_SEED, number))
                p, y = ensemble.predict(x.to(like.device, like.dtype), batch_size=size), y.to(like.device)
                if ensemble.task == "regression":  # the targets as they were read: scaling them back would lose digits
                    p, y = Predictive(preparation.unscale_targets(p.outputs), "regression"), part.y[done : done + len(y)]
                    y = y.to(like.device)
                done += len(y)
                yield p, y
                if self.report is not None:
                    self.report(len(y))

    def tally_scores(self, part: Part | None = None) -> Tally:
        """The sums from which accuracy, NLL and ECE (or RMSE) follow."""
        tally = Tally(self.ensemble.task, calibrated=False)  # an evaluation computes that score from many random halves
        for p, y in self.predict_batches(part):
            tally.add(p, y)
        return tally

    def sample_rows(self, rows: int) -> Part:
        """A random sample of `rows` rows, the same for every run. Some sets have their easy rows first."""
        if rows >= len(self.part):
            return self.part
        order = torch.randperm(len(self.part), generator=torch.Generator().manual_seed(0))
        return self.part.take_rows(order[:rows].sort().values)

    @property
    def members(self) -> int:
        """The number of members in evaluation."""
        return self.ensemble.count_members(training=False)

    @property
    def is_sampled(self) -> bool:
        """Whether any part of the ensemble draws new noise for every prediction."""
        return any(isinstance(part, Ensemble) and part.sampled for part in self.ensemble.modules())


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

    A file is an image, a table or an .npz archive with x. Each row yields a dictionary with `file`, `row` and, of a
    classification, `label`, `confidence`, `uncertainty` (entropy, nats), `mutual_information` (nats) and `probabilities`; of a
    regression, `value` and `spread` (the standard deviation of the members). With `as_text` all of them but the probabilities
    are texts for a table. A row without a finite answer has None for each of these, and an `error`; after the last row a
    NotFiniteError is then raised. `trust` names factories that the run's files may name, as in `pluribus.compare`.

    `members` and `until` are those of `ensemble.predict`. With `until` each row also has the number of `members` that it used;
    after the last one, `report` is called with a sentence about the passes that were saved.
    """
    made, config, about, preparation = load_run(open_run(path), trust)
    if samples is not None:
        set_samples(made, samples)
    check_members(made, members, until)
    asked: list[AnytimePredictive] = []
    lost, first, total = 0, "", 0
    for number, file in enumerate(files):
        rows = read_rows(file, preparation, tuple(about["shape"]), config.data.get("header"))
        set_seed(derive_seed(config.seed, EVALUATION_SEED, number))
        like = next(made.parameters())
        x = preparation(rows).to(like.device, like.dtype)
        p: Predictive | PredictiveSummary
        if until is not None:
            p = made.predict(x, members=True if members is None else members, until=until)
            asked.append(p)
        else:
            p = made.predict(x, members=False) if members is None else made.predict(x, members=members)
        for row, answer in enumerate(format_predictions(made, p, about["classes"], preparation)):
            found = {"file": str(file), "row": row} | answer
            total += 1
            if "error" in found:
                lost, first = lost + 1, first or f"{file}, row {row}"
            yield format_row(found, preparation) if as_text else found
    if report is not None and asked:
        report(describe_saved_passes(asked))
    if lost:
        raise NotFiniteError(
            f"the run has no finite answer to {lost:,} of {total:,} rows, the first is {first}: the network overflows there, "
            "as it does on very large inputs"
        )


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
    for answer in _format_answers(ensemble, p, classes, preparation):
        is_finite = all(math.isfinite(value) for value in answer.values() if isinstance(value, float))
        yield answer if is_finite else dict.fromkeys(answer) | {"error": NO_ANSWER}


def _format_answers(
    ensemble: Ensemble, p: Predictive | PredictiveSummary, classes: Sequence[str], preparation: Preparation
) -> Iterator[dict[str, Any]]:
    if ensemble.task == "regression":
        # The mean of the outputs is taken before they are scaled back: then no digit of a large target is rounded away.
        values, spreads = preparation.unscale_targets(p.mean), p.std.double() * preparation.target[1]
        for value, spread in zip(values.flatten().tolist(), spreads.flatten().tolist(), strict=True):
            yield {"value": value, "spread": spread}
        return
    columns = (p.labels, p.confidence, p.entropy, p.mutual_information)
    used = p.used.tolist() if isinstance(p, AnytimePredictive) else [None] * len(p)
    for label, confidence, entropy, information, count, probs in zip(
        *(c.tolist() for c in columns), used, p.probs.tolist(), strict=True
    ):
        yield {
            "label": classes[label],
            "confidence": confidence,
            "uncertainty": entropy,
            "mutual_information": information,
            **({} if count is None else {"members": count}),
            "probabilities": dict(zip(classes, probs, strict=True)),
        }


def format_row(row: dict[str, Any], preparation: Preparation) -> dict[str, str]:
    """One row of a prediction as texts for a table, without the probabilities.

    A real number has four digits. The value of a regression has as many decimals as the standard deviation of the training
    targets has with four digits, however large the value is.

    >>> format_row({"row": 0, "value": 1700000043.21987, "spread": 2.34567}, Preparation(target=(1.7e9, 28.9)))
    {'row': '0', 'value': '1700000043.22', 'spread': '2.346'}
    >>> format_row({"row": 0, "value": None, "spread": None, "error": NO_ANSWER}, Preparation())
    {'row': '0', 'value': 'not finite', 'spread': 'not finite'}
    """
    std = preparation.target[1]
    decimals = max(3 - math.floor(math.log10(std)), 0)

    def format_cell(key: str, value: Any) -> str:
        if not isinstance(value, float):
            return NOT_FINITE if value is None else str(value)
        is_scaled = key == "value" and preparation.target != (0.0, 1.0)
        return f"{value:.{decimals}f}" if is_scaled and decimals < 15 and abs(value) < 1e15 else f"{value:.4g}"

    return {key: format_cell(key, value) for key, value in row.items() if key not in ("probabilities", "error")}


def read_rows(file: Path, preparation: Preparation, shape: tuple[int, ...], header: bool | None = None) -> Tensor:
    """Read the rows of a file as the run's data are stored, `[N, *shape]`; `header` is that of the table it was trained on."""
    if file.is_dir():
        raise DataError(f"{file} is a folder: name files, as in {file}/*")
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
