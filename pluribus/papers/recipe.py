"""A recipe: one table or figure of a paper as something that can be run.

It states the question and the paper's numbers, and what is measured at each of three scales: `smoke` takes seconds and shows
that everything runs, `cpu` is a smaller honest setting on real data, `paper` is the published one. What is measured is cut into
cells that do not need one another. From what the cells found, `rows` makes the table, `draw` the figure, and `judge` a verdict
on every claim, by a rule that is stated with it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..core.files import write_file
from .verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Json = dict[str, Any]
Found = Mapping[str, Any]
"""By cell, what was measured."""
ScaleName = Literal["smoke", "cpu", "paper"]
SCALES: tuple[ScaleName, ...] = ("smoke", "cpu", "paper")


@dataclass(frozen=True)
class Place:
    """Where a cell works."""

    folder: Path
    """Of this cell alone."""
    shared: Path
    """Of the whole paper: networks that several recipes need are trained once."""
    data: Path | None = None
    """Where data lie, if not where they usually do."""

    def tell(self, text: str) -> None:
        """How far it is, for whoever waits."""
        write_file(self.folder / "state.txt", text + "\n")


@dataclass(frozen=True)
class Scale:
    about: str
    """What it is, and in what it is less than the paper's."""
    cells: Mapping[str, Json]
    """Options of every cell, as JSON; a finished cell with the same options is never measured again."""
    data: Sequence[str] = ()
    """The sets that must lie in the data folder."""
    untold: Mapping[str, str] = field(default_factory=dict)
    """What the paper has and this scale does not run, and why."""


@dataclass(frozen=True)
class Recipe:
    id: str
    title: str
    question: str
    source: str
    scales: Mapping[str, Scale]
    measure: Callable[[Json, Place], Any]
    rows: Callable[[Found], list[Json]]
    judge: Callable[[Found], list[Verdict]]
    columns: Mapping[str, str]
    """Headings of the table by the keys of its rows, with units."""
    paper: Sequence[Json] = ()
    """The paper's rows, with the same keys as ours."""
    draw: Callable[["Figure", Json], None] | None = None
    """The figure of a result."""
    departures: Sequence[str] = ()
    """In what we differ from the paper, whatever the scale."""

    def __post_init__(self) -> None:
        missing = [name for name in SCALES if name not in self.scales]
        if missing:
            raise ValueError(f"{self.id} must have the scales {', '.join(SCALES)}, and lacks {', '.join(missing)}")

    @property
    def of(self) -> str:
        """The paper's short name."""
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        return self.id.partition("/")[2]
