"""A recipe: one table or figure of a paper that can be run again.

A recipe states the question, the paper's numbers, and what is measured at each of three scales: `smoke` takes seconds and shows
that everything runs, `cpu` is a smaller setting on real data, `paper` is the published setting. The measurement is divided into
independent cells. From what the cells measured, `tabulate` makes the table, `draw` the figure, and `judge` a verdict on every
claim, by a rule that is stated beside the verdict.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..core.files import write_file
from ..file_formats.schema import Schema
from .verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Json = dict[str, Any]
Found = Mapping[str, Any]
"""What each cell measured, by the name of the cell."""
ScaleName = Literal["smoke", "cpu", "paper"]
SCALES: tuple[ScaleName, ...] = ("smoke", "cpu", "paper")


@dataclass(frozen=True)
class Workspace:
    """The folders that a cell reads and writes."""

    folder: Path
    """The folder of this cell alone."""
    shared: Path
    """The folder of the whole paper: a network that several recipes need is trained there once."""
    data: Path | None = None
    """The folder of the data sets; None is the usual one."""

    def report(self, text: str) -> None:
        """Write how far the cell is, for the progress bar."""
        write_file(self.folder / "state.txt", text + "\n")


@dataclass(frozen=True)
class Scale:
    """One size at which a recipe can be run."""

    about: str
    """The setting, and how it is smaller than the paper's."""
    cells: Mapping[str, Json]
    """The options of every cell, as JSON; a finished cell with the same options is never measured again. Without any, the scale
    is not run, and `not_run` says why."""
    data: Sequence[str] = ()
    """The data sets that must lie in the data folder."""
    not_run: Mapping[str, str] = field(default_factory=dict)
    """What the paper has and this scale does not run, with the reason."""


@dataclass(frozen=True)
class Recipe:
    """A table or figure of a paper: what is measured, and what is made from the measurements."""

    id: str
    """<paper>/<artefact>, as in variance/table-1."""
    title: str
    question: str
    source: str
    scales: Mapping[str, Scale]
    measure: Callable[[Json, Workspace], Any]
    """Measures one cell: its options and folders go in, JSON comes out."""
    measured: type[Schema]
    """The schema of what `measure` returns: a result is checked by it whenever it is read."""
    tabulate: Callable[[Found], list[Json]]
    """Makes the rows of the table."""
    judge: Callable[[Found], list[Verdict]]
    """Makes a verdict on every claim; all cells are finished then."""
    columns: Mapping[str, str]
    """Headings of the table by the keys of its rows, with units."""
    published: Sequence[Json] = ()
    """The paper's rows, with the same keys as ours."""
    draw: Callable[["Figure", Json], None] | None = None
    """Draws the figure of a result."""
    departures: Sequence[str] = ()
    """How we differ from the paper at every scale."""

    def __post_init__(self) -> None:
        missing = [name for name in SCALES if name not in self.scales]
        if missing:
            raise ValueError(f"{self.id} must have the scales {', '.join(SCALES)}, but lacks {', '.join(missing)}")

    @property
    def paper_name(self) -> str:
        """The short name of the paper, the first part of the id."""
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        """The name of the table or figure, the second part of the id."""
        return self.id.partition("/")[2]
