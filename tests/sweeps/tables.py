"""Tables that hypothesis draws, the files that hold them, and what their cells mean, written down a second time.

`encode_column` and `encode_target` are independent of `pluribus.data`: they start from the cells, not from the file.
"""

import csv
import gzip
import io
import math
import random
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

NAMES = [
    "a",
    "b",
    "length",
    "é",
    "日本",
    "[red]x[/red]",
    "[/]",
    " lead",
    "a b",
    "a,b",
    'q"q',
    "x" * 150,
    "0",
    "nan",
    "a=b",
    "b",
]
TEXTS = ["x", "y", "x ", " y", "é", "[red]", "[/b]", "a,b", 'say "hi"', "日本", "two\nlines", "=1+1", "'", "0x1", "-", "yes"]
CODES = ["01", "1", "007", "7"]
MISSING = {"", "nan", "NaN", "NA", "None", "null"}
"""Texts that mean a missing cell in a CSV file."""
FORMS = ["csv", "tsv", "csv.gz", "parquet"]

Cells = list[Any]


@dataclass(frozen=True)
class Column:
    """A column to be made: its cells follow from the kind and the seed."""

    kind: str
    name: str
    seed: int
    scale: float = 1.0
    offset: float = 0.0
    gaps: int = 0

    def make_cells(self, rows: int) -> Cells:
        draw = random.Random(self.seed)
        makers = {
            "float": lambda: self.offset + self.scale * draw.gauss(0, 1),
            "integer": lambda: round(self.offset) + draw.randint(-50, 50) * max(1, round(min(self.scale, 1e15))),
            "few": lambda: draw.randint(0, 3),
            "text": lambda: draw.choice(TEXTS[: 2 + self.seed % len(TEXTS)]),
            "code": lambda: draw.choice(CODES),
            "boolean": lambda: draw.random() < 0.5,
            "date": lambda: f"2024-0{draw.randint(1, 9)}-17",
            "infinite": lambda: draw.choice([math.inf, -math.inf, 1.5, 2.5, 3.5]),
            "mixed": lambda: draw.choice(["1", "2.50", "x", "NA", "True"]),
            "constant": lambda: 3.25,
            "empty": lambda: None,
        }
        cells = [makers[self.kind]() for _ in range(rows)]
        for place in draw.sample(range(rows), min(self.gaps, rows - 1)):
            cells[place] = None
        return cells

    @property
    def is_plain(self) -> bool:
        """Whether a table of such columns must be learned."""
        kinds = ("float", "integer", "few", "text", "boolean", "date", "constant")
        return self.kind in kinds and 1e-30 <= self.scale <= 1e30 and abs(self.offset) <= 1e12 * self.scale


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    """The last one is the target."""
    rows: int
    form: str = "csv"
    encoding: str = "utf-8"

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def make_cells(self) -> list[Cells]:
        """The cells, column by column."""
        return [column.make_cells(self.rows) for column in self.columns]

    def write(self, folder: Path) -> Path | None:
        """Write the file; None if the encoding has no such letters, or the format no such table."""
        path = folder / f"table.{self.form}"
        cells = self.make_cells()
        if self.form == "parquet":
            import pandas

            if len(set(self.names)) < len(self.names):
                return None
            pandas.DataFrame(dict(zip(self.names, cells, strict=True))).to_parquet(path)
            return path
        text = io.StringIO()
        writer = csv.writer(text, delimiter="\t" if self.form == "tsv" else ",", lineterminator="\n")
        writer.writerow(self.names)
        writer.writerows([["" if cell is None else cell for cell in row] for row in zip(*cells, strict=True)])
        try:
            data = text.getvalue().encode(self.encoding)
        except UnicodeEncodeError:
            return None
        path.write_bytes(gzip.compress(data) if self.form.endswith("gz") else data)
        return path

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to refuse: names that differ, one of them no number, columns to learn from, a target."""
        names = [name.strip() for name in self.names]
        usable = all(column.is_plain for column in self.columns) and not self.columns[-1].gaps
        varied = any(encode_column(cells, self.form).size for cells in self.make_cells()[:-1])
        classes = list_classes(self)
        learnable = 2 <= len(classes) <= self.rows / 2 if classes else encode_column(self.make_cells()[-1], self.form).size > 0
        return usable and varied and learnable and len(set(names)) == len(names) and self.encoding != "latin-1"


def draw_tables() -> st.SearchStrategy[Table]:
    """Strategy of tables: most of them can be learned."""
    seeds = st.integers(0, 2**20)
    scales = st.sampled_from([1.0, 1.0, 1.0, 1e-3, 1e6, 1e-30, 1e30, 1e-200, 1e39, 1e300])
    offsets = st.sampled_from([0.0, 0.0, 1.0, -1e6, 1e9, 1.7e9])
    gaps = st.sampled_from([0, 0, 0, 1, 5])
    names = st.sampled_from(NAMES)
    plain = ("float", "integer", "few", "text", "boolean", "date")
    kinds = st.sampled_from((*plain, *plain, *plain, "code", "infinite", "mixed", "constant", "empty"))
    columns = st.builds(Column, kinds, names, seeds, scales, offsets, gaps)
    different = st.lists(columns, min_size=1, max_size=4, unique_by=lambda column: column.name.strip())
    features = st.one_of(different, different, different, st.lists(columns, min_size=1, max_size=4))
    wanted = st.sampled_from(("float", "float", "float", "integer", "few", "text", "boolean", "code", "date"))
    goals = st.builds(Column, wanted, st.sampled_from(["y", "[red]", "é y", "target"]), seeds, scales, offsets)
    encodings = st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-8-sig", "latin-1"])
    tables = st.tuples(features, goals).map(lambda drawn: (*drawn[0], drawn[1]))
    return st.builds(Table, tables, st.integers(16, 48), st.sampled_from(FORMS), encodings)


# --- what cells mean ---------------------------------------------------------------------------------------------------


def read_numbers(cells: Cells, form: str) -> list[float | None] | None:
    """The numbers of a column, None for missing ones; None if it holds anything else. "01" is a code, and no number."""
    numbers: list[float | None] = []
    for cell in cells:
        if is_missing(cell, form):
            numbers.append(None)
        elif isinstance(cell, bool) or (isinstance(cell, str) and (form == "parquet" or is_code(cell))):
            return None
        else:
            try:
                numbers.append(float(cell))
            except ValueError:
                return None
    return numbers


def is_code(text: str) -> bool:
    return len(text) > 1 and text.startswith("0") and text.isdigit()


def is_missing(cell: Any, form: str) -> bool:
    return cell is None or (isinstance(cell, str) and form != "parquet" and cell in MISSING)


def read_texts(cells: Cells, form: str) -> list[str | None]:
    return [None if is_missing(cell, form) else str(cell).strip() for cell in cells]


def measure_column(numbers: list[float]) -> tuple[Fraction, float]:
    """Mean and standard deviation of finite numbers, without overflow or underflow."""
    exact = [Fraction(number) for number in numbers]
    mean = sum(exact) / len(exact)
    largest = max(abs(number - mean) for number in exact)
    if not largest:
        return mean, 0.0
    shares = [float((number - mean) / largest) for number in exact]
    return mean, float(Fraction(math.sqrt(sum(share**2 for share in shares) / len(shares))) * largest)


def encode_column(cells: Cells, form: str) -> np.ndarray:
    """The encoding of one column `[N, features]`: no features if it is constant, NaN where it has none."""
    numbers = read_numbers(cells, form)
    if numbers is None:
        texts = read_texts(cells, form)
        categories: list[str | None] = sorted({text for text in texts if text is not None})
        if len(categories) == 1 and None not in texts:
            return np.zeros((len(cells), 0))
        places = [*categories, *([None] if None in texts else [])]
        return np.array([[text == place for place in places] for text in texts], float)
    present = [number for number in numbers if number is not None]
    if not present or not all(map(math.isfinite, present)):
        return np.full((len(cells), 1), np.nan)
    mean, std = measure_column(present)
    has_gaps = len(present) < len(numbers)
    if not std and not has_gaps:
        return np.zeros((len(cells), 0))
    scaled = [0.0 if number is None else float((Fraction(number) - mean) / Fraction(std or 1.0)) for number in numbers]
    return np.array([[value, number is None] if has_gaps else [value] for value, number in zip(scaled, numbers, strict=True)])


def encode_table(table: Table) -> np.ndarray:
    """The encoding of all columns but the target, `[N, F]`."""
    return np.concatenate([encode_column(cells, table.form) for cells in table.make_cells()[:-1]], 1)


def list_classes(table: Table) -> list[str]:
    """The classes of the target in order; none if it is a regression's: more than 20 numbers, or one that is not whole."""
    cells = table.make_cells()[-1]
    numbers = read_numbers(cells, table.form)
    if numbers is None:
        return sorted({str(text) for text in read_texts(cells, table.form)})
    different = sorted({number for number in numbers if number is not None})
    if len(different) > 20 or not all(number.is_integer() for number in different):
        return []
    return [str(int(number)) for number in different]
