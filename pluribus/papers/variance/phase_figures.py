"""What figures 3 and 8 share: tables, curves and rules for a training whose phases were tracked."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from ...file_formats.schema import MOST_ENTRIES, Count, Finite, Schema, Share, Text
from ...reports.svg import INK, line_style, style_axes
from ..recipe import Json
from ..verdicts import format_percent
from .phase_transition import ANSWERS, find_transition
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


class TrackedPhases(Schema):
    """The phases of a training, the share of the largest class, and the epochs in which the transition begins and ends."""

    phases: Annotated[list[Phase], Field(min_length=1, max_length=MOST_ENTRIES)]
    chance: Share
    transition: Annotated[list[Count], Field(min_length=2, max_length=2)] | None


def summarize_phases(done: Trained) -> Json:
    """Return what a cell records of a tracked training."""
    chance = done.y.bincount().max().item() / len(done.y)
    moved = find_transition(done.phases, chance)
    return {"phases": done.phases, "chance": chance, "transition": None if moved is None else [moved.begins, moved.ends]}


def tabulate_phases(cell: Json) -> Json:
    """Return the columns of a table that describe the phases of a cell."""
    first, last, moved = cell["phases"][0], cell["phases"][-1], cell["transition"]
    alphas = [", ".join(f"{value:.1f}" for value in each["log_alpha"].values()) for each in (first, last)]
    return {
        "transition": "none" if moved is None else f"{moved[0]} to {moved[1]}",
        "log_alpha": f"{alphas[0]} → {alphas[1]}",
        **{answer: 100 * last[answer] for answer in ANSWERS},
    }


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
