"""mimo/figure-3: accuracy and disagreement in the plane through three subnetworks' weights, of MIMO and of heads alone."""

import itertools
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from ...analysis.weight_plane import map_weight_line, map_weight_plane
from ...file_formats.schema import MOST_ENTRIES, Schema, Share, Values
from ...reports.svg import MUTED
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..trained_runs import train_once
from ..verdicts import Precondition, Verdict, format_percent, judge_claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {
    "MIMO": {"name": "mimo", "members": 3, "input_repetition": 0.0, "init": "fresh"},
    "multihead": {"name": "multihead", "members": 3},
}
"""ρ = 0 as in the paper; the paper's subnetworks start from different weights, and so do ours."""
SIZES: dict[str, Json] = {
    "smoke": {
        "points": 3,
        "rows": 50,
        "training": {"data": "digits", "epochs": 1, "rows": 100, "model": "small-cnn:width=0.5"},
    },
    "cpu": {
        "points": 21,
        "rows": 2000,
        "training": {"data": "cifar10", "model": "small-cnn", "epochs": 30, "augment": "none", "batch_size": 128, "lr": 2e-3},
    },
    "paper": {
        "points": 51,
        "rows": 10_000,
        "training": {"data": "cifar10", "model": "small-cnn", "epochs": 100, "augment": "none", "batch_size": 128, "lr": 1e-3},
    },
}
SEEDS = {"smoke": 1, "cpu": 3, "paper": 3}
Map = Annotated[list[Values], Field(min_length=1, max_length=MOST_ENTRIES)]


def list_cells(scale: str) -> dict[str, Json]:
    size = SIZES[scale]
    return {
        f"{name}, seed {seed}": {
            "seed": seed,
            "points": size["points"],
            "rows": size["rows"],
            "training": size["training"] | {"method": method, "seed": seed},
        }
        for name, method in METHODS.items()
        for seed in range(SEEDS[scale])
    }


class Measured(Schema):
    """The maps; where the members are; the barriers between them; how often they disagree, and how good each is."""

    x: Values
    y: Values
    corners: Annotated[list[Values], Field(min_length=3, max_length=3)]
    accuracy: Map
    disagreement: Annotated[list[Map], Field(min_length=3, max_length=3)]
    barriers: Annotated[list[Share], Field(min_length=3, max_length=3)]
    """Of the lines between members 0 and 1, 0 and 2, 1 and 2: how far accuracy falls below the straight line."""
    pairwise: Share
    """The share of rows on which two members disagree, averaged over pairs, as the networks in the plane answer."""
    members: Annotated[list[Share], Field(min_length=3, max_length=3)]
    """The accuracy of each member, as the network at its corner answers."""


def measure(options: Json, workspace: Workspace) -> Json:
    done = train_once(options["training"], workspace)
    x, y = done.x[: options["rows"]], done.y[: options["rows"]]
    total = options["points"] ** 2
    plane = map_weight_plane(
        done.ensemble, x, y, points=options["points"], progress=lambda count: workspace.report(f"point {count}/{total}")
    )
    workspace.report("lines")
    pairs = list(itertools.combinations(range(3), 2))
    lines = [map_weight_line(done.ensemble, x, y, members=pair) for pair in pairs]
    return {
        "x": plane.x.tolist(),
        "y": plane.y.tolist(),
        "corners": plane.corners.tolist(),
        "accuracy": plane.accuracy.tolist(),
        "disagreement": plane.disagreement.tolist(),
        "barriers": [line.barrier for line in lines],
        "pairwise": plane.corner_disagreement,
        "members": [lines[0].accuracy[0].item(), lines[0].accuracy[-1].item(), lines[1].accuracy[-1].item()],
    }


def tabulate(found: Found) -> list[Json]:
    return [
        {
            "network": name,
            "members": 100 * float(np.mean(cell["members"])),
            "barrier": 100 * float(np.mean(cell["barriers"])),
            "pairwise": 100 * cell["pairwise"],
        }
        for name, cell in found.items()
    ]


def collect(found: Found, method: str) -> list[Json]:
    """The cells of a method."""
    return [cell for name, cell in found.items() if name.startswith(f"{method},")]


def judge(found: Found) -> list[Verdict]:
    mimo, heads = collect(found, "MIMO"), collect(found, "multihead")
    worst = min(min(cell["members"]) for cell in found.values())
    learnt = Precondition(
        "every subnetwork is right on at least half of the rows", f"one is right on {format_percent(worst, 1)}", worst >= 0.5
    )
    low = min(min(cell["barriers"]) for cell in mimo)
    high = max(max(cell["barriers"]) for cell in heads)
    between = float(np.mean([cell["pairwise"] for cell in mimo])), float(np.mean([cell["pairwise"] for cell in heads]))
    verdicts = [
        judge_claim(
            "MIMO's subnetworks lie in separate basins; those of the network with several heads in one.",
            "between any two of MIMO's, accuracy falls by at least 5 points below the straight line, and between any two heads "
            "by at most 1; direction: the lowest barrier of MIMO is above the highest of the heads",
            f"MIMO at least {format_percent(low, 1)}, heads at most {format_percent(high, 1)}",
            low >= 0.05 and high <= 0.01,
            low > high,
        ),
        judge_claim(
            "MIMO's subnetworks often disagree; heads are essentially equivalent.",
            "mean disagreement of pairs: MIMO at least 10 % of rows, heads at most 2 %; direction: MIMO's is at least twice "
            "that of heads",
            f"MIMO {format_percent(between[0], 1)}, heads {format_percent(between[1], 1)}",
            between[0] >= 0.1 and between[1] <= 0.02,
            between[0] >= 2 * between[1],
        ),
    ]
    return [learnt.judge(verdict) for verdict in verdicts]


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(12, 5.6)
    panels = figure.subplots(2, 4)
    for row, method in enumerate(METHODS):
        cell = result["cells"][f"{method}, seed 0"]["found"]
        maps = [cell["accuracy"], *cell["disagreement"]]
        titles = [f"{method}: accuracy", *(f"disagreement with member {index + 1}" for index in range(3))]
        for axes, values, title in zip(panels[row], maps, titles, strict=True):
            image = axes.pcolormesh(cell["x"], cell["y"], 100 * np.array(values), cmap="viridis", shading="nearest", vmin=0)
            axes.scatter(*np.array(cell["corners"]).T, s=18, color="white", edgecolors="black", linewidths=0.8)
            axes.set_title(title, loc="left", fontsize=10)
            axes.set_aspect("equal")
            axes.tick_params(labelsize=7, colors=MUTED)
            bar = figure.colorbar(image, ax=axes, shrink=0.8)
            bar.ax.tick_params(labelsize=7)
            bar.set_label("%", fontsize=8)


RECIPE = Recipe(
    id="mimo/figure-3",
    title="The plane through three subnetworks",
    question="Are MIMO's subnetworks separate modes in weight space?",
    source="figure 3, section 3.1",
    scales={
        "smoke": Scale("100 digits, half of SmallCNN, 1 epoch; 3×3 points, 50 rows.", list_cells("smoke")),
        "cpu": Scale(
            "SmallCNN (16, 32, 32 filters) as published, on all of CIFAR-10, 30 epochs of AdamW at 2e-3; three seeds; 21×21 "
            "points on 2,000 test rows. The picture is of seed 0.",
            list_cells("cpu"),
            ("cifar10",),
        ),
        "paper": Scale("SmallCNN on CIFAR-10, 100 epochs; 51×51 points on all test rows.", list_cells("paper"), ("cifar10",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "network": "network",
        "members": "accuracy of a subnetwork, %",
        "barrier": "barrier between two, points",
        "pairwise": "disagreement of two, %",
    },
    draw=draw,
    departures=[
        "The paper does not say what the other inputs of MIMO are while one subnetwork is looked at. Ours are other rows, as "
        "in training; the plane is that of the whole network with its places rotated. With the same row at all places, which "
        "is how MIMO predicts, the first layer is the sum of all, and subnetworks would differ in their heads alone."
    ],
)
