"""Tables: CSV, TSV and Parquet files. One column is the target, the others are encoded by `column_encoding`."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.suggestions import describe_unknown
from ..core.texts import shorten
from .catalog_entry import CatalogEntry
from .cells import Frame, Series, UnusableColumn, is_numeric, to_numbers, to_texts
from .column_encoding import Columns
from .dataset import Data, Part
from .limits import TEXT
from .preparation import measure_targets
from .split import check_share, split_rows
from .table_files import read_table

OPTIONS = {
    "target": "the column to predict, by name or by place (default: the last one)",
    "task": "classification or regression (default: by what the target holds)",
    "test": "the share of the rows held out for the test (default: 0.2)",
    "seed": "which rows those are (default: 0)",
    "drop": "columns to leave out",
    "numbers": "how columns of numbers are scaled: standard, or quantile, which makes them normal (default: standard)",
    "header": "does the first row hold the names? (default: unless all of it is numbers)",
    "test_mask": "in place of test and seed: 1 for every row that is for the test, 0 for the others",
}

MOST_LABELS = 20  # a target with more different whole numbers is a regression's


def read(path: Path, *, header: bool | None = None, **options: Any) -> Data:
    """Read the table in a file. Options and errors are those of `read_table` and `build_data`."""
    return build_data(read_table(path, header), path.name.split(".")[0], str(path), **options)


def build_data(
    frame: Frame,
    name: str,
    source: str,
    *,
    target: str | int | None = None,
    task: str | None = None,
    test: float = 0.2,
    seed: int = 0,
    drop: str | int | Sequence[str | int] = (),
    test_mask: Sequence[int] | None = None,
    numbers: str = "standard",
) -> Data:
    """Build a data set from a DataFrame `[N rows]`; `OPTIONS` says what the options mean.

    Args: the table; a `name` and a `source` for messages and results. Raises: DataError if an option does not fit the table, or
    there is nothing to learn from.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": range(10), "works": ["yes", "no"] * 5})
    >>> data = build_data(frame, "people", "a table")
    >>> data.classes, data.train.x.shape
    (('no', 'yes'), torch.Size([8, 1]))
    """
    try:
        return _build(frame, name, source, target, task, check_share("test", test), seed, drop, test_mask, numbers)
    except DataError as error:
        raise DataError(f"{source}: {error}") from error


def _build(
    frame: Frame,
    name: str,
    source: str,
    target: str | int | None,
    task: str | None,
    test: float,
    seed: int,
    drop: str | int | Sequence[str | int],
    test_mask: Sequence[int] | None,
    numbers: str,
) -> Data:
    answer = _find_column(frame, -1 if target is None else target)
    dropped = {_find_column(frame, key) for key in ([drop] if isinstance(drop, (str, int)) else drop)}
    if answer in dropped:
        raise DataError(f"column {answer!r} is the target, and cannot be dropped: choose another target")
    features = frame.drop(columns=[answer, *dropped])
    if not len(features.columns):
        hint = ", as it seems separated by semicolons: save it with commas" if ";" in answer else ""
        raise DataError(f"there must be a column beside the target {answer!r}{hint}")
    for column in features.columns:
        with contextlib.suppress(UnusableColumn):  # `Columns.fit` names them all
            if is_numeric(column, features[column]):
                to_numbers(column, features[column])  # raises on infinity; here the row number is that of the file
    y, classes = _encode_targets(answer, frame[answer], task)
    keep, held_out = _split(len(y), y if classes else None, test, seed, test_mask)
    spread = (0.0, 1.0) if classes else measure_targets(f"the target {answer!r}", y[keep])
    training, rest = features.iloc[keep.numpy()], features.iloc[held_out.numpy()]
    columns = replace(Columns.fit(training, numbers=numbers), target=spread, answer=answer, classes=classes)
    if not columns.columns:
        raise DataError("there is nothing to learn from: every column beside the target holds one and the same value")
    facts: dict[str, Any] = {"target": f"{answer}, the last column (target= chooses another)" if target is None else answer}
    used = {column.name for column in columns.columns}
    constant = [column for column in features.columns if column not in used]
    if constant:
        facts["left out, as constant"] = constant
    encoded, unknown = columns.encode_test(features)  # all rows at once: messages then count the rows as the file does
    if unknown:
        facts["categories in test rows only, encoded as none of the known ones (cells)"] = unknown
    gaps = [c.name for c in columns.columns if c.kind == "number" and not c.missing and rest[c.name].isna().any()]
    if gaps:
        facts["missing in test rows only, so set to the training mean"] = gaps
    train, tested = Part(encoded[keep], y[keep]), Part(encoded[held_out], y[held_out])
    return Data(name, train, tested, columns, classes, source, facts)


def _split(count: int, labels: Tensor | None, test: float, seed: int, mask: Sequence[int] | None) -> tuple[Tensor, Tensor]:
    """The numbers of the training rows and of the test rows."""
    if mask is not None:
        marks = torch.as_tensor(np.asarray(mask)).bool().flatten()
        if len(marks) != count:
            raise DataError(f"the test mask must have a mark for each of the {count} rows, got {len(marks)}")
        keep, held_out = (~marks).nonzero().flatten(), marks.nonzero().flatten()
    else:
        keep, held_out = split_rows(max(1, round(count * test)) if test else 0, count, seed, labels)
    if not len(keep) or (test and mask is None and not len(held_out)):
        raise DataError(f"{count} rows are too few to hold {test:g} of them out: give more rows, or test=0")
    return keep, held_out


def _encode_targets(name: str, series: Series, task: str | None) -> tuple[Tensor, tuple[str, ...]]:
    """The targets `[N]` and their classes: labels in the order of the classes, or real numbers and no classes."""
    if task not in (None, "classification", "regression"):
        raise DataError(f"task must be 'classification' or 'regression', got {task!r}")
    texts = to_texts(series)
    if None in texts:
        rows = texts.count(None)
        raise DataError(f"the target {name!r} is missing in {rows} of {len(series)} rows: leave these rows out")
    number = is_numeric(name, series)
    values = to_numbers(name, series) if number else np.zeros(0)
    whole = not number or bool((values == np.round(values)).all())
    if task == "regression" and not number:
        raise DataError(f"the target {name!r} of a regression must hold numbers, got {shorten(str(series.iloc[0]))!r}")
    if task == "classification" and not whole:
        raise DataError(f"the target {name!r} of a classification must hold texts or whole numbers: use task='regression'")
    if task is None:
        few = whole and (not number or len(np.unique(values)) <= MOST_LABELS)
        task = "classification" if few else "regression"
    if task == "regression":
        return torch.from_numpy(values), ()
    labels = [str(text) for text in texts]
    classes = sorted(set(labels), key=lambda text: (float(text), text) if number else (0.0, text))
    if len(classes) < 2:
        raise DataError(f"the target {name!r} must have at least two classes, got {shorten(classes[0])!r} alone")
    if len(classes) > len(labels) / 2:
        raise DataError(
            f"the target {name!r} has {len(classes)} classes in {len(labels)} rows, too few rows for each: "
            "choose another target, or task='regression' if these are measurements"
        )
    TEXT.check(max(map(len, classes)), f"the target {name!r} has a label of")
    place = {text: index for index, text in enumerate(classes)}
    return torch.tensor([place[text] for text in labels]), tuple(classes)


def _find_column(frame: Frame, key: str | int) -> str:
    names = list(frame.columns)
    if isinstance(key, str) and key in names:
        return key
    try:
        return names[int(key)]
    except ValueError:
        raise DataError(describe_unknown("column", str(key), names)) from None
    except IndexError:
        raise DataError(f"there is no column {key}: there are {len(names)}, counted from 0") from None


def read_uci(entry: CatalogEntry, folder: Path, *, split: int = 0, numbers: str = "standard") -> Data:
    """Read a regression table without column names, whose target is last, and one of the ten splits beside it.

    A split is a column that has 1 where a row is for the test. Raises: DataError if there is no such split.
    """
    data, marks = entry.find_files(folder).values()
    masks = read_table(marks, header=False)
    if split not in range(len(masks.columns)):
        raise DataError(f"split must be from 0 to {len(masks.columns) - 1}, got {split!r}")
    mask = masks.iloc[:, split].tolist()
    options: dict[str, Any] = {"target": -1, "task": "regression", "test_mask": mask, "numbers": numbers}
    return build_data(read_table(data, header=False), entry.name, str(data), **options)
