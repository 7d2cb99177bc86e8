"""inner/figure-2: the variance gain of inner ensembles, dropout and maxout: as printed, exactly, and in drawn networks."""

import math
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from ...analysis.normal_quadrature import compute_maximum_moments
from ...analysis.variance_responses import compute_variance_gain, list_printed_gains, sample_response_variance
from ...file_formats.schema import MOST_ENTRIES, NotNegative, Positive, Schema, Size
from ...reports.svg import line_style, marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale, Workspace
from .gain_claims import DEEP_COPIES, DEEP_KEEP, judge, take_one_layer
from .random_networks import build_network, describe_response, get_activation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONSTANT = 0.3
"""c of eq. 18 in the figure; the paper leaves it open."""
LABELS = {
    "inner": "IEN",
    "eq. 10": "IEN as initialised (eq. 10)",
    "maxout": "maxout",
    "dropout": "dropout",
    "inverted dropout": "inverted dropout",
}
PLACES = {"inner": 0, "dropout": 1, "maxout": 5, "eq. 10": 6, "inverted dropout": 7}
"""The colours and symbols of methods in both panels."""
SIZES: dict[str, Json] = {
    "smoke": {"copies": [2, 4], "keeps": [0.5, 0.9], "depths": [2], "width": 16, "networks": 3, "rows": 2},
    "cpu": {
        "copies": [2, 3, 4, 8, 16, 32],
        "keeps": [0.1, 0.25, 0.5, 0.75, 0.9],
        "depths": [2, 3, 4],
        "width": 256,
        "networks": 60,
        "rows": 16,
    },
}
SIZES["paper"] = SIZES["cpu"] | {"width": 512, "networks": 400}


def list_cells(scale: str) -> dict[str, Json]:
    size = SIZES[scale]
    drawn = {key: size[key] for key in ("width", "networks", "rows")}
    cells: dict[str, Json] = {}
    for seed, method in enumerate(LABELS):
        masked = method in ("dropout", "inverted dropout")
        points = [[each, 1] for each in size["keeps" if masked else "copies"]]
        points += [[DEEP_KEEP if masked else DEEP_COPIES, layers] for layers in size["depths"]]
        cells[method] = {"method": method, "points": points, "seed": seed} | drawn
    return cells


class Point(Schema):
    """The variance gain at m copies or a probability of keeping a unit, in a network of `layers` layers after its first."""

    size: Positive
    layers: Size
    exact: Positive
    drawn: NotNegative
    """In drawn networks; an ordinary network of these has 1."""
    error: NotNegative
    """The standard error of that."""


class Measured(Schema):
    """The points of a method."""

    points: Annotated[list[Point], Field(min_length=1, max_length=MOST_ENTRIES)]


def measure(options: Json, workspace: Workspace) -> Json:
    method, width = options["method"], options["width"]
    points = []
    for number, (size, layers) in enumerate(options["points"]):
        workspace.report(f"point {number + 1}/{len(options['points'])}")
        found = sample_response_variance(
            lambda size=size, layers=layers: build_network(method, size, width, layers),  # type: ignore[misc]
            width,
            networks=options["networks"],
            rows=options["rows"],
            seed=1000 * options["seed"] + number,
        )
        exact = compute_variance_gain(describe_response(method, size), layers, get_activation(layers))
        points.append(
            {"size": float(size), "layers": layers, "exact": exact, "drawn": found.value, "error": found.error},
        )
    return {"points": points}


def tabulate(found: Found) -> list[Json]:
    return [
        {
            "method": f"{LABELS[method]}, {'p' if 'dropout' in method else 'm'} = {point['size']:g}",
            "layers": point["layers"],
            "printed": describe_printed(method, point["size"], point["layers"]),
            **{key: point[key] for key in ("exact", "drawn", "error")},
        }
        for method, cell in found.items()
        for point in cell["points"]
    ]


def describe_printed(method: str, size: float, layers: int) -> str:
    """What the paper prints about the point, as text."""
    if method == "inner":
        return f"{list_printed_gains(int(size), layers).inner:.3g}"
    if method == "dropout":
        return f"≤ {list_printed_gains(2, layers).dropout:.3g}"
    if method == "maxout":
        printed = list_printed_gains(int(size), layers)
        about = f", ≈ {printed.maxout_asymptote:.3g}" if printed.maxout_asymptote is not None else ""
        return f"≤ {printed.maxout_upper:g}{about}"
    return "1" if method == "eq. 10" else ""


def draw(figure: "Figure", result: Json) -> None:
    figure.set_size_inches(11, 5.8)
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    left, right = figure.subplots(1, 2)
    copies = list(take_one_layer(found, "inner"))
    grid = [copies[0] * (copies[-1] / copies[0]) ** (step / 60) for step in range(61)]
    whole = list(range(int(copies[0]), int(copies[-1]) + 1))
    left.plot(grid, [1 / m for m in grid], label="IEN: 1/m, printed and exact", **line_style(0))
    left.plot(grid, [0.5] * len(grid), label="dropout: ½, printed; exact at p = ½", **line_style(1))
    left.plot(grid, grid, label="maxout: at most m, printed", **line_style(2))
    left.plot(
        grid, [CONSTANT / math.log(m) for m in grid], label=f"maxout: at least {CONSTANT} / ln m, printed", **line_style(3)
    )
    left.plot(grid, [math.pi**2 / (12 * math.log(m)) for m in grid], label="maxout: π² / (12 ln m), printed", **line_style(4))
    left.plot(whole, [compute_maximum_moments(m)[1] for m in whole], label="maxout: exact", **line_style(5))
    half = take_one_layer(found, "dropout")[DEEP_KEEP]
    for method, values in (
        ("inner", take_one_layer(found, "inner")),
        ("dropout", dict.fromkeys(copies, half)),
        ("maxout", take_one_layer(found, "maxout")),
    ):
        label = f"{LABELS[method]}: drawn networks"
        left.plot(list(values), list(values.values()), linestyle="", label=label, **marker_style(PLACES[method]))
    left.set(xscale="log", yscale="log", xlabel="m", ylabel="variance ÷ variance of an ordinary layer")
    left.minorticks_off()
    left.set_xticks(copies, [f"{m:g}" for m in copies])
    left.set_title("One linear layer", loc="left", fontsize=11)
    for method, label in LABELS.items():
        size = DEEP_KEEP if "dropout" in method else DEEP_COPIES
        points = [point for point in found[method]["points"] if point["size"] == size]
        depths = [point["layers"] for point in points]
        right.plot(depths, [point["exact"] for point in points], label=label, **line_style(PLACES[method]))
        right.plot(depths, [point["drawn"] for point in points], linestyle="", **marker_style(PLACES[method]))
        right.set_xticks(depths)
    right.set(yscale="log", xlabel="layers, L − 1", ylabel="variance ÷ variance of an ordinary network")
    right.set_title(f"ReLU networks, m = {DEEP_COPIES}, p = {DEEP_KEEP:g}; lines: exact", loc="left", fontsize=11)
    for axes in (left, right):
        style_axes(axes)
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)


def describe_scale(scale: str) -> str:
    size = SIZES[scale]
    return (
        f"Theory, and {size['networks']} drawn networks of width {size['width']} at every point, each with {size['rows']} "
        "inputs; one linear layer, and ReLU networks of several."
    )


RECIPE = Recipe(
    id="inner/figure-2",
    title="Variance gains of inner ensembles, dropout and maxout",
    question="How much smaller are the responses of a random network with inner ensembles, dropout or maxout?",
    source="figure 2, section 3, appendices A to E",
    scales={name: Scale(describe_scale(name), list_cells(name)) for name in ("smoke", "cpu", "paper")},
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "method": "method",
        "printed": "printed in the paper",
        "layers": "layers, L − 1",
        "exact": "exact",
        "drawn": "drawn networks",
        "error": "standard error",
    },
    draw=draw,
    departures=[
        "The paper's figure has one linear layer and bounds alone. Ours adds exact values, drawn networks of up to four "
        "layers, dropout at other p than ½, and dropout as PyTorch has it.",
        "The variance of a maxout layer is that over its weights, given its input: the mean of a maximum would add a part that "
        "vanishes as layers become wide.",
    ],
)
