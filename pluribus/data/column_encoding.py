"""How a table's columns become numbers. The encoding is fitted to the training rows and saved with a run.

Numbers are standardised; where training values were missing, a second column marks missing values by 1. A column of texts
becomes one column for each category (one-hot); a category that training did not have is zero in all of them.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from .preparation import Preparation

CATEGORIES = 100  # a column with more different texts holds names or notes, not categories

Frame = Any  # pandas.DataFrame, which is imported where it is needed
Series = Any


class Column(NamedTuple):
    """The encoding of one column."""

    name: str
    kind: str
    """ "number" or "category"."""
    mean: float = 0.0
    std: float = 1.0
    categories: tuple[str, ...] = ()
    missing: bool = False
    """Whether values were missing in training."""

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the encoded columns."""
        own = tuple(f"{self.name}={text}" for text in self.categories) if self.kind == "category" else (self.name,)
        return own + ((f"{self.name} is missing",) if self.missing else ())


@dataclass(frozen=True)
class Columns(Preparation):
    """A table's encoding. `answer` is the name of the target column, `classes` its labels; none for a regression.

    >>> import pandas
    >>> columns = Columns.fit(pandas.DataFrame({"age": [20, 40], "colour": ["red", "blue"]}))
    >>> columns.features
    ('age', 'colour=blue', 'colour=red')
    >>> columns.encode(pandas.DataFrame({"age": [50], "colour": ["green"]}))
    tensor([[2., 0., 0.]])
    """

    kind: ClassVar[str] = "columns"

    columns: tuple[Column, ...] = ()
    answer: str = ""
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(Column(*column) for column in self.columns))  # plain tuples, from JSON

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the F numbers of an encoded row."""
        return tuple(name for column in self.columns for name in column.features)

    @staticmethod
    def fit(frame: Frame, **rest: Any) -> "Columns":
        """Fit the encoding to training rows; constant columns are left out. Raises: DataError if a column cannot be encoded."""
        fitted = (_fit_column(name, frame[name]) for name in frame.columns)
        return Columns(columns=tuple(column for column in fitted if column), **rest)

    def encode(self, frame: Frame) -> Tensor:
        """Encode new rows → `[N, F]`. Other columns are ignored. Raises: DataError if a column or a number is missing."""
        return self._encode(frame, fill=False)

    def encode_test(self, frame: Frame) -> Tensor:
        """Encode held-out rows of the training table: a number that is missing only here becomes the training mean."""
        return self._encode(frame, fill=True)

    def targets(self, frame: Frame) -> Tensor:
        """The targets of a table like that of training, `[N]`: labels or real numbers. Raises: DataError if they do not fit."""
        if self.answer not in frame.columns:
            raise DataError(f"the table must have the target {self.answer!r}, got {_join_names(frame.columns)}")
        series = frame[self.answer]
        if series.isna().any():
            raise DataError(f"the target {self.answer!r} is missing in {int(series.isna().sum())} rows: leave these rows out")
        if not self.classes:
            return torch.from_numpy(to_numbers(self.answer, series))
        place = {text: index for index, text in enumerate(self.classes)}
        labels = [str(text) for text in to_texts(series)]
        unknown = next((text for text in labels if text not in place), None)
        if unknown is not None:
            raise DataError(f"the target {self.answer!r} must be one of {_join_names(self.classes)}, got {unknown!r}")
        return torch.tensor([place[text] for text in labels])

    def _encode(self, frame: Frame, fill: bool) -> Tensor:
        absent = [column.name for column in self.columns if column.name not in frame.columns]
        if absent:
            names = _join_names(frame.columns)
            raise DataError(f"the table must have the columns that training had: {_join_names(absent)} missing, got {names}")
        parts = [np.zeros((len(frame), 0))]
        for column in self.columns:
            make = _standardise if column.kind == "number" else _one_hot
            parts.append(make(column, frame[column.name], fill))
        return torch.from_numpy(np.concatenate(parts, 1)).float()


def _fit_column(name: str, series: Series) -> Column | None:
    empty = series.isna().to_numpy()
    missing = bool(empty.any())
    if empty.all():
        raise DataError(f"column {name!r} is empty: leave it out with drop=[{name!r}]")
    if is_numeric(name, series):
        values = to_numbers(name, series)[~empty]
        constant = bool(values.min() == values.max())
        if constant and not missing:
            return None
        return Column(name, "number", float(values.mean()), 1.0 if constant else float(values.std()), (), missing)
    categories = tuple(sorted({text for text in to_texts(series) if text is not None}))
    if len(categories) > CATEGORIES:
        raise _describe_too_many(name, categories)
    return None if len(categories) == 1 and not missing else Column(name, "category", 0.0, 1.0, categories, missing)


def _describe_too_many(name: str, categories: tuple[str, ...]) -> DataError:
    unknown = [text for text in categories if not is_numeral(text)]
    cure = f"leave it out with drop=[{name!r}]"
    if 0 < len(unknown) < len(categories) / 2:
        return DataError(f"column {name!r} holds numbers, but also {_join_names(unknown)}: clear these cells, or {cure}")
    return DataError(
        f"column {name!r} has {len(categories)} different texts, more than the {CATEGORIES} that can be categories: {cure}"
    )


def _standardise(column: Column, series: Series, fill: bool) -> np.ndarray:
    values = to_numbers(column.name, series)
    empty = np.isnan(values)
    if empty.any() and not column.missing and not fill:
        raise DataError(
            f"NaN in column {column.name!r}, row {_find_row(empty)}: it had no missing values in training; "
            "fill it in, or leave the row out"
        )
    scaled = (np.where(empty, column.mean, values) - column.mean) / column.std
    return np.stack([scaled, empty] if column.missing else [scaled], 1)


def _one_hot(column: Column, series: Series, fill: bool) -> np.ndarray:
    place: dict[str | None, int] = {text: index for index, text in enumerate(column.categories)}
    if column.missing:
        place[None] = len(place)
    answers = to_texts(series)
    if set(column.categories) == {"False", "True"}:
        answers = [{"0": "False", "1": "True"}.get(text, text) if text else text for text in answers]
    found = np.array([place.get(text, -1) for text in answers], int).reshape(-1, 1)
    return (found == np.arange(len(column.features))).astype(float)


def is_numeric(name: str, series: Series) -> bool:
    """Whether a column holds numbers. Raises: DataError if it holds times."""
    from pandas.api import types

    if types.is_datetime64_any_dtype(series.dtype) or types.is_timedelta64_dtype(series.dtype):
        raise DataError(f"column {name!r} holds times: turn them into numbers, or leave it out with drop=[{name!r}]")
    if types.is_bool_dtype(series.dtype):
        return False
    if types.is_object_dtype(series.dtype):  # decimals of Parquet have this type
        return types.infer_dtype(series, skipna=True) in ("decimal", "integer", "floating", "mixed-integer-float")
    return bool(types.is_numeric_dtype(series.dtype))


def to_numbers(name: str, series: Series) -> np.ndarray:
    """A column as real numbers, NaN where missing. Raises: DataError if a cell is no number or is infinite."""
    import pandas

    values = pandas.to_numeric(series, errors="coerce").astype("float64").to_numpy(copy=True)
    wrong = np.isnan(values) & series.notna().to_numpy()
    if wrong.any():
        raise DataError(
            f"column {name!r} must hold numbers, got {str(series.iloc[int(wrong.argmax())])!r} in row {_find_row(wrong)}"
        )
    if np.isinf(values).any():
        raise DataError(f"infinity in column {name!r}, row {_find_row(np.isinf(values))}: clear the cell, or leave the row out")
    return values


def to_texts(series: Series) -> list[str | None]:
    """A column as texts, None where missing. Whole numbers get no point: a gap in a column makes pandas read 5 as 5.0."""

    def text(value: Any) -> str:
        whole = isinstance(value, float) and value.is_integer()
        return str(int(value)) if whole else str(value)

    return [None if empty else text(value) for value, empty in zip(series.tolist(), series.isna().tolist(), strict=True)]


def is_numeral(text: str) -> bool:
    """Whether a text is a number."""
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def _find_row(mask: np.ndarray) -> int:
    """The number of the first marked row, counted from one."""
    return int(mask.argmax()) + 1


def _join_names(names: Any) -> str:
    names = list(names)
    return ", ".join(repr(str(name)) for name in names[:5]) + (", …" if len(names) > 5 else "")
