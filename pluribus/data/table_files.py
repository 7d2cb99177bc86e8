"""Table files: CSV, TSV and Parquet as pandas DataFrames.

The cells of a text file are texts without spaces around them, and missing if they are one of `MISSING`. For training it follows
from all cells of a column whether it holds numbers, truth values or texts. For predictions the cells stay texts, because the
encoding that was fitted in training knows what each column holds, and the few cells of a new file may look like something else.
"""

import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import DataError
from ..core.texts import shorten
from .cells import BOOLEANS, Frame, has_leading_zero, is_numeral
from .limits import BYTES, COLUMNS, TEXT
from .unzipping import is_gzipped, read_unzipped

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

MISSING = frozenset(
    (
        *(
            "",
            "#N/A",
            "#N/A N/A",
            "#NA",
            "-1.#IND",
            "-1.#QNAN",
            "-NaN",
            "-nan",
            "1.#IND",
            "1.#QNAN",
            "<NA>",
            "N/A",
            "NA",
            "NULL",
        ),
        *("NaN", "None", "n/a", "nan", "null"),
    )
)
"""The cells that pandas takes for missing ones."""


def read_table(path: Path, header: bool | None = None, infer: bool = True) -> Frame:
    """Read a file as a pandas DataFrame with texts for column names; c0, c1, … where it has none.

    Args: `header=None` takes the first row for names, unless every cell of it is a number; `infer=False` leaves the cells of a
    text file as texts. Raises: DataError if there is no such file, or it cannot be read, or is beyond a limit; ImportError if a
    library for it is missing.
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("reading tables needs pandas: pip install pandas") from error
    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    try:
        frame = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path, header, infer)
    except ImportError as error:
        raise ImportError("reading Parquet files needs pyarrow: pip install pyarrow") from error
    except pandas.errors.EmptyDataError as error:
        raise DataError(f"{path} holds no rows") from error
    except MemoryError as error:
        raise DataError(f"{path} cannot be read: it needs more memory than there is") from error
    except (ValueError, OSError) as error:  # pandas' and pyarrow's are ValueErrors, too
        if isinstance(error, DataError):
            raise
        if isinstance(error, UnicodeDecodeError):
            raise DataError(f"{path} cannot be read: it is no text in UTF-8; save it as UTF-8") from error
        ragged = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        reason = "{} cells are expected in line {}, but it has {}".format(*ragged.groups()) if ragged else error
        raise DataError(f"{path} cannot be read: {shorten(str(reason).strip(), 300)}") from error
    if not len(frame):
        raise DataError(f"{path} holds no rows")
    return frame


# --- text files -------------------------------------------------------------------------------------------------------


def _read_csv(path: Path, header: bool | None, infer: bool) -> Frame:
    import pandas

    options: dict[str, Any] = {
        "sep": "\t" if ".tsv" in path.name.lower() else ",",
        "encoding": "utf-8-sig",  # spreadsheets put a mark before the first name
        "skipinitialspace": True,
        "dtype": str,
        "na_filter": False,
        "compression": None,
    }
    BYTES.check(path.stat().st_size, f"{path} holds")
    content = read_unzipped(path) if is_gzipped(path) else None

    def read(**more: Any) -> Frame:
        return pandas.read_csv(path if content is None else io.BytesIO(content), **options, **more)

    _check_width(path, content, options["sep"])
    first = read(header=None, nrows=1).iloc[0].tolist()
    if header is None:
        header = not all(is_numeral(cell) for cell in first)
    frame = read(header=0 if header else None)
    if not isinstance(frame.index, pandas.RangeIndex):  # pandas takes surplus cells for row names
        raise DataError(f"{path} must have a name for each column: its first row has {len(first)} cells, the others more")
    names = _check_names(path, [cell.strip() for cell in first]) if header else [f"c{i}" for i in range(len(first))]
    cells = frame.to_numpy(object)
    columns = {name: _clean_column(cells[:, i], infer) for i, name in enumerate(names)}
    return pandas.DataFrame(columns, copy=False)


def _check_width(path: Path, content: bytes | None, separator: str) -> None:
    """Raise DataError if the first row has too many cells. Parsing it would take long, so that its separators are counted."""
    size = COLUMNS.read() * 100
    if content is None:
        with open(path, "rb") as file:
            head = file.read(size)
    else:
        head = content[:size]
    first = re.split(rb"[\r\n]", head.lstrip(b"\r\n"), maxsplit=1)[0]
    COLUMNS.check(first.count(separator.encode()) + 1, f"{path} has")


def _clean_column(cells: np.ndarray, infer: bool) -> Any:
    """The cells of a text file, stripped, with None for missing ones; with `infer`, as numbers or truth values if all are."""
    import pandas

    texts = [cell.strip() for cell in cells.tolist()]
    known = [text for text in texts if text not in MISSING]
    if infer and known and not any(map(has_leading_zero, known)):
        if all(text.lower() in BOOLEANS for text in known):
            return np.array([BOOLEANS.get(text.lower()) for text in texts], object if len(known) < len(texts) else bool)
        try:
            pandas.to_numeric(np.array(known[:1], object))  # most texts are found here
            found = pandas.to_numeric(np.array([None if text in MISSING else text for text in texts], object))
        except ValueError:
            pass
        else:
            return found if len(known) == len(texts) else found.astype(float)
    return pandas.Series([None if text in MISSING else text for text in texts], dtype=object)


def _check_names(path: Path, names: list[str]) -> list[str]:
    COLUMNS.check(len(names), f"{path} has")
    if names:
        TEXT.check(max(map(len, names)), f"{path} has the name of a column with")
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(f"{path}: column names must differ, got {twice[0]!r} more than once")
    return names


# --- Parquet ----------------------------------------------------------------------------------------------------------


def _read_parquet(path: Path) -> Frame:
    import pyarrow
    import pyarrow.parquet
    from pyarrow import types

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            about, schema = file.metadata, file.schema_arrow
        COLUMNS.check(about.num_columns, f"{path} has")
        # Runs of equal numbers are packed: the groups' sizes alone do not say what the rows need.
        packed = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        BYTES.check(max(packed, 8 * about.num_rows * about.num_columns), f"{path} holds")
        nested = next((field.name for field in schema if types.is_nested(field.type)), None)
        if nested is not None:
            raise DataError(f"{path}: column {nested!r} must hold one value a cell, got {schema.field(nested).type}")
        texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
        # As a dictionary, a long text that is repeated in every row is held once.
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            frame = file.read().to_pandas().reset_index(drop=True)
    except pyarrow.ArrowException as error:
        raise DataError(f"{path} cannot be read: {shorten(str(error), 300)}") from error
    frame.columns = _check_names(path, [str(name).strip() for name in frame.columns])
    for name in frame.columns:
        if frame[name].dtype.name in ("category", "object", "str", "string"):
            frame[name] = _strip_texts(frame[name])
    return frame


def _strip_texts(series: Any) -> Any:
    """The column with its texts stripped, and blank ones missing."""
    import pandas

    def strip(value: Any) -> Any:
        return value.strip() or None if isinstance(value, str) else value

    if series.dtype.name == "category":  # the rows share the texts of their categories
        texts = [*map(strip, series.cat.categories.tolist()), None]
        values = [texts[code] for code in series.cat.codes.tolist()]  # a missing cell has the code -1
    else:
        values = [strip(value) for value in series.tolist()]
    return pandas.Series(values, index=series.index, dtype=object)
