"""Limits on what a data file may hold. A file beyond one is refused before memory is spent on it.

A small file can unfold to any size: a gzipped or zipped run of zeros, an image of one colour, a table of empty columns. Each
limit has an environment variable that sets another one, for the user who trusts the file and has the memory.
"""

import os
from dataclasses import dataclass

from ..core.errors import DataError


@dataclass(frozen=True)
class Limit:
    """The largest number of something that a data file may hold.

    >>> Limit("PLURIBUS_MAX_COLUMNS", 3, "columns").check(4, "the table has")
    Traceback (most recent call last):
    pluribus.core.errors.DataError: the table has 4 columns, more than the limit of 3: set PLURIBUS_MAX_COLUMNS to allow more
    """

    variable: str
    """The environment variable that sets another limit."""
    default: int
    unit: str

    def read(self) -> int:
        """The limit that holds now. Raises: DataError if the variable is no whole number above 0."""
        text = os.environ.get(self.variable, "").strip()
        if not text:
            return self.default
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text)):
            raise DataError(f"{self.variable} must be a whole number above 0, got {text[:40]!r}")
        return int(text)

    def check(self, count: int, subject: str) -> None:
        """Raise DataError if `count` is above the limit; the message begins with `subject`, as in "x.npz holds"."""
        limit = self.read()
        if count > limit:
            raise DataError(
                f"{subject} {count:,} {self.unit}, more than the limit of {limit:,}: set {self.variable} to allow more"
            )


BYTES = Limit("PLURIBUS_MAX_BYTES", 4 * 2**30, "bytes")
"""Of a file after decompression, and of all its rows in memory."""
PIXELS = Limit("PLURIBUS_MAX_PIXELS", 100_000_000, "pixels")
"""Of one image."""
COLUMNS = Limit("PLURIBUS_MAX_COLUMNS", 10_000, "columns")
"""Of a table."""
FEATURES = Limit("PLURIBUS_MAX_FEATURES", 100_000, "numbers a row")
"""Of an encoded row: a column of texts becomes a number for each category."""
TEXT = Limit("PLURIBUS_MAX_TEXT", 1_000, "characters")
"""Of a label, a category, or the name of a column."""
