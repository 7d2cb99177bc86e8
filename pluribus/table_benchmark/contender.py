"""A contender: something that is fitted to training rows, and answers with a Gaussian for every row."""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from torch import Tensor

from .rows import Rows
from .scores import Gaussians

Options = dict[str, Any]
Predict = Callable[[Tensor], Gaussians]
"""Inputs `[N, F]` → means and variances of standardised targets."""


class Limits(NamedTuple):
    """How long contenders train at most."""

    epochs: int
    patience: int
    """Epochs without a better score on validation rows, after which a network stops."""
    trees: int
    tree_patience: int


class Tuned(NamedTuple):
    """An option, what it is by default, and the values that tuning draws from."""

    default: Any
    kind: Literal["float", "log", "int", "choice"]
    values: tuple[Any, ...]
    """The lowest and the highest value, or all values of a choice."""


@dataclass(frozen=True)
class Contender:
    """A name and a title, the packages that must be installed, what is tuned, and `fit(rows, options, seed, limits)`."""

    name: str
    title: str
    fit: Callable[[Rows, Options, int, Limits], Predict]
    space: Mapping[str, Tuned]
    packages: tuple[str, ...] = ()
    is_ours: bool = False

    def find_missing(self) -> str:
        """The sentence about a package that is not installed, or ""."""
        missing = [package for package in self.packages if importlib.util.find_spec(package) is None]
        return f"{' and '.join(missing)} not installed: pip install 'pluribus[tables]'" if missing else ""

    @property
    def defaults(self) -> Options:
        return {name: tuned.default for name, tuned in self.space.items()}


def choose_batch_size(count: int) -> int:
    """Rows in a step of every network, theirs and ours: smaller tables need smaller steps.

    >>> choose_batch_size(900), choose_batch_size(5000), choose_batch_size(40_000)
    (64, 128, 256)
    """
    return 64 if count < 2000 else 128 if count < 10_000 else 256
