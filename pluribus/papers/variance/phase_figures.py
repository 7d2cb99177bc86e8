"""What figures 3 and 8 share: tables, curves and rules for a training whose phases were tracked."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from ...file_formats.schema import MOST_ENTRIES, Count, Finite, Schema, Share, Text
from ...reports.svg import INK, line_style, style_axes
from ..recipe import Json
from ..verdicts import Precondition, format_percent
from .phase_transition import ANSWERS, find_transition
from .preconditions import require
from .trained_cells import TrainedCell
from .trainings import Trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "mean": "mean weights",
    "sample": "one draw",
    "average": "20 draws",
    "zero-mean": "one zero-mean draw",
    "zero-mean average": "20 zero-mean draws",
}


class Phase(Schema):
    """What `PhaseTracker` recorded after an epoch: the mean log α by layer, and the accuracy of every kind of answer."""

    epoch: Count
    log_alpha: dict[Text, Finite]
    mean: Share
    sample: Share
    average: Share
    zero_mean: Annotated[Share, Field(alias="zero-mean")]
    zero_mean_average: Annotated[Share, Field(alias="zero-mean average")]


class TrackedPhases(TrainedCell):
    """The phases of a training, the share of the largest class, and the epochs in which the transition begins and ends."""

    phases: Annotated[list[Phase], Field(min_length=1, max_length=MOST_ENTRIES)]
    chance: Share
    transition: Annotated[list[Count], Field(min_length=2, max_length=2)] | None


def summarize_phases(done: Trained) -> Json:
    """Return what a cell records of a tracked training."""
    chance = done.y.bincount().max().item() / len(done.y)
    moved = find_transition(done.phases, chance)
    return {"phases": done.phases, "chance": chance, "transition": None if moved is None else [moved.begins, moved.ends]}


def tabulate_phases(cells: dict[int, Json]) -> Json:
    """Return the columns of a table that describe the phases of a row: accuracies are means over its seeds."""
    own = list(cells.values())
    alphas = [
        ", ".join(
            f"{np.mean([cell['phases'][at]['log_alpha'][layer] for cell in own]):.1f}"
            for layer in own[0]["phases"][0]["log_alpha"]
        )
        for at in (0, -1)
    ]
    return {
        "transition": ", ".join(format_transition(cell) for cell in own),
        "log_alpha": f"{alphas[0]} → {alphas[1]}",
        **{answer: 100 * float(np.mean([cell["phases"][-1][answer] for cell in own])) for answer in ANSWERS},
    }


def format_transition(cell: Json) -> str:
    moved = cell["transition"]
    return "none" if moved is None else f"{moved[0]} to {moved[1]}"


COLUMNS = {
    "transition": "transition, epochs",
    "log_alpha": "log α",
    **{answer: f"{LABELS[answer]}, %" for answer in ANSWERS},
}


def describe_phases(cell: Json) -> str:
    """Return the evidence for a verdict: the transition, and the accuracies at the end."""
    last, moved = cell["phases"][-1], cell["transition"]
    where = "no transition" if moved is None else f"transition in epochs {moved[0]} to {moved[1]}"
    mean, average, zero = (format_percent(last[answer], 1) for answer in ("mean", "average", "zero-mean average"))
    return f"{where}; at the end mean {mean}, 20 draws {average}, 20 zero-mean draws {zero}"


def describe_seeds(cells: dict[int, Json]) -> str:
    """Return `describe_phases` of every seed of a row."""
    return "; ".join((f"seed {seed}: " if len(cells) > 1 else "") + describe_phases(cell) for seed, cell in cells.items())


def require_means_first(rows: Mapping[str, Iterable[Json]]) -> Precondition:
    """The condition that the means answered before the noise grew: otherwise there is no transition to be seen."""
    return require(
        f"in some epoch the mean weights are within 2 points of the average, which is then at {format_percent(LEARNT, 0)} "
        "or more "
        "of its best",
        "epochs in which they are, fewest of any seed",
        {name: float(min(count_mean_epochs(cell) for cell in cells)) for name, cells in rows.items()},
        lambda count: count >= 1,
        "{:.0f}".format,
    )


LEARNT = 0.9


def count_mean_epochs(cell: Json) -> int:
    """Return after how many epochs of training the mean weights answer like an average that has been learnt."""
    best = max(row["average"] for row in cell["phases"])
    return sum(row["mean"] >= row["average"] - 0.02 and row["average"] >= LEARNT * best for row in cell["phases"][1:])


def is_average_kept(cell: Json) -> bool:
    """Whether the average loses at most 2 points from the last epoch in which the mean is within 2 points of it."""
    rows = cell["phases"][1:]
    like = [index for index, each in enumerate(rows) if each["mean"] >= each["average"] - 0.02]
    if not like or like[-1] == len(rows) - 1:
        return False
    before = max(each["average"] for each in rows[: like[-1] + 1])
    return all(each["average"] >= before - 0.02 for each in rows[like[-1] :])


def draw_accuracies(axes: "Axes", cell: Json, label: bool) -> None:
    """Draw the accuracy of every kind of answer over epochs."""
    epochs = [each["epoch"] for each in cell["phases"]]
    if cell["transition"]:
        axes.axvspan(*cell["transition"], color="#e8f1fb", zorder=0, label="transition" if label else None)
    for index, answer in enumerate(ANSWERS):
        values = [100 * each[answer] for each in cell["phases"]]
        axes.plot(epochs, values, label=LABELS[answer] if label else None, **line_style(index))
    axes.set_xlabel("epoch")
    axes.set_ylabel("test accuracy, %")
    axes.set_ylim(0, min(102.0, 115 * max(each[answer] for each in cell["phases"] for answer in ANSWERS)))
    style_axes(axes)


def draw_log_alphas(axes: "Axes", cell: Json) -> None:
    """Draw log α over epochs, one line a layer."""
    for index, layer in enumerate(cell["phases"][0]["log_alpha"]):
        values = [each["log_alpha"][layer] for each in cell["phases"]]
        axes.plot([each["epoch"] for each in cell["phases"]], values, **(line_style(index) | {"color": INK}))
    axes.set_xlabel("epoch")
    axes.set_ylabel("log α, one line a layer")
    style_axes(axes)
