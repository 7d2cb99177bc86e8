"""A row of the table of wrong invocations."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .files import file, rows

TRAIN = "train --data digits --model mlp --rows 64 --epochs 1 --quiet"
FLOWERS = file("flowers.csv", rows())


@dataclass(frozen=True)
class Case:
    name: str
    line: str
    """`pluribus LINE`, in a folder that holds what `has` made, and a copy of the run, if one is named, as "run"."""
    said: str
    """What the sentence must contain: pieces between bars."""
    has: tuple[Callable[[Path], object], ...] = ()
    run: str = ""
    leaves: str = ""
    """A folder that may be made: the run had begun."""


def case(name, line, said, *has, run="", leaves=""):
    return Case(name, line, said, has, run, leaves)
