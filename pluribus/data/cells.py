"""What the cells of a column hold: numbers, texts, True and False, or nothing."""

import math
from typing import Any

import numpy as np

from ..core.errors import DataError
from ..core.texts import shorten

Frame = Any  # pandas.DataFrame, which is imported where it is needed
Series = Any

BOOLEANS = {"false": False, "true": True}


class UnusableColumn(DataError):
    """A column that cannot be encoded, whatever is done with its rows; `cure` is what may be done beside leaving it out."""

    def __init__(self, name: str, reason: str, cure: str = "") -> None:
        self.name, self.reason = name, f"column {shorten(name)!r} {reason}"
        super().__init__(f"{self.reason}: {cure}leave it out with drop=[{name!r}]")


def describe_unusable(found: list[UnusableColumn]) -> DataError:
    """One error for all unusable columns of a table, so that they can be left out together.

    >>> print(describe_unusable([UnusableColumn("a", "is empty"), UnusableColumn("b", "holds times")]))
    2 columns cannot be used: leave them out with drop=['a', 'b']. Column 'a' is empty; column 'b' holds times
    """
    if len(found) == 1:
        return found[0]
    reasons = "; ".join(each.reason for each in found)
    names = [each.name for each in found]
    return DataError(
        f"{len(found)} columns cannot be used: leave them out with drop={names}. {reasons[0].upper()}{reasons[1:]}"
    )


def is_numeric(name: str, series: Series) -> bool:
    """Whether a column holds numbers. Raises: UnusableColumn if it holds times."""
    from pandas.api import types

    if _is_plain(series):
        return True
    if types.is_datetime64_any_dtype(series.dtype) or types.is_timedelta64_dtype(series.dtype):
        raise UnusableColumn(name, "holds times", "turn them into numbers, or ")
    if types.is_bool_dtype(series.dtype):
        return False
    if types.is_object_dtype(series.dtype):  # decimals of Parquet have this type
        return types.infer_dtype(series, skipna=True) in ("decimal", "integer", "floating", "mixed-integer-float")
    return bool(types.is_numeric_dtype(series.dtype)) and not types.is_complex_dtype(series.dtype)


def to_numbers(name: str, series: Series, booleans: bool = False) -> np.ndarray:
    """A column as real numbers in double precision, NaN where missing.

    Args: a `name` for messages; with `booleans`, True is 1 and False is 0. Raises: DataError if a cell is no number or is
    infinite.
    """
    import pandas

    if _is_plain(series):  # quick, for tables of thousands of columns
        values = series.to_numpy().astype(np.float64)
        return _check_finite(name, values)
    if not booleans and pandas.api.types.infer_dtype(series, skipna=True) == "boolean":
        row = find_row(series.notna().to_numpy())
        raise DataError(f"column {name!r} must hold numbers, got {str(series.iloc[row - 1])!r} in row {row}")
    values = _to_doubles(series)
    wrong = np.isnan(values) & series.notna().to_numpy()
    if wrong.any() and booleans:
        found = {row: BOOLEANS.get(str(series.iloc[row]).strip().lower()) for row in np.flatnonzero(wrong).tolist()}
        for row, value in found.items():
            if value is not None:
                values[row], wrong[row] = value, False
    if wrong.any():
        text = shorten(str(series.iloc[int(wrong.argmax())]))
        raise DataError(f"column {name!r} must hold numbers, got {text!r} in row {find_row(wrong)}")
    return _check_finite(name, values)


def _is_plain(series: Series) -> bool:
    """Whether a column is an array of NumPy's numbers."""
    return isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf"


def _check_finite(name: str, values: np.ndarray) -> np.ndarray:
    if np.isinf(values).any():
        raise DataError(f"infinity in column {name!r}, row {find_row(np.isinf(values))}: clear the cell, or leave the row out")
    return values


def _to_doubles(series: Series) -> np.ndarray:
    """The numbers of a column, NaN for everything else."""
    import pandas

    try:
        return pandas.to_numeric(series, errors="coerce").astype("float64").to_numpy(copy=True)
    except OverflowError:  # a whole number of more than 308 digits
        whole = pandas.Series([math.inf if _is_too_large(value) else value for value in series.tolist()], dtype=object)
        return pandas.to_numeric(whole, errors="coerce").astype("float64").to_numpy(copy=True)


def _is_too_large(value: Any) -> bool:
    """Whether a whole number, or its text, is beyond double precision."""
    try:
        return (isinstance(value, int) or is_numeral(str(value))) and math.isinf(float(value))
    except OverflowError:
        return True


def to_texts(series: Series) -> list[str | None]:
    """A column as texts without spaces around them, None where missing.

    Whole numbers get no point: a gap in a column makes pandas read 5 as 5.0.
    """

    def text(value: Any) -> str | None:
        whole = isinstance(value, float) and value.is_integer()
        return (str(int(value)) if whole else str(value)).strip() or None

    return [None if empty else text(value) for value, empty in zip(series.tolist(), series.isna().tolist(), strict=True)]


def match_texts(texts: list[str | None], known: tuple[str, ...]) -> list[str | None]:
    """Write texts as the known ones are written where they mean the same: 1.0 as 1; of two truth values, any spelling.

    >>> match_texts(["TRUE", "0", "maybe", None], ("False", "True"))
    ['True', 'False', 'maybe', None]
    >>> match_texts(["1.0", "01"], ("1", "2"))
    ['1', '01']
    """
    names, booleans = set(known), find_booleans(known)

    def match(text: str | None) -> str | None:
        if text is None or text in names:
            return text
        plain = write_whole(text)
        return booleans.get(plain.lower(), plain if plain in names else text)

    written: dict[str | None, str | None] = {}
    return [written[text] if text in written else written.setdefault(text, match(text)) for text in texts]


def find_booleans(known: tuple[str, ...]) -> dict[str, str]:
    """Spelling in lower case → which of the known texts it means; empty unless these are truth values."""
    lower = {text.lower(): text for text in known}
    if not lower or not (set(lower) <= {"true", "false"} or set(lower) == {"0", "1"}):
        return {}
    spellings = {"0": "false", "1": "true", "false": "0", "true": "1"}
    return lower | {other: lower[own] for other, own in spellings.items() if own in lower}


def write_whole(text: str) -> str:
    """A whole number without point or exponent, any other text as it is; 01 is a code and not a number.

    >>> write_whole("1.0"), write_whole("1.5"), write_whole("01")
    ('1', '1.5', '01')
    """
    if is_numeral(text) and not has_leading_zero(text) and len(text) < 30 and float(text).is_integer():
        return str(int(float(text))) if "." in text or "e" in text.lower() else text.lstrip("+")
    return text


def has_leading_zero(text: str) -> bool:
    """Whether a text is a code such as 01, which would lose its zero as a number."""
    return len(text) > 1 and text[0] == "0" and text.isdigit()


def is_numeral(text: str) -> bool:
    """Whether a text is a number."""
    try:
        return not math.isnan(float(text))
    except ValueError:
        return False


def find_row(mask: np.ndarray) -> int:
    """The number of the first marked row, counted from one."""
    return int(mask.argmax()) + 1


def join_names(names: Any) -> str:
    """The first five names, quoted."""
    names = list(names)
    return ", ".join(repr(shorten(str(name))) for name in names[:5]) + (", …" if len(names) > 5 else "")
