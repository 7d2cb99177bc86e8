"""mimo/capacity: where MIMO begins to beat one network: width × M × ρ on three data sets. The paper has no such map.

The rule that it ends in compares two losses of accuracy. MIMO, whose members share one body, fits the training rows less well
than one network does; one network is less good on other rows than on those it was trained on. Where the first loss is less than
two fifths of the second, MIMO has the better answers. The digits and MNIST suggested it; CIFAR-10 is to judge it.
"""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ...analysis.room import ROOM, Room
from ...file_formats.schema import Finite, Share, Size
from ...metrics.classification import accuracy
from ...metrics.temperature import LOG_PRIOR, calibrated_nll, cross_fit_nll, nll_at_temperatures
from ..classification_scores import Blocks, Difference, Scores, average_blocks, compare_cells, measure_scores, predict_rows
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..trained_runs import train_once
from ..verdicts import Verdict, judge_claim
from .capacity_cells import MEMBERS, REPETITIONS, SETS, SHARES, WIDTHS, list_cells, name_mimo, name_single

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUGGESTED_BY = ("digits", "MNIST")
"""The rule, that MIMO is better where it loses less than ROOM of one network's generalisation gap on training rows."""
FITTED = 2000
"""So many training rows show how well a network fits them."""


class Measured(Scores):
    """Scores on test rows; the calibrated NLL of validation rows, by which cells are chosen, and that of test rows by block;
    accuracy on training rows, and the number of weights."""

    validation: Finite
    fitted: Share
    weights: Size
    calibrated_blocks: Blocks


def measure(options: Json, workspace: Workspace) -> Json:
    done = train_once(options["training"], workspace)
    (seen, held_out), weights = done.split(), done.ensemble.parameters()
    rows = cross_fit_nll(nll_at_temperatures(done.ensemble.predict(done.x), done.y))
    return measure_scores(done) | {
        "validation": calibrated_nll(predict_rows(done, held_out.x), held_out.y, prior=LOG_PRIOR),
        "calibrated_blocks": average_blocks(rows.double().numpy()),
        "fitted": accuracy(predict_rows(done, seen.x[:FITTED]), seen.y[:FITTED]),
        "weights": sum(weight.numel() for weight in weights),
    }


# --- what follows from the cells --------------------------------------------------------------------------------------


def collect(found: Found, name: str, width: float, label: str) -> list[Json]:
    """The cells of a setting, by seed."""
    start = f"{name}, width {width:g}, {label}, seed "
    return [cell for key, cell in found.items() if key.startswith(start)]


def average(cells: list[Json], key: str) -> float:
    return float(np.mean([cell[key] for cell in cells]))


def find_best(found: Found, name: str, width: float, times: int | None = None) -> tuple[int, float, int]:
    """M, ρ and repetition of the lowest calibrated NLL on validation rows."""
    repetitions = REPETITIONS if times is None else (times,)
    settings = [
        each for each in itertools.product(MEMBERS, SHARES, repetitions) if collect(found, name, width, name_mimo(*each))
    ]
    return min(settings, key=lambda each: average(collect(found, name, width, name_mimo(*each)), "validation"))


def compare_best(found: Found, name: str, width: float, times: int) -> Difference:
    """The calibrated NLL of the best MIMO with this repetition minus that of one network with as many gradients."""
    best = collect(found, name, width, name_mimo(*find_best(found, name, width, times)))
    return compare_cells(best, collect(found, name, width, name_single(times)), "calibrated_blocks")


def list_maps(found: Found) -> list[tuple[str, float]]:
    """The data sets and widths that were measured."""
    return [(name, width) for name in SETS for width in WIDTHS[name] if collect(found, name, width, name_single(1))]


def measure_lost_share(ours: list[Json], theirs: list[Json]) -> float:
    """How much less well MIMO fits training rows than one network, as a share of that one's generalisation gap.

    >>> ours, one = [{"fitted": 0.95, "accuracy": 0.8}], [{"fitted": 1.0, "accuracy": 0.75}]
    >>> round(measure_lost_share(ours, one), 2)
    0.2
    """
    return Room(average(theirs, "fitted"), average(theirs, "accuracy"), average(ours, "fitted")).lost_share


def count_predicted(found: Found, names: tuple[str, ...]) -> tuple[int, int]:
    """For how many settings of these data sets the rule says whether MIMO is better, and how many there are."""
    right, count = 0, 0
    for (name, width), each in itertools.product(list_maps(found), itertools.product(MEMBERS, SHARES, REPETITIONS)):
        ours, theirs = (collect(found, name, width, label) for label in (name_mimo(*each), name_single(each[2])))
        if name in names and ours:
            better = average(ours, "calibrated_nll") < average(theirs, "calibrated_nll")
            right += (measure_lost_share(ours, theirs) < ROOM) == better
            count += 1
    return right, count


def tabulate(found: Found) -> list[Json]:
    rows = []
    for name, width in list_maps(found):
        for times in REPETITIONS:
            one = collect(found, name, width, name_single(times))
            count, share, _ = find_best(found, name, width, times)
            best = collect(found, name, width, name_mimo(count, share, times))
            rows.append(
                {
                    "network": f"{name}, width {width:g}",
                    "gradients": f"{times} times",
                    "weights": round(average(one, "weights")),
                    "fitted": 100 * average(one, "fitted"),
                    "single_accuracy": 100 * average(one, "accuracy"),
                    "single": f"{average(one, 'calibrated_nll'):.4f}",
                    "accuracy": 100 * average(best, "accuracy"),
                    "calibrated": f"{average(best, 'calibrated_nll'):.4f}",
                    "members": count,
                    "share": f"{share:g}",
                    "lost": measure_lost_share(best, one),
                    "gain": f"{-compare_best(found, name, width, times).value:+.4f}",
                }
            )
    return rows


def judge(found: Found) -> list[Verdict]:
    maps = list_maps(found)
    best = {(name, width): find_best(found, name, width) for name, width in maps}
    gains = {key: compare_best(found, *key, times=1) for key in maps}
    equal = {key: compare_best(found, *key, times=2) for key in maps}
    counts = {name: [best[name, width][0] for width in WIDTHS[name]] for name in SETS if (name, WIDTHS[name][-1]) in best}
    shares = {name: [best[name, width][1] for width in WIDTHS[name]] for name in counts}

    def tell(values: dict[tuple[str, float], Difference]) -> str:
        return ", ".join(f"{name} width {width:g} {each}" for (name, width), each in values.items())

    return [
        judge_claim(
            "Not in the paper: some network on two cores is better as MIMO, at its own cost.",
            "with M and ρ chosen on validation rows, without repetition, the calibrated NLL on test rows is below that of the "
            "one network of the same width for at least one width, beyond a 99.4 % interval, because there are nine widths; "
            "direction: below for at least one",
            tell(gains),
            any(compare_strictly(found, *key) < 0 for key in maps),
            any(each.value < 0 for each in gains.values()),
        ),
        judge_claim(
            "Not in the paper: it is better at the same training FLOPs, too.",
            "with rows repeated twice, below the one network with twice the epochs beyond the interval for at least one width "
            "of every data set; direction: below for at least one width",
            tell(equal),
            all(any(equal[name, width].high < 0 for width in WIDTHS[name]) for name in counts),
            any(each.value < 0 for each in equal.values()),
        ),
        judge_claim(
            "A network with more capacity holds more subnetworks.",
            "by validation rows, the best M does not fall with the width on any data set, and grows on at least one; "
            "direction: it does not fall",
            ", ".join(f"{name} M = {', '.join(map(str, each))}" for name, each in counts.items()),
            all(is_rising(each) for each in counts.values()) and any(each[-1] > each[0] for each in counts.values()),
            all(is_rising(each) for each in counts.values()),
        ),
        judge_claim(
            "The less capacity, the more inputs should be shared.",
            "by validation rows, the best ρ does not grow with the width on any data set, and falls on at least one; "
            "direction: it does not grow",
            ", ".join(f"{name} ρ = {', '.join(f'{share:g}' for share in each)}" for name, each in shares.items()),
            all(is_rising(each[::-1]) for each in shares.values()) and any(each[-1] < each[0] for each in shares.values()),
            all(is_rising(each[::-1]) for each in shares.values()),
        ),
        judge_rule(found),
    ]


def judge_rule(found: Found) -> Verdict:
    """Whether the rule holds on the data sets that did not suggest it."""
    others = tuple(name for name in SETS if name not in SUGGESTED_BY)
    (right, count), (seen, total) = count_predicted(found, others), count_predicted(found, SUGGESTED_BY)
    return judge_claim(
        f"Not in the paper: MIMO is better than one network where it loses less than {ROOM} of that one's generalisation gap "
        "on training rows.",
        f"on {', '.join(others)}, which did not suggest the rule, it says for at least four fifths of all settings whether the "
        "calibrated NLL on test rows is below that of one network with as many gradients; direction: for two thirds",
        f"for {right} of {count} settings; on {' and '.join(SUGGESTED_BY)} for {seen} of {total}",
        count > 0 and right >= 0.8 * count,
        count > 0 and right >= 2 / 3 * count,
    )


def describe_maps(found: Found) -> list[str]:
    """A sentence for each data set: how the gain of MIMO grows with the width of the network."""
    texts = []
    for name in dict.fromkeys(name for name, _ in list_maps(found)):
        parts = []
        for width in (width for each, width in list_maps(found) if each == name):
            one = collect(found, name, width, name_single(1))
            gain = compare_best(found, name, width, 1)
            change = 100 * gain.value / average(one, "calibrated_nll")
            sure = "" if gain.high < 0 or gain.low > 0 else ", within the noise"
            fitted = f"one network fits {100 * average(one, 'fitted'):.1f} % of its training rows"
            parts.append(f"{change:+.0f} % at width {width:g} ({fitted}{sure})")
        texts.append(f"Calibrated NLL of the best MIMO against one network on {name}: {', '.join(parts)}.")
    return texts


def compare_strictly(found: Found, name: str, width: float) -> float:
    """The upper end of the 99.4 % interval of the gain without repetition."""
    best = collect(found, name, width, name_mimo(*find_best(found, name, width, 1)))
    return compare_cells(best, collect(found, name, width, name_single(1)), "calibrated_blocks", level=0.994).high


def is_rising(values: list[Any]) -> bool:
    """
    >>> is_rising([2, 2, 3]), is_rising([3, 2])
    (True, False)
    """
    return all(first <= second for first, second in itertools.pairwise(values))


# --- picture ----------------------------------------------------------------------------------------------------------


def draw(figure: "Figure", result: Json) -> None:
    """For every data set, ρ and repetition: the gain over one network with as many gradients, by width and M."""
    found = {name: cell["found"] for name, cell in result["cells"].items()}
    names = list(dict.fromkeys(name for name, _ in list_maps(found)))
    columns = list(itertools.product(REPETITIONS, SHARES))
    figure.set_size_inches(10, 1.1 + 1.9 * len(names))
    panels = figure.subplots(len(names), len(columns), squeeze=False)
    for axes, (name, (times, share)) in zip(panels.flat, itertools.product(names, columns), strict=True):
        draw_map(axes, found, name, times, share)
        if name == names[0]:
            axes.set_title(f"ρ = {share:g}" + (", rows twice" if times == 2 else ""), fontsize=9)
        if axes in panels[:, 0]:
            axes.set_ylabel(f"{name}\nwidth", fontsize=9)
    figure.supxlabel(
        "M; blue: calibrated NLL below that of one network, with a dot where it is beyond the interval", fontsize=9
    )


def draw_map(axes: Any, found: Found, name: str, times: int, share: float) -> None:
    """Draw the relative gain of each width and M, and its percentage."""
    widths = [width for each, width in list_maps(found) if each == name]
    gains = np.full((len(widths), len(MEMBERS)), np.nan)
    for (row, width), (column, count) in itertools.product(enumerate(widths), enumerate(MEMBERS)):
        ours = collect(found, name, width, name_mimo(count, share, times))
        if not ours:
            continue
        theirs = collect(found, name, width, name_single(times))
        gain = compare_cells(ours, theirs, "calibrated_blocks")
        gains[row, column] = -100 * gain.value / average(theirs, "calibrated_nll")
        text, color = (
            f"{gains[row, column]:+.0f}{'•' if gain.high < 0 else ''}",
            "white" if abs(gains[row, column]) > 40 else "black",
        )
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
    axes.imshow(gains, cmap="RdBu", vmin=-60, vmax=60, aspect="auto")
    axes.set_xticks(range(len(MEMBERS)), [str(count) for count in MEMBERS], fontsize=8)
    axes.set_yticks(range(len(widths)), [f"{width:g}" for width in widths], fontsize=8)


RECIPE = Recipe(
    id="mimo/capacity",
    title="Where MIMO begins to win",
    question="How wide must a network be for how many subnetworks?",
    source="not in the paper",
    scales={
        "smoke": Scale("100 digits, SmallCNN, 1 epoch, M = 2, ρ = 0.6.", list_cells("smoke")),
        "cpu": Scale(
            "SmallCNN on the digits (100 epochs), the fast network on 6,000 rows of MNIST (5 epochs) and on 5,000 of CIFAR-10 "
            "(16 epochs), three widths each; M, ρ and repetition of rows; one network of the same width, and one with twice "
            "the epochs, which is as many gradients as rows that are repeated twice; three seeds. Cells are chosen by "
            "validation rows, and compared on test rows, by calibrated NLL.",
            list_cells("cpu"),
            ("mnist", "cifar10"),
        ),
        "paper": Scale("As at scale cpu: the map is ours.", list_cells("cpu"), ("mnist", "cifar10")),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "network": "network",
        "gradients": "gradients",
        "weights": "weights",
        "fitted": "one network, training rows, %",
        "single_accuracy": "one network, %",
        "single": "one network, calibrated NLL",
        "accuracy": "best MIMO, %",
        "calibrated": "best MIMO, calibrated NLL",
        "members": "its M",
        "share": "its ρ",
        "lost": "of the gap it loses",
        "gain": "gain",
    },
    draw=draw,
)
