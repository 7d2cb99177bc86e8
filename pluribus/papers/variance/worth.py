"""variance/worth: what variance layers bring beside other ways to an uncertainty, at equal latency. No paper has this table.

Every method that draws has as many draws as fit into the latency of a deep ensemble of four networks. Calibrated NLL is at
temperatures that are cross-fitted on halves of the test rows, so one network with a fitted temperature has that of one network.

Scale cpu takes about 45 minutes of one core beside table 2: the fast network 9 × 1,560 steps of 0.14 s, latencies and answers.
"""

import torch

import pluribus

from ...analysis.cost import compare_cost
from ...comparison.equivalents import EquivalentsCurve
from ...comparison.statistics import PairedBootstrap
from ...core.ensemble import Ensemble
from ...core.predictive import Predictive
from ...data.dataset import Part
from ...file_formats.schema import NotNegative, Schema, Share, Size
from ...methods.mc_dropout import MCDropout
from ...metrics.calibration import apply_temperature, fit_temperature
from ...metrics.classification import accuracy
from ...metrics.ood_detection import auroc, uncertainty
from ...metrics.temperature import cross_fit_nll, nll_at_temperatures
from ...runs.evaluation_case import EvaluationCase
from ...runs.robustness import load_out_of_distribution
from ..classification_scores import Blocks, average_blocks, compare_cells
from ..recipe import Found, Json, Recipe, Scale, Workspace
from ..verdicts import Precondition, Verdict, judge_claim
from .configurations import FAST_DEPARTURE, configure_dropout_cifar, configure_variational_cifar, configure_zero_mean_cifar
from .figure_7 import join_networks
from .preconditions import judge_under, require, require_accuracy, require_seeds
from .seeds import SEEDS, average, compare, format_points, group_seeds, tabulate_share
from .table_2 import LEAST_BASE
from .trainings import Trained, Training, train_once

ONE, SCALED, DROPOUT = "one network", "one network, temperature fitted", "MC dropout"
VARIATIONAL, VARIANCE, DEEP = "variational dropout", "variance layer", "deep ensemble of {}"
MOST = 4
"""The networks of the largest deep ensemble, whose latency the other methods may have."""
NOISY = (DROPOUT, VARIATIONAL, VARIANCE)
DRAWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
SLACK = 1.1
"""How much more latency than a deep ensemble's a method may have."""
LEAST_LATENCY = 0.6
"""The share of that latency which a method must use to be compared at equal latency."""
STRANGE: dict[str, Json] = {
    "smoke": {"name": "noise", "rows": 40},
    "cpu": {"name": "svhn", "rows": 5000},
    "paper": {"name": "svhn", "rows": 10_000},
}
"""What is to be told from test rows, and how many of its rows."""


def list_cells(scale: str) -> dict[str, Json]:
    """A deep ensemble of seed s has the network of that seed, and three that no other method uses."""
    found: dict[str, Json] = {}
    for seed in SEEDS[scale]:
        plain = [configure_dropout_cifar(scale, each).to_json() for each in (seed, *(10 * seed + k for k in range(1, MOST)))]
        rows: dict[str, list[Json]] = {
            ONE: plain[:1],
            SCALED: plain[:1],
            DROPOUT: plain[:1],
            VARIATIONAL: [configure_variational_cifar(scale, seed).to_json()],
            VARIANCE: [configure_zero_mean_cifar(scale, seed).to_json()],
        } | {DEEP.format(size): plain[:size] for size in range(2, MOST + 1)}
        draws = list(DRAWS[:2] if scale == "smoke" else DRAWS)
        for row, trainings in rows.items():
            options: Json = {"seed": seed, "row": row, "trainings": trainings, "base": plain[0], "strange": STRANGE[scale]}
            found[f"{row}, seed {seed}"] = options | ({"draws": draws} if row in NOISY else {})
    return dict(sorted(found.items(), key=lambda item: list(rows).index(item[1]["row"])))


class Measured(Schema):
    """Scores on the test rows, calibrated NLL by block of them, and what the method costs as a ratio to one network."""

    accuracy: Share
    nll: NotNegative
    calibrated_nll: NotNegative
    nll_blocks: Blocks
    auroc: Share
    draws: Size | None
    latency: NotNegative
    flops: NotNegative | None


def measure(options: Json, workspace: Workspace) -> Json:
    trainings = [Training.from_json(each) for each in options["trainings"]]
    done = [train_once(training, workspace) for training in trainings]
    base, net = train_once(Training.from_json(options["base"]), workspace).ensemble.member(0), trainings[0].build()
    ensemble, row = build_ensemble(done, options["row"], net), options["row"]
    workspace.report("latency")
    if row in NOISY:
        draws, latency, flops = choose_draws(ensemble, base, done[0], options["draws"])
    else:
        draws, (latency, flops) = None, measure_cost(ensemble, base, done[0])
    workspace.report("scores")
    x, y, strange = done[0].x, done[0].y, options["strange"]
    case = EvaluationCase(ensemble, done[0].data, done[0].data.test)
    others, _ = load_out_of_distribution(case, strange["name"], None if workspace.data is None else str(workspace.data))
    rows = Part(others, torch.zeros(len(others), dtype=torch.long))
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[: strange["rows"]]
    torch.manual_seed(options["seed"])
    seen, unseen = (ensemble.predict(each) for each in (x, done[0].data.preparation(rows.take_rows(order).x)))
    return score(seen, unseen, y, is_scaled=row == SCALED) | {"draws": draws, "latency": latency, "flops": flops}


def score(seen: Predictive, unseen: Predictive, y: torch.Tensor, is_scaled: bool) -> Json:
    """The scores of answers to test rows and to others.

    With `is_scaled` the NLL is the calibrated one, and entropies are at a temperature that fits the test rows, which can only
    flatter the method.
    """
    rows = cross_fit_nll(nll_at_temperatures(seen, y))
    nll = rows.mean().item() if is_scaled else seen.nll(y).double().mean().item()
    if is_scaled:
        temperature = fit_temperature(seen, y)
        seen, unseen = (apply_temperature(answer, temperature) for answer in (seen, unseen))
    return {
        "accuracy": accuracy(seen, y),
        "nll": nll,
        "calibrated_nll": rows.mean().item(),
        "nll_blocks": average_blocks(rows.numpy()),
        "auroc": auroc(uncertainty(seen, "entropy"), uncertainty(unseen, "entropy")),
    }


def build_ensemble(done: list[Trained], row: str, net: torch.nn.Module) -> Ensemble:
    """Return the ensemble of a row from its trained networks; `net` is their plain network with any weights."""
    parts = [each.ensemble for each in done]
    if row == DROPOUT:
        return pluribus.ensemble(parts[0].member(0), MCDropout()).eval()
    return join_networks(parts, "deep ensemble", net) if len(parts) > 1 else parts[0]


def choose_draws(ensemble: Ensemble, base: torch.nn.Module, done: Trained, draws: list[int]) -> tuple[int, float, float | None]:
    """Set the largest number of draws whose latency fits, or the least, and return it with the latency and the FLOPs."""
    chosen: tuple[int, float, float | None] | None = None
    for count in sorted(draws):
        ensemble.samples = count
        latency, flops = measure_cost(ensemble, base, done)
        if chosen is not None and latency > SLACK * MOST:
            break
        chosen = count, latency, flops
    assert chosen is not None
    ensemble.samples = chosen[0]
    return chosen


def measure_cost(ensemble: Ensemble, base: torch.nn.Module, done: Trained) -> tuple[float, float | None]:
    """Return latency and FLOPs of an answer as ratios to one network, on 64 test rows."""
    found = compare_cost(ensemble, base, done.x[:64], done.y[:64])
    return found.latency.value, found.deployed_flops


def tabulate(found: Found) -> list[Json]:
    rows = group_seeds(found)
    worth = measure_equivalents(rows)
    table = []
    for row, cells in rows.items():
        own: Json = {"method": row, "draws": float(average(cells, "draws")) if row in NOISY else None}
        own |= {key: average(cells, key) for key in ("latency", "nll", "calibrated_nll")} | tabulate_share(
            cells, ("accuracy", "auroc")
        )
        table.append(own | {f"worth_{key}": worth[row][key] for key in ("low", "high")} | {"worth": worth[row]["value"]})
    return table


def measure_equivalents(rows: dict[str, dict[int, Json]]) -> dict[str, Json]:
    """The deep-ensemble equivalents of every row, with their interval over blocks of test rows and seeds."""
    blocks = {
        row: {seed: torch.tensor(cell["nll_blocks"], dtype=torch.double) for seed, cell in cells.items()}
        for row, cells in rows.items()
    }
    sizes = (ONE, *(DEEP.format(size) for size in range(2, MOST + 1)))
    curve = EquivalentsCurve(PairedBootstrap(blocks), sizes)
    return {row: curve.measure(row) for row in rows}


def judge_nll(rows: dict[str, dict[int, Json]], claim: str, ours: str, theirs: tuple[str, ...]) -> Verdict:
    """The verdict on a claim that a method has a lower calibrated NLL than each of some others."""
    gains = {row: compare_cells(list(rows[ours].values()), list(rows[row].values())) for row in theirs}
    worth = measure_equivalents(rows)[ours]
    return judge_claim(
        claim,
        f"calibrated NLL of {ours} below that of {' and '.join(theirs)} beyond the 95 % interval, paired by seed and "
        "block of test "
        "rows; direction: below",
        "; ".join(f"against {row} {gain}" for row, gain in gains.items())
        + f"; worth {worth['value']:.1f} networks ({worth['low']:.1f} to {worth['high']:.1f})",
        all(gain.high < 0 for gain in gains.values()),
        all(gain.value < 0 for gain in gains.values()),
    )


def judge(found: Found) -> list[Verdict]:
    rows = group_seeds(found)
    best = DEEP.format(MOST)
    detection = compare(rows[VARIANCE], rows[SCALED], "auroc")
    regime = [
        require_seeds(found),
        require_accuracy(
            "single networks are, mean over seeds (the paper's 93.1 %),", LEAST_BASE, {"": average(rows[ONE], "accuracy")}
        ),
    ]
    alone = [
        judge_nll(rows, "A variance layer is better than one network with a fitted temperature.", VARIANCE, (SCALED,)),
        judge_claim(
            "A variance layer tells strange images from test images better than one network does.",
            "AUROC of the entropy above that of one network with a fitted temperature beyond the 95 % interval, paired by "
            "seed; "
            "direction: above",
            format_points(detection),
            detection.low > 0,
            detection.value > 0,
        ),
    ]
    equal = [
        judge_nll(rows, "At equal latency a variance layer is better than MC dropout.", VARIANCE, (DROPOUT,)),
        judge_nll(rows, "At equal latency variational dropout is better than MC dropout.", VARIATIONAL, (DROPOUT,)),
        judge_nll(rows, "At equal latency a deep ensemble is better than all of these.", best, NOISY),
    ]
    return [*judge_under(alone, *regime), *judge_under(equal, *regime, require_equal_latency(rows))]


def require_equal_latency(rows: dict[str, dict[int, Json]]) -> Precondition:
    """The condition that what draws takes about as long as the deep ensemble."""
    whole = average(rows[DEEP.format(MOST)], "latency")
    return require(
        f"what draws has from {LEAST_LATENCY:g} to {SLACK:g} times the latency of the deep ensemble",
        "times its latency",
        {row: average(rows[row], "latency") / whole for row in NOISY},
        lambda ratio: LEAST_LATENCY <= ratio <= SLACK,
        "{:.2f}".format,
    )


RECIPE = Recipe(
    id="variance/worth",
    title="Does it help?",
    question="What do variance layers bring at the latency of other methods?",
    source="not in the papers",
    scales={
        "smoke": Scale(
            "100 digits in 32×32, narrow fast networks, 1 epoch; noise in place of strange images.", list_cells("smoke")
        ),
        "cpu": Scale(
            "The networks of table-2 on CIFAR-10, and nine more with dropout for deep ensembles; as many draws as fit into the "
            "latency of four networks; 5,000 images of SVHN as strange ones; three seeds.",
            list_cells("cpu"),
            ("cifar10", "svhn"),
        ),
        "paper": Scale(
            "The VGG-like networks of table-2, and nine more with dropout.", list_cells("paper"), ("cifar10", "svhn")
        ),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns={
        "method": "method",
        "draws": "draws",
        "latency": "latency, ×",
        "accuracy": "accuracy, %",
        "accuracy_margin": "±",
        "nll": "NLL",
        "calibrated_nll": "calibrated NLL",
        "worth": "worth, networks",
        "worth_low": "from",
        "worth_high": "to",
        "auroc": "AUROC, %",
        "auroc_margin": "±",
    },
    departures=[FAST_DEPARTURE],
)
