"""variance/figure-1: a bottleneck of two variance neurons that tells four classes apart, in two ways.

Scale cpu takes about 3 minutes of one core.
"""

from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from pydantic import Field

import pluribus

from ...data import load as load_data
from ...file_formats.schema import Finite, Pair, Schema, Share
from ...methods.variance import Variance
from ...reports.svg import marker_style, style_axes
from ...training.fit import fit
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, format_percent, judge_claim
from .networks import build_bottleneck_network
from .preconditions import judge_under, require
from .response_densities import measure_response

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAME, DIFFERENT = 0.9, 0.5
"""Bounds on the correlation of the two neurons' log σ over classes: from SAME on they encode the same, below DIFFERENT not."""
OFF = 0.05
LEARNT = 0.7
"""The averaged accuracy from which a seed counts: nearly three of the four classes."""
LEAST_LEARNT = 10
"""How many seeds must have learnt for their kinds to be compared."""
SHOWN = 400


def list_cells(seeds: int, epochs: int, rows: int) -> dict[str, Json]:
    return {f"seed {seed}": {"seed": seed, "epochs": epochs, "rows": rows} for seed in range(seeds)}


class Measured(Schema):
    """Accuracies of one draw and of twenty; log σ of both neurons by class, `[4, 2]`; points to draw: x, y and their class."""

    one: Share
    many: Share
    log_std: Annotated[list[Pair], Field(min_length=4, max_length=4)]
    points: Annotated[list[Annotated[list[Finite], Field(min_length=3, max_length=3)]], Field(max_length=SHOWN)]
    correlation: Finite | None = None  # results that were recorded earlier have it; it follows from log_std


def measure(options: Json, workspace: Workspace) -> Json:
    seed = options["seed"]
    data = load_data("four-gaussians", rows=options["rows"], test=1000, seed=0)
    torch.manual_seed(seed)
    ensemble = pluribus.ensemble(build_bottleneck_network(), Variance(include="bottleneck", samples=20))
    fit(
        ensemble,
        data.train,
        preparation=data.preparation,
        epochs=options["epochs"],
        batch_size=100,
        optimizer="adam",
        lr=3e-3,
        schedule="linear",
        seed=seed,
        progress=False,
        accelerator="cpu",
    )
    x, y = data.preparation(data.test.x), data.test.y
    torch.manual_seed(seed)
    many = (ensemble.predict(x).labels == y).double().mean().item()
    ensemble.samples = 1
    one = (ensemble.predict(x).labels == y).double().mean().item()
    std = measure_response(ensemble, x, "bottleneck").std.double()
    logs = torch.stack([std[y == label].log().mean(0) for label in range(4)])  # [class, neuron]
    points = torch.randn_like(std) * std
    return {
        "one": one,
        "many": many,
        "log_std": logs.tolist(),
        "points": [
            [round(a, 3), round(b, 3), int(label)] for (a, b), label in zip(points[:SHOWN].tolist(), y[:SHOWN], strict=True)
        ],
    }


def correlate_neurons(cell: Json) -> float:
    """Return the correlation of the two neurons' log σ over the four classes; a σ below OFF counts as OFF."""
    first, second = np.maximum(np.array(cell["log_std"]), np.log(OFF)).T
    return float(np.corrcoef(first, second)[0, 1]) if first.std() and second.std() else 0.0


def classify_seed(cell: Json) -> str:
    """Return which solution a seed found: "same", "different", "mixed", or "failed"."""
    if cell["many"] < LEARNT:
        return "failed"
    alike = correlate_neurons(cell)
    return "same" if alike >= SAME else "different" if alike < DIFFERENT else "mixed"


def tabulate(found: Found) -> list[Json]:
    return [
        {
            "seed": name,
            "kind": classify_seed(cell),
            "correlation": correlate_neurons(cell),
            "one": 100 * cell["one"],
            "many": 100 * cell["many"],
        }
        for name, cell in found.items()
    ]


def judge(found: Found) -> list[Verdict]:
    kinds = {name: classify_seed(cell) for name, cell in found.items()}
    named = {each: [name for name, own in kinds.items() if own == each] for each in ("same", "different", "mixed", "failed")}
    best = {each: max((found[name]["many"] for name in named[each]), default=0.0) for each in ("same", "different")}
    learnt = require(
        f"at least {LEAST_LEARNT} seeds reach {format_percent(LEARNT, 0)} averaged",
        "seeds that do",
        {"": float(len(found) - len(named["failed"]))},
        lambda count: count >= LEAST_LEARNT,
        "{:.0f}".format,
    )
    both = require(
        "there are at least 2 seeds of either kind",
        "seeds",
        {each: float(len(named[each])) for each in ("same", "different")},
        lambda count: count >= 2,
        "{:.0f}".format,
    )
    kinds_of_seeds, accuracy = (
        judge_claim(
            "Two variance neurons can repeat each other, or encode different information, depending on the seed.",
            f"at least one seed with a correlation of log σ over classes of {SAME} or more, and one below {DIFFERENT}, among "
            f"those with {format_percent(LEARNT, 0)} accuracy",
            "; ".join(f"{each}: {', '.join(names)}" for each, names in named.items() if names),
            bool(named["same"] and named["different"]),
            bool(named["same"] or named["different"]),
        ),
        judge_claim(
            "Both reach near-perfect accuracy.",
            "the best seed of either kind at least 99 % averaged; direction: of one kind",
            f"same {format_percent(best['same'])}, different {format_percent(best['different'])}",
            min(best.values()) >= 0.99,
            max(best.values()) >= 0.99,
        ),
    )
    return judge_under([kinds_of_seeds], learnt) + judge_under([accuracy], learnt, both)


def draw(figure: "Figure", result: Json) -> None:
    cells = {name: cell["found"] for name, cell in result["cells"].items()}
    best = {
        each: max((n for n in cells if classify_seed(cells[n]) == each), key=lambda n: cells[n]["many"], default=None)
        for each in ("same", "different")
    }
    figure.set_size_inches(9, 4.6)
    titles = {"same": "the same information", "different": "different information"}
    for index, (axes, (each, name)) in enumerate(zip(figure.subplots(1, 2), best.items(), strict=True)):
        axes.set_title(f"Neurons encode {titles[each]}: {name or 'no seed'}", loc="left", fontsize=11)
        for label in range(4) if name else ():
            points = np.array([point[:2] for point in cells[name]["points"] if point[2] == label])
            own = marker_style(label) | {"linestyle": "none", "markersize": 3.5, "alpha": 0.7}
            title = f"class {label}, centre {((3, 3), (3, 10), (10, 3), (10, 10))[label]}"
            axes.plot(points[:, 0], points[:, 1], label=title if index == 0 or not best["same"] else None, **own)
        axes.set_xlabel("response of neuron 1, one draw")
        axes.set_ylabel("response of neuron 2, one draw")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_yscale("symlog", linthresh=1)
        style_axes(axes)
    if any(best.values()):
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9, markerscale=2)


ABOUT = "1,000 points of four Gaussians, six dense layers of 64, Adam at 3e-3 falling to 0;"
RECIPE = Recipe(
    id="variance/figure-1",
    title="A bottleneck of two variance neurons",
    question="How can zero-mean neurons tell four classes apart?",
    source="figure 1, section 3.2",
    scales={
        "smoke": Scale("2 seeds, 3 epochs.", list_cells(2, 3, 200)),
        "cpu": Scale(f"{ABOUT} 200 epochs, 12 seeds. The paper says neither widths nor training.", list_cells(12, 200, 1000)),
        "paper": Scale(f"{ABOUT} 200 epochs, 50 seeds.", list_cells(50, 200, 1000)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "seed": "seed",
        "kind": "neurons",
        "correlation": "correlation of log σ",
        "one": "one draw, %",
        "many": "20 draws, %",
    },
    draw=draw,
)
