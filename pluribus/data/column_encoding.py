"""How a table's columns become numbers. The encoding is fitted to the training rows and saved with a run.

Numbers are standardised, in double precision, or normalised by their quantiles; where training values were missing, a second
column marks missing values by 1. A column of texts becomes one column for each category (one-hot); a category that training did
not have is zero in all of them.
"""

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.texts import shorten
from .cells import (
    Frame,
    Series,
    UnusableColumn,
    describe_unusable,
    find_booleans,
    find_row,
    is_numeral,
    is_numeric,
    join_names,
    match_texts,
    to_numbers,
    to_texts,
)
from .limits import BYTES, FEATURES, TEXT
from .preparation import Preparation, measure_spread, measure_weighted_spread
from .quantiles import Quantiles, fit_quantiles

CATEGORIES = 100  # a column with more different texts holds names or notes, not categories
NUMBERS = ("standard", "quantile")
FARTHEST = 1e18  # standard deviations from the mean; single precision cannot square much more


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

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return (len(self.categories) if self.kind == "category" else 1) + self.missing

    @property
    def is_binary(self) -> bool:
        """Whether a column of numbers held 0 and 1 alone: then the mean of x² is the mean of x."""
        return 0 < self.mean < 1 and abs(self.std**2 + self.mean**2 - self.mean) < 1e-12


@dataclass(frozen=True)
class Columns(Preparation):
    """A table's encoding. `answer` is the name of the target column, `classes` its labels; none for a regression.

    `quantiles` are those of each column; without them numbers are standardised.

    >>> import pandas
    >>> columns = Columns.fit(pandas.DataFrame({"age": [20, 40], "colour": ["red", "blue"]}))
    >>> columns.features
    ('age', 'colour=blue', 'colour=red')
    >>> columns.encode(pandas.DataFrame({"age": [50], "colour": ["blue"]}))
    tensor([[2., 1., 0.]])
    """

    kind: ClassVar[str] = "columns"

    columns: tuple[Column, ...] = ()
    answer: str = ""
    classes: tuple[str, ...] = ()
    quantiles: tuple[Quantiles, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(Column(*column) for column in self.columns))  # plain tuples, from JSON
        object.__setattr__(self, "quantiles", tuple(Quantiles(*found) for found in self.quantiles))

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the F numbers of an encoded row."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def column_widths(self) -> tuple[int, ...]:
        """The columns of an encoded row: 0 for a number, else of how many zeros and ones it consists.

        >>> age, colour = Column("age", "number", missing=True), Column("colour", "category", categories=("red", "blue"))
        >>> Columns(columns=(age, colour)).column_widths
        (0, 1, 2)
        """
        widths: list[int] = []
        for column in self.columns:
            widths += [0, 1][: column.width] if column.kind == "number" else [column.width]
        return tuple(widths)

    @staticmethod
    def fit(frame: Frame, weights: np.ndarray | None = None, numbers: str = "standard", **rest: Any) -> "Columns":
        """Fit the encoding to training rows; constant columns are left out.

        Raises: DataError that names all columns which cannot be encoded.

        `weights` `[N]`, all positive, say how often each row counts; `numbers` are "standard", or normalised by "quantile".
        """
        if numbers not in NUMBERS:
            raise DataError(f"numbers must be {' or '.join(NUMBERS)}, got {shorten(str(numbers))!r}")
        fitted: list[Column | None] = []
        refused: list[UnusableColumn] = []
        for name in frame.columns:
            try:
                fitted.append(_fit_column(name, frame[name], weights))
            except UnusableColumn as error:
                refused.append(error)
        if refused:
            raise describe_unusable(refused)
        columns = tuple(column for column in fitted if column)
        FEATURES.check(sum(column.width for column in columns), "the encoded table has")
        quantiles = tuple(_fit_quantiles(column, frame[column.name], weights) for column in columns if numbers == "quantile")
        return Columns(columns=columns, quantiles=quantiles, **rest)

    def encode(self, frame: Frame) -> Tensor:
        """Encode new rows → `[N, F]`. Other columns are ignored.

        Cells that hold a category that training did not have are counted in a warning. Raises: DataError if a column or a
        number is missing, or a cell does not hold what it held in training.
        """
        encoded, warned = self.encode_with_warnings(frame)
        for sentence in warned:
            warnings.warn(sentence, stacklevel=2)
        return encoded

    def encode_with_warnings(self, frame: Frame) -> tuple[Tensor, list[str]]:
        """The same, with the warnings as sentences."""
        encoded, unknown = self._encode(frame, fill=False)
        return encoded, [
            f"column {name!r} has {sum(texts.values())} of {len(frame)} cells with a category that training did not have, "
            f"such as {shorten(next(iter(texts)))!r}: they are encoded as none of the known ones"
            for name, texts in unknown.items()
        ]

    def encode_test(self, frame: Frame) -> tuple[Tensor, dict[str, int]]:
        """Encode the rows of the training table, also those held out → `[N, F]`, and column → cells with unknown categories.

        A number that is missing in held-out rows only becomes the training mean.
        """
        encoded, unknown = self._encode(frame, fill=True)
        return encoded, {name: sum(texts.values()) for name, texts in unknown.items()}

    def targets(self, frame: Frame) -> Tensor:
        """The targets of a table like that of training, `[N]`: labels or real numbers. Raises: DataError if they do not fit."""
        if self.answer not in frame.columns:
            raise DataError(f"the table must have the target {self.answer!r}, got {join_names(frame.columns)}")
        series = frame[self.answer]
        texts = match_texts(to_texts(series), self.classes)
        if None in texts:
            raise DataError(f"the target {self.answer!r} is missing in {texts.count(None)} rows: leave these rows out")
        if not self.classes:
            return torch.from_numpy(to_numbers(self.answer, series))
        place = {text: index for index, text in enumerate(self.classes)}
        unknown = next((str(text) for text in texts if text not in place), None)
        if unknown is not None:
            raise DataError(f"the target {self.answer!r} must be one of {join_names(self.classes)}, got {shorten(unknown)!r}")
        return torch.tensor([place[str(text)] for text in texts])

    def _encode(self, frame: Frame, fill: bool) -> tuple[Tensor, dict[str, Counter[str]]]:
        """The encoded rows, and the unknown categories of each column with their counts."""
        names = set(frame.columns)
        absent = [column.name for column in self.columns if column.name not in names]
        if absent:
            found = join_names(frame.columns)
            raise DataError(f"the table must have the columns that training had: {join_names(absent)} missing, got {found}")
        width = sum(column.width for column in self.columns)
        BYTES.check(4 * len(frame) * width, f"{len(frame):,} encoded rows of {width:,} numbers need")
        encoded, unknown, start = np.zeros((len(frame), width), np.float32), {}, 0
        for number, column in enumerate(self.columns):
            if column.kind == "number":
                part = _scale(column, frame[column.name], fill, self.quantiles[number] if self.quantiles else None)
            else:
                part, strange = _one_hot(column, frame[column.name], fill)
                if strange:
                    unknown[column.name] = strange
            encoded[:, start : start + column.width] = part
            start += column.width
        return torch.from_numpy(encoded), unknown


def _fit_column(name: str, series: Series, weights: np.ndarray | None = None) -> Column | None:
    if is_numeric(name, series):
        values = to_numbers(name, series)
        known = values[~np.isnan(values)]
        missing = len(known) < len(values)
        if not len(known):
            raise UnusableColumn(name, "is empty")
        if known.min() == known.max():
            return Column(name, "number", float(known[0]), 1.0, (), missing) if missing else None
        mean, std = measure_spread(known) if weights is None else measure_weighted_spread(known, weights[~np.isnan(values)])
        with np.errstate(all="ignore"):
            if not np.isfinite((known - mean) / std).all():
                between = f"from {known.min():.6g} to {known.max():.6g}"
                raise UnusableColumn(name, f"cannot be standardised, {between}", "rescale it, or ")
        return Column(name, "number", mean, std, (), missing)
    texts = to_texts(series)
    missing = None in texts
    categories = tuple(sorted({text for text in texts if text is not None}))
    if not categories:
        raise UnusableColumn(name, "is empty")
    if len(categories) > CATEGORIES:
        raise _describe_too_many(name, categories)
    TEXT.check(max(map(len, categories)), f"column {shorten(name)!r} (which drop=[…] leaves out) has a text of")
    return None if len(categories) == 1 and not missing else Column(name, "category", 0.0, 1.0, categories, missing)


def _describe_too_many(name: str, categories: tuple[str, ...]) -> UnusableColumn:
    unknown = [text for text in categories if not is_numeral(text)]
    if 0 < len(unknown) < len(categories) / 2:
        return UnusableColumn(name, f"holds numbers, but also {join_names(unknown)}", "clear these cells, or ")
    return UnusableColumn(name, f"has {len(categories)} different texts, more than the {CATEGORIES} that can be categories")


def _fit_quantiles(column: Column, series: Series, weights: np.ndarray | None) -> Quantiles:
    if column.kind != "number":
        return Quantiles()
    values = to_numbers(column.name, series)
    known = ~np.isnan(values)
    return fit_quantiles(values[known], None if weights is None else weights[known])


def _scale(column: Column, series: Series, fill: bool, quantiles: Quantiles | None) -> np.ndarray:
    values = to_numbers(column.name, series, booleans=column.is_binary)
    empty = np.isnan(values)
    if empty.any() and not column.missing and not fill:
        raise DataError(
            f"NaN in column {column.name!r}, row {find_row(empty)}: it had no missing values in training; "
            "fill it in, or leave the row out"
        )
    if quantiles is not None:
        scaled = np.where(empty, 0.0, quantiles.normalize(values))
        return np.stack([scaled, empty] if column.missing else [scaled], 1)
    with np.errstate(over="ignore"):
        scaled = (np.where(empty, column.mean, values) - column.mean) / column.std
    far = ~(np.abs(scaled) <= FARTHEST)
    if far.any():
        row = find_row(far)
        raise DataError(
            f"column {column.name!r}, row {row}: {values[row - 1]:.6g} is too far from the training values, whose mean is "
            f"{column.mean:.6g}, to be standardised; clear the cell, or leave the row out"
        )
    return np.stack([scaled, empty] if column.missing else [scaled], 1)


def _one_hot(column: Column, series: Series, fill: bool) -> tuple[np.ndarray, Counter[str]]:
    """The encoded cells `[N, width]`, and the unknown categories with their counts, "" for empty cells."""
    place: dict[str | None, int] = {text: index for index, text in enumerate(column.categories)}
    if column.missing:
        place[None] = len(place)
    texts = match_texts(to_texts(series), column.categories)
    unknown = Counter(text or "" for text in texts if text not in place)
    if unknown and not fill:
        _check_unknown(column, texts, unknown)
    found = np.array([place.get(text, -1) for text in texts], int).reshape(-1, 1)
    return found == np.arange(column.width), unknown


def _check_unknown(column: Column, texts: list[str | None], unknown: Counter[str]) -> None:
    """Raise DataError if the unknown texts are no categories at all: others than truth values, or numbers for texts."""
    first = next(iter(unknown))
    where = f"got {shorten(first)!r} in row {texts.index(first or None) + 1}"
    if find_booleans(column.categories):
        raise DataError(f"column {column.name!r} must hold True or False, or 1 or 0, as in training, {where}")
    if unknown.total() == len(texts) and all(map(is_numeral, unknown)) and not any(map(is_numeral, column.categories)):
        raise DataError(
            f"column {column.name!r} must hold texts as in training, such as {shorten(column.categories[0])!r}, {where}"
        )
