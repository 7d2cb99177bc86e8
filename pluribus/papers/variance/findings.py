"""Sentences for the page, made from the results: what the papers do not say, and what our departures do."""

from collections import Counter

from ..recipe import Json
from ..verdicts import format_percent
from . import absolute, figure_1, figure_5, figure_7, kappa, table_3, theorem_1, worth
from .seeds import average, group_seeds

Found = dict[str, Json]
"""Results by id."""


def read_cells(found: Found, name: str) -> Json:
    """Return what the cells of an artefact measured, by name; {} if it was not run, or at scale smoke only."""
    result = found.get(f"variance/{name}")
    if not result or result["scale"] == "smoke":
        return {}
    return {key: cell["found"] for key, cell in result["cells"].items()}


def read_rows(found: Found, name: str) -> dict[str, dict[int, Json]]:
    """Return what the cells of an artefact measured, by row and seed; {} if it was not run, or at scale smoke only."""
    return group_seeds(read_cells(found, name))


def list_departures(found: Found) -> list[str]:
    """Return sentences about the measured effect of our departures."""
    sentences = []
    if noises := read_rows(found, "noises"):
        each = ", ".join(
            f"{noise} {format_percent(average(cells, 'many'))} and {format_percent(average(cells, 'by_batch'))}"
            for noise, cells in noises.items()
        )
        sentences.append(
            "Running statistics or the test batch's in BatchNorm, 20 draws (the authors' code has the latter; "
            f"variance/noises): {each}."
        )
    if curves := read_cells(found, "figure-3"):
        cell = next(iter(curves.values()))
        first, last = (next(iter(cell["phases"][at]["log_alpha"].values())) for at in (0, -1))
        sentences.append(
            f"Learning log α faster, in fewer epochs, takes it from {first:.1f} to {last:.1f} in the first dense layer of "
            "LeNet-5 (the paper's ends at 6.9; variance/figure-3)."
        )
    return sentences


def list_findings(found: Found) -> list[str]:
    """Return sentences about what the results say beyond the papers."""
    return [
        text
        for say in (
            describe_attacks,
            describe_odd_network,
            describe_bound,
            describe_elbos,
            describe_student_prior,
            describe_sparsity,
            describe_pruning,
            describe_absolute_value,
            describe_bottleneck,
            describe_policies,
            describe_worth,
        )
        if (text := say(found))
    ]


def describe_attacks(found: Found) -> str:
    own = read_rows(found, "figure-7")
    if not own:
        return ""

    def area(cells: dict[int, Json]) -> float:
        return figure_7.estimate_area(cells).value

    parts = []
    for method in figure_7.NOISY:
        one, many = (area(own[f"{method}, {through}"]) for through in ("one draw", "average"))
        parts.append(f"{method} {format_percent(one, 0)} and {format_percent(many, 0)}")
    plain = format_percent(area(own["deterministic, average"]), 0)
    deep = format_percent(area(own["deep ensemble, average"]), 0)
    variance = [area(own[f"variance, {through}"]) for through in ("one draw", "average")]
    lost = variance[1] > max(variance[0] + 0.05, 0.9 * area(own["deterministic, average"]))
    headline = (
        "**The robustness of variance networks is for the most part a masked gradient.**"
        if lost
        else "**Averaging the gradient over draws hardly helps against variance networks.**"
    )
    dropout = [area(own[f"dropout, {through}"]) for through in ("one draw", "average")]
    masked = " What dropout has through one draw is for the most part masked." if dropout[1] > 1.5 * dropout[0] else ""
    images = min(cell["images"] for cells in own.values() for cell in cells.values())
    few = ", and so few images that a few points mean little" if images < figure_7.LEAST_IMAGES else ""
    return (
        f"{headline}{masked} Mean success of the targeted attack over its iterations, through one draw and through the "
        f"average of ten: {', '.join(parts)}; the deterministic network {plain}, the deep ensemble {deep}. These have one "
        f"zero-mean layer{few} (variance/figure-7)."
    )


def describe_bound(found: Found) -> str:
    theory, curves = read_cells(found, "theorem-1"), read_cells(found, "figure-3")
    if not theory or not curves:
        return ""
    cell = next(iter(curves.values()))
    near = [row for row in cell["phases"][1:] if row["zero-mean average"] >= row["average"] - 0.01]
    if not near:
        return ""
    (log_alpha,) = near[0]["log_alpha"].values()
    value = theorem_1.mmd_bound(log_alpha, theorem_1.LAYERS["LeNet-5, first dense layer"][0])
    if value < theorem_1.VACUOUS:
        return ""
    return (
        "The means can be dropped long before theorem 1 allows it, and long before they stop answering themselves. After "
        f"epoch {near[0]['epoch']} of figure-3, at a log α of {log_alpha:.1f}, zero-mean draws are right "
        f"{format_percent(near[0]['zero-mean average'], 1)} and draws with their means "
        f"{format_percent(near[0]['average'], 1)}, the mean "
        f"weights alone {format_percent(near[0]['mean'], 1)}. The bound is {value:.3g} there, and no two distributions are "
        "further "
        "apart than 2 (variance/figure-3, variance/theorem-1)."
    )


def describe_student_prior(found: Found) -> str:
    result = found.get("variance/figure-2")
    if not result or result["scale"] == "smoke":
        return ""
    rising = [row["prior"] for row in result["rows"] if not row["falls"]]
    if not rising:
        return ""
    return (
        f"Student's prior pushes α to infinity only while ν is tiny: for a weight with mean 1 and {' or '.join(rising)} the "
        "divergence rises again, and holds α back (variance/figure-2)."
    )


def describe_pruning(found: Found) -> str:
    by_sigma, by_kappa = read_rows(found, "figure-5"), read_rows(found, "kappa")
    if not by_sigma or not by_kappa:
        return ""
    cells = list(by_kappa["curvature"].values())
    sigma = min(figure_5.find_prunable_share(cell) for cell in by_sigma["pruning"].values())
    curvature, mean = (min(kappa.find_replaceable_share(cell, to) for cell in cells) for to in ("zero", "mean"))
    negative = [row["negative"] / cell["weights"] for cell in cells for row in cell["watched"]]
    return (
        f"At no loss {format_percent(sigma, 1)} of a zero-mean layer's weights can be zeroed by σ, which needs no data; by κ "
        f"{format_percent(curvature, 1)} of a variational layer's can be zeroed and {format_percent(mean, 1)} replaced by "
        "their means. κ is "
        f"negative for {format_percent(min(negative), 0)} to {format_percent(max(negative), 0)} of the weights, by epoch, "
        "which a "
        "logarithmic histogram does not show (variance/figure-5, variance/kappa)."
    )


def describe_sparsity(found: Found) -> str:
    own = read_cells(found, "figure-5")
    if not own:
        return ""
    table = next(iter(own.values()))["table"]
    row = next(row for row in table if row["sparsity"] >= 0.9)
    return (
        f"A zero-mean layer prunes itself: nothing in its loss asks for it, and {format_percent(table[0]['sparsity'], 0)} "
        "of its σ "
        f"are exactly zero in single precision when training ends, {format_percent(row['sparsity'], 0)} below "
        f"{row['threshold']:.1g} "
        "(variance/figure-5)."
    )


def describe_odd_network(found: Found) -> str:
    own = read_rows(found, "table-3")
    if not own or table_3.SHIFTED not in "".join(own):
        return ""
    bare, shifted = (average(own[row], "one") for row in ("dense1", table_3.DENSE1))
    return (
        "The third row of table 3 cannot be as it is described. With odd activations and no bias anywhere, a variance layer "
        "before the classifier answers with logits z and −z equally often, so one draw is right at most half of the time; "
        f"ours is right {format_percent(bare, 1)}. With a BatchNorm, whose shift is a bias, it is right "
        f"{format_percent(shifted, 1)}, after our few epochs (the paper: 98.8 %; variance/table-3)."
    )


def describe_elbos(found: Found) -> str:
    own = read_rows(found, "table-1")
    if not own:
        return ""
    layer, additive = ({key: average(own[kind], key) for key in ("elbo", "data", "kl")} for kind in ("layer", "additive"))
    if layer["elbo"] >= additive["elbo"]:
        return ""
    return (
        "That a simpler posterior has a better bound takes its time to show. In our short training one α a layer pays a KL "
        f"of {layer['kl']:.2f} nats and has {-layer['data']:,.0f} nats of data left, an additive σ pays {additive['kl']:,.0f} "
        f"and has {-additive['data']:,.0f}: less to pay is no use until the data are fitted (variance/table-1)."
    )


def describe_absolute_value(found: Found) -> str:
    own = read_rows(found, "absolute")
    if not own:
        return ""
    plain, relu = ({key: average(own[row], key) for key in ("one", "many")} for row in (absolute.ABSOLUTE, absolute.RELU))
    return (
        f"What the absolute value saves is draws: one draw is {format_percent(plain['one'])} right with it and "
        f"{format_percent(relu['one'])} with a ReLU, 20 draws {format_percent(plain['many'])} and "
        f"{format_percent(relu['many'])} "
        "(variance/absolute)."
    )


def describe_bottleneck(found: Found) -> str:
    own = read_cells(found, "figure-1")
    if not own:
        return ""
    counts = Counter(figure_1.classify_seed(cell) for cell in own.values())
    parts = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
    return f"Of {len(own)} seeds of the toy problem the two neurons are: {parts} (variance/figure-1)."


def describe_policies(found: Found) -> str:
    result = found.get("variance/figure-6")
    if not result or result["scale"] == "smoke":
        return ""
    parts = [
        f"{row['world']}, {row['policy']} {row['end']:.0f} ({row['low']:.0f} to {row['high']:.0f})" for row in result["rows"]
    ]
    seeds = min(len(cell["found"]["scores"]) for cell in result["cells"].values())
    return f"Scores of the last tenth of episodes over {seeds} seeds: {'; '.join(parts)} (variance/figure-6)."


def describe_worth(found: Found) -> str:
    own = read_rows(found, "worth")
    if not own:
        return ""
    networks = worth.measure_equivalents(own)
    best = min(worth.NOISY, key=lambda row: average(own[row], "calibrated_nll"))
    parts = [
        f"{row} {average(own[row], 'calibrated_nll'):.3f}, worth {networks[row]['value']:.1f} networks "
        f"({networks[row]['low']:.1f} to {networks[row]['high']:.1f})"
        for row in (worth.SCALED, *worth.NOISY)
    ]
    return (
        f"Of the methods that draw, at the latency of {worth.MOST} networks, {best} has the lowest calibrated NLL: "
        f"{'; '.join(parts)} (variance/worth)."
    )
