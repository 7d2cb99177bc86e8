"""inner/table-4: parameters, and the time of training, of inner ensembles and maxout.

The paper has seconds of an epoch on a GPU. Ours are ratios of a training step to that of the base network, taken in turns with
it: they are those of epochs, too, which have as many steps in every row. Scale `cpu` counts the parameters of the published
networks, and times smaller ones. Their batches are nearly those of the paper, because the smaller a batch is, the more of a
step's time is spent on weights, of which copies have more. That takes about seven minutes of one core.
"""

from typing import TYPE_CHECKING

from ...reports.svg import marker_style, style_axes
from ..recipe import Found, Json, Recipe, Scale
from ..verdicts import Verdict, judge_claim
from .networks import COPIES, NETWORKS
from .training_costs import BASE, DENSE, FUSED, LEAN, MAXOUT, NAIVE, ROWS, SPARE, Measured, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMED: dict[str, dict[str, Json]] = {
    "smoke": {"ResNet-8": {"model": {"name": "resnet", "depth": 8, "width": 0.25}, "batch_size": 4, "repeats": 2}},
    "cpu": {
        "ResNet-20": {"model": {"name": "resnet", "depth": 20}, "batch_size": 128, "repeats": 7},
        "DenseNet40-12": {"model": {"name": "densenet", "depth": 40}, "batch_size": 32, "repeats": 5},
        "VGG16, half the width": {"model": {"name": "vgg", "width": 0.5}, "batch_size": 128, "repeats": 5},
    },
}
CHEAP, CHEAP_DIRECTION = 1.05, 1.25
"""Fused and lean copies cost nothing if a step takes at most so many times that of the base network."""
PAPER_TIMES = (1.9, 4.0)
"""The paper's inner ensembles take 1.98 to 3.51 times as long as their base networks on CIFAR-10."""
PAPER = {
    FUSED: "4.25 8.60 0.85494 3.74 74.11 100.66 4.25 8.61 0.86691 3.77 74.16 100.71",
    BASE: "0.85302 1.73 0.17612 0.76916 15.25 20.57 0.85887 1.73 0.18809 0.8003 15.30 20.61",
}
SECONDS = {
    NAIVE: "55.16 97.17 102.79 239.49 26.62 32.34 58.56 94.75 96.13 239.63 26.68 32.29",
    MAXOUT: "57.45 110.53 106.33 244.74 28.20 33.98 62.64 111.1 104.53 253.85 28.18 34.02",
    BASE: "17.16 42.01 51.96 115.16 7.61 9.21 20.01 36.28 47.73 114.13 7.62 9.20",
}
COUNTS = {"base": BASE, "copies": FUSED, "spare": SPARE, "lean": LEAN}
TIMES = {"naive_time": NAIVE, "fused_time": FUSED, "dense_time": DENSE, "lean_time": LEAN, "maxout_time": MAXOUT}
"""The columns of the table: parameters, and times of a step."""
PUBLISHED_TIMES = {"naive_time": NAIVE, "maxout_time": MAXOUT}
PRINTED = tuple(NETWORKS["paper"])
COUNTED = "DenseNet40-12, CIFAR-10"
"""The published network whose parameters scale `smoke` counts: the smallest."""


def read_numbers(text: str) -> dict[str, float]:
    """The numbers of a row of the paper by network."""
    return dict(zip(PRINTED, map(float, text.split()), strict=True))


def list_cells(scale: str) -> dict[str, Json]:
    """The published networks, which are timed at scale `paper` alone, and those that stand for them elsewhere."""
    cells: dict[str, Json] = {}
    for name, settings in NETWORKS["paper"].items():
        repeats = 20 if scale == "paper" else 0
        classes = 100 if settings["data"] == "cifar100" else 10
        if scale != "smoke" or name == COUNTED:
            cells[name] = {"model": {"name": settings["model"]}, "classes": classes} | {"repeats": repeats}
            cells[name]["batch_size"] = settings["batch_size"]
    cells |= {name: {"classes": 10} | options for name, options in TIMED.get(scale, {}).items()}
    side = {name: 8 if scale == "smoke" and name in TIMED["smoke"] else 32 for name in cells}
    return {name: options | {"seed": 0, "shape": [3, side[name], side[name]]} for name, options in cells.items()}


def tabulate(found: Found) -> list[Json]:
    """A row for each network: parameters in millions, and times where steps were timed."""
    return [
        {"network": network}
        | {key: cell["parameters"][row] / 1e6 for key, row in COUNTS.items()}
        | {key: cell["ratios"][row]["median"] for key, row in TIMES.items() if cell["ratios"]}
        for network, cell in found.items()
    ]


def judge(found: Found) -> list[Verdict]:
    return [*judge_parameters(found), *judge_times({name: cell["ratios"] for name, cell in found.items() if cell["ratios"]})]


def judge_parameters(found: Found) -> list[Verdict]:
    counts = {name: cell["parameters"] for name, cell in found.items() if name in PRINTED}
    printed = read_numbers(PAPER[FUSED])
    ours = {name: count[FUSED] / 1e6 / printed[name] for name, count in counts.items()}
    spare = {name: count[SPARE] / 1e6 / printed[name] for name, count in counts.items()}
    base = {name: count[BASE] / 1e6 / read_numbers(PAPER[BASE])[name] for name, count in counts.items()}
    lean = max(cell["parameters"][LEAN] / cell["parameters"][BASE] for cell in found.values())
    growth = [count[FUSED] / count[BASE] for count in counts.values()]
    return [
        judge_claim(
            "Base networks have from 176.12K to 20.61M parameters.",
            "within 0.5 % of the printed number in every network; direction: within 5 %",
            f"ours ÷ printed: {format_range(list(base.values()))}",
            all(abs(ratio - 1) <= 0.005 for ratio in base.values()),
            all(abs(ratio - 1) <= 0.05 for ratio in base.values()),
        ),
        judge_claim(
            "Inner ensembles of four copies have from 854.94K to 100.71M parameters in training.",
            "within 0.5 % of the printed number in every network; direction: from 3 to 5 times the base network's",
            f"ours ÷ printed: {format_range(list(ours.values()))}; ours ÷ base: {format_range(growth)}",
            all(abs(ratio - 1) <= 0.005 for ratio in ours.values()),
            all(3 <= each <= 5 for each in growth),
        ),
        judge_claim(
            "Not in the paper: the printed numbers count one layer more than m, which is not used.",
            "with it, within 0.5 % of the printed number in every network; direction: nearer than without it",
            f"with it ÷ printed: {format_range(list(spare.values()))}",
            all(abs(ratio - 1) <= 0.005 for ratio in spare.values()),
            all(abs(spare[name] - 1) < abs(ours[name] - 1) for name in ours),
        ),
        judge_claim(
            "Not in the paper: lean copies need the parameters of the base network in training.",
            "at most 1.001 times as many in every network; direction: at most 1.01 times",
            f"at most {lean:.5f} times",
            lean <= 1.001,
            lean <= 1.01,
        ),
    ]


def judge_times(ratios: dict[str, Json]) -> list[Verdict]:
    naive, maxout, fused, lean = (
        {name: each[row]["median"] for name, each in ratios.items()} for row in (NAIVE, MAXOUT, FUSED, LEAN)
    )
    low, high = PAPER_TIMES
    cheap = {f"{row}, {name}": value for row, each in ((FUSED, fused), (LEAN, lean)) for name, value in each.items()}
    return [
        judge_claim(
            "Training inner ensembles of four copies is much cheaper than training four networks.",
            f"m layers one by one take from {low:g} to {high:g} times as long as the base network, in every network (the "
            "paper's 1.98 to 3.51); direction: at most 5 times",
            list_times(naive),
            all(low <= value <= high for value in naive.values()),
            all(value <= 5 for value in naive.values()),
        ),
        judge_claim(
            "Maxout takes longer than an inner ensemble.",
            "longer than m layers one by one in every network; direction: longer than fused copies",
            list_times({name: maxout[name] / naive[name] for name in naive}) + ", ÷ the time of m layers one by one",
            all(maxout[name] > naive[name] for name in naive),
            all(maxout[name] > fused[name] for name in naive),
        ),
        judge_claim(
            "Not in the paper: fused and lean copies train in the time of the base network.",
            f"at most {CHEAP} times as long in every network; direction: at most {CHEAP_DIRECTION} times",
            list_times(cheap),
            all(value <= CHEAP for value in cheap.values()),
            all(value <= CHEAP_DIRECTION for value in cheap.values()),
        ),
        judge_claim(
            "Not in the paper: where steps are bound by arithmetic, m layers one by one cost about m times.",
            f"from {0.75 * COPIES:g} to {1.25 * COPIES:g} times as long in every network; direction: at least {COPIES / 2:g} "
            "times",
            list_times(naive),
            all(0.75 * COPIES <= value <= 1.25 * COPIES for value in naive.values()),
            all(value >= COPIES / 2 for value in naive.values()),
        ),
    ]


def format_range(values: list[float]) -> str:
    return f"{min(values):.4f} to {max(values):.4f}"


def list_times(values: dict[str, float]) -> str:
    return ", ".join(f"{value:.2f}× ({name})" for name, value in values.items())


def draw(figure: "Figure", result: Json) -> None:
    cells = {name: cell["found"]["ratios"] for name, cell in result["cells"].items() if cell["found"]["ratios"]}
    figure.set_size_inches(max(5.0, 2.6 * len(cells)), 3.4)
    axes = figure.subplots()
    for index, row in enumerate(ROWS[1:]):
        places = [place + 0.12 * (index - (len(ROWS) - 2) / 2) for place in range(len(cells))]
        medians = [each[row]["median"] for each in cells.values()]
        bars = [[abs(each[row][side] - each[row]["median"]) for each in cells.values()] for side in ("low", "high")]
        axes.errorbar(places, medians, yerr=bars, capsize=3, label=row, **marker_style(index) | {"linestyle": "none"})
    axes.axhline(1, color="0.6", linewidth=1)
    axes.set_xticks(range(len(cells)), [name.replace(", ", ",\n") for name in cells])
    axes.set_ylim(bottom=0)
    axes.set_title("time of a training step, × that of the base network", loc="left", fontsize=11)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)
    style_axes(axes)


RECIPE = Recipe(
    id="inner/table-4",
    title="Parameters and time of training",
    question="What do inner ensembles and maxout cost in training?",
    source="table 4, appendix F",
    scales={
        "smoke": Scale(
            "A quarter of ResNet-8 on images of 8×8, timed twice; the parameters of DenseNet40-12.", list_cells("smoke")
        ),
        "cpu": Scale(
            "Parameters of the published networks; steps of ResNet-20 and of VGG16 at half the width in batches of 128, and of "
            "DenseNet40-12 in batches of 32, in turns.",
            list_cells("cpu"),
            not_run={"epochs of the published networks": "they need a GPU"},
        ),
        "paper": Scale("The published networks and batches.", list_cells("paper")),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "network": "network",
        "base": "parameters of the base, M",
        "copies": "of IEN",
        "spare": "with a spare layer",
        "lean": "of IEN, lean",
        "naive_time": "time of m layers one by one, × base",
        "fused_time": "of IEN",
        "dense_time": "of IEN+FC",
        "lean_time": "of IEN, lean",
        "maxout_time": "of maxout",
    },
    published=[
        {"network": network, "base": read_numbers(PAPER[BASE])[network], "spare": read_numbers(PAPER[FUSED])[network]}
        | {
            key: read_numbers(SECONDS[row])[network] / read_numbers(SECONDS[BASE])[network]
            for key, row in PUBLISHED_TIMES.items()
        }
        for network in PRINTED
    ],
    draw=draw,
    departures=[
        "Times of training are ratios of steps, taken in turns with the base network; the paper has seconds of epochs."
    ],
)
