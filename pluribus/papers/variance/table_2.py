"""variance/table-2: one draw, the mean, and 20 draws, of binary dropout and of variational dropout.

Scale cpu takes about 80 minutes of one core beside table 1: LeNet-5 with four noisy layers 4 × 1,440 steps of 0.28 s, the
fast network 3 × 1,560 steps of 0.14 s with dropout, 4 × 1,170 of 0.17 s with variational layers, 3 × 1,170 of 0.14 s with a
variance layer.
"""

import pluribus

from ...file_formats.schema import Finite, Share, Size, Text
from ...methods.mc_dropout import MCDropout
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Verdict, judge_claim, skip_claim
from .configurations import (
    CONTROL,
    FAST_DEPARTURE,
    configure_dropout_cifar,
    configure_dropout_lenet,
    configure_noisy_lenet,
    configure_variational_cifar,
    configure_zero_mean_cifar,
)
from .phase_transition import read_log_alphas
from .preconditions import judge_under, require_accuracy, require_base, require_log_alpha, require_same_end, require_seeds
from .seeds import SEEDS, average, compare, estimate, format_points, format_share, group_seeds, list_seeds, tabulate_share, take
from .trained_cells import TrainedCell, build_cell, train_cell
from .trainings import Training, measure_accuracy, measure_mean_weights

SAMPLES = 20
LENET, CIFAR = "LeNet-5, MNIST", "CIFAR-10"
FASTER = "variance, log α twice as fast"
LEAST_BASE = 0.85
"""The accuracy on CIFAR-10 from which a network is in the paper's regime; the paper's is 93.1 %."""


def list_cells(scale: str, coarse_and_fine: bool = False) -> dict[str, Json]:
    found: dict[str, Json] = {}
    rows: dict[str, tuple[Training, Training]] = {}
    for seed in SEEDS[scale]:
        lenet, cifar = configure_dropout_lenet(scale, seed), configure_dropout_cifar(scale, seed)
        rows = {
            f"{LENET}, dropout": (lenet, lenet),
            f"{LENET}, variance": (configure_noisy_lenet(scale, seed), lenet),
            f"{LENET}, {FASTER}": (configure_noisy_lenet(scale, seed, CONTROL), lenet),
            f"{CIFAR}, dropout": (cifar, cifar),
            f"{CIFAR}, variance": (configure_variational_cifar(scale, seed), cifar),
            f"{CIFAR}, {FASTER}": (configure_variational_cifar(scale, seed, faster=CONTROL), cifar),
            f"{CIFAR}, one zero-mean layer": (configure_zero_mean_cifar(scale, seed), cifar),
        }
        for title, data, classes in (
            (("20 coarse", "cifar100-coarse", 20), ("100 fine", "cifar100", 100)) if coarse_and_fine else ()
        ):
            options: Json = {"data": data, "classes": classes}
            plain = configure_dropout_cifar(scale, seed, **options)
            rows[f"CIFAR-100 ({title} classes), dropout"] = (plain, plain)
            rows[f"CIFAR-100 ({title} classes), variance"] = (configure_variational_cifar(scale, seed, **options), plain)
        found |= {
            f"{row}, seed {seed}": build_cell(training, base)
            for row, (training, base) in rows.items()
            if seed in list_seeds(scale, FASTER in row)
        }
    order = list(rows)
    return {name: found[name] for name in sorted(found, key=lambda name: order.index(name.rpartition(", seed ")[0]))}


class Measured(TrainedCell):
    """Accuracies of one draw, of the mean weights and of averaged draws; the share of the largest class; log α by layer."""

    one: Share
    det: Share
    many: Share
    most_frequent: Share
    rows: Size
    log_alpha: dict[Text, Finite]


def measure(options: Json, workspace: Workspace) -> Json:
    done, trained = train_cell(options, workspace)
    workspace.report("testing")
    ensemble, x, y = done.ensemble, done.x, done.y
    found = trained | {"most_frequent": y.bincount().max().item() / len(y), "rows": len(y), "log_alpha": {}}
    if ensemble.spec.name == "single":
        sampled = pluribus.ensemble(ensemble.member(0), MCDropout(samples=SAMPLES))
        one, many = (measure_accuracy(sampled, x, y, samples=samples) for samples in (1, SAMPLES))
        return found | {"one": one, "det": measure_accuracy(ensemble, x, y), "many": many}
    if ensemble.spec.name == "variance":
        one, many = (measure_accuracy(ensemble, x, y, samples) for samples in (1, SAMPLES))
        return found | {"one": one, "det": measure_mean_weights(done), "many": many}
    one, det, many = (measure_accuracy(ensemble, x, y, SAMPLES, answer) for answer in ("sample", "mean", "average"))
    return found | {"one": one, "det": det, "many": many, "log_alpha": read_log_alphas(ensemble)}


def group_rows(found: Found) -> dict[str, dict[int, Json]]:
    """Return the cells of every row by seed; what was recorded before is called after the VGG-like network."""
    return {row.removeprefix("VGG-like, "): cells for row, cells in group_seeds(found).items()}


def tabulate(found: Found) -> list[Json]:
    table = []
    for row, cells in group_rows(found).items():
        layers = next(iter(cells.values()))["log_alpha"]
        alphas = [f"{layer} {sum(cell['log_alpha'][layer] for cell in cells.values()) / len(cells):.1f}" for layer in layers]
        table.append({"network": row} | tabulate_share(cells, ("one", "det", "many")) | {"log_alpha": ", ".join(alphas) or "-"})
    return table


def judge(found: Found) -> list[Verdict]:
    verdicts = [*judge_network(found, LENET, (98.2, 11.3, 99.3)), *judge_network(found, CIFAR, (91.3, 10.0, 93.4))]
    if not any("CIFAR-100" in name for name in found):
        verdicts.append(
            skip_claim("CIFAR-100: 82.2 % averaged, which is 20-way: the authors' loader reads coarse labels.", "no CIFAR-100")
        )
    return verdicts


def judge_network(found: Found, net: str, paper: tuple[float, float, float]) -> list[Verdict]:
    """The verdicts on the networks of one data set; `paper` has the accuracies of the paper's variance network in percent."""
    own = {name: cell for name, cell in found.items() if name.removeprefix("VGG-like, ").startswith(f"{net}, ")}
    rows = group_rows(own)
    dropout, variance, control = (rows.get(f"{net}, {kind}", {}) for kind in ("dropout", "variance", FASTER))
    gap, gain = compare(variance, dropout, "many"), compare(variance, variance, "many", against="one")
    chance = average(variance, "most_frequent")
    verdicts = [
        judge_claim(
            f"{net}: averaged, variance is as accurate as dropout (within 0.1 points).",
            "no more than 0.5 points below, mean over seeds; direction: no more than 3 points below",
            f"{format_share(estimate(take(variance, 'many')))} against {format_share(estimate(take(dropout, 'many')))}, "
            f"difference {format_points(gap)}",
            gap.value >= -0.005,
            gap.value >= -0.03,
        ),
        judge_claim(
            f"{net}: the mean weights of the variance network answer at chance ({paper[1]} %).",
            "of every seed at most 1 point above the share of the most frequent class; direction: less than half of the "
            "average",
            format_share(estimate(take(variance, "det"))),
            max(take(variance, "det")) <= chance + 0.01,
            all(cell["det"] < cell["many"] / 2 for cell in variance.values()),
        ),
        judge_claim(
            f"{net}: averaging 20 draws of variance gains over one ({paper[0]} to {paper[2]} %).",
            "the gain, paired by seed, is beyond its 95 % interval and at least half of the paper's; direction: beyond "
            "its interval",
            f"{format_share(estimate(take(variance, 'one')))} to {format_share(estimate(take(variance, 'many')))}, "
            f"gain {format_points(gain)}",
            gain.low > 0 and gain.value >= (paper[2] - paper[0]) / 200,
            gain.low > 0,
        ),
    ]
    base = require_base(own, 0.994)
    if net != LENET:
        base = require_accuracy(
            f"networks with dropout are, mean over seeds (the paper's {93.1} %),", LEAST_BASE, {"": average(dropout, "det")}
        )
    cells = {"variance": list(variance.values())}
    return judge_under(
        verdicts,
        require_seeds({name: cell for name, cell in own.items() if FASTER not in name}),
        base,
        require_log_alpha(cells),
        require_same_end({"variance": (variance, control)}),
    )


COLUMNS = {
    "network": "network",
    "one": "one draw, %",
    "one_margin": "±",
    "det": "mean, %",
    "det_margin": "±",
    "many": "20 draws, %",
    "many_margin": "±",
    "log_alpha": "log α by layer",
}
PAPER = {
    "LeNet-5, MNIST, dropout": (99.1, 99.4, 99.4),
    "LeNet-5, MNIST, variance": (98.2, 11.3, 99.3),
    "CIFAR-10, dropout": (91.0, 93.1, 93.4),
    "CIFAR-10, variance": (91.3, 10.0, 93.4),
    "CIFAR-100 (20 coarse classes), dropout": (77.5, 79.8, 81.7),
    "CIFAR-100 (20 coarse classes), variance": (76.9, 5.0, 82.2),
}
RECIPE = Recipe(
    id="variance/table-2",
    title="One draw, the mean, and 20 draws",
    question="Is a network that keeps nothing in its means as accurate as one with dropout?",
    source="table 2, section 6.1",
    scales={
        "smoke": Scale("100 digits in 16×16 and 100 in 32×32, narrow networks, 2 and 1 epochs.", list_cells("smoke")),
        "cpu": Scale(
            "LeNet-5 on all of MNIST with batches of 500: with dropout 12 epochs, and 12 more from there with all four layers "
            "variational. The fast network on all of CIFAR-10: with dropout 8 epochs of the recipe fast, and 6 of Adam "
            "from there "
            "with its last three convolutions variational, or with the last one a variance layer. log α is learnt as much "
            "faster "
            "than the weights as lets it move as far as in the paper's steps, and twice as fast as that in controls; "
            "three seeds.",
            list_cells("cpu"),
            ("mnist", "cifar10"),
            {"CIFAR-100": "its files are not among the recorded data; at scale paper both readings of its labels are run"},
        ),
        "paper": Scale(
            "As published; CIFAR-100 with 20 coarse classes, as in the authors' code, and with 100 fine ones.",
            list_cells("paper", True),
            ("mnist", "cifar10", "cifar100", "cifar100-coarse"),
        ),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns=COLUMNS,
    published=[{"network": name, "one": one, "det": det, "many": many} for name, (one, det, many) in PAPER.items()],
    departures=[
        FAST_DEPARTURE,
        "At scale paper the learning rate of the VGG-like network falls to 0, not to 1e-5, and log α is not clipped at ±20.",
    ],
)
