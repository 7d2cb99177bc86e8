"""What tables 1, 2 and 3 share: methods at equal effort on clean and corrupted images.

Every row has the same number of trials, and the settings of its best one (tuning.py). Two rows are not in the paper: the
deterministic network trained for as many gradients as MIMO, whose batches repeat rows, and the deterministic network with a
temperature that validation rows chose.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data.corruptions import SEVERITIES, STANDARD
from ...file_formats.schema import NotNegative, Share
from ...metrics.calibration import fit_temperature
from ...runs.config import build_config, build_spec
from ...runs.evaluation import measure_cost
from ...runs.loading import build_network
from ..classification_scores import Blocks, Scores, compare_cells, measure_corrupted, measure_scores, predict_rows
from ..recipe import Found, Json, Workspace
from ..trained_runs import Trained, train_once
from ..tuned_settings import choose_settings
from ..verdicts import Verdict, format_percent, judge_claim
from .configurations import require_regime

DETERMINISTIC, DROPOUT, MULTIHEAD, MIMO = "deterministic", "dropout", "naive multihead", "MIMO"
TREENET, BATCH_ENSEMBLE, THIN, ENSEMBLE = "TreeNet", "BatchEnsemble", "thin ensemble", "ensemble"
LONGER, SCALED = "deterministic, as many gradients as MIMO", "deterministic, temperature fitted"
TRIALS = {"smoke": 1, "cpu": 3, "paper": 1}
CORRUPTED: dict[str, Json] = {
    "smoke": {"count": 20, "kinds": 2},
    "cpu": {"count": 500},
    "paper": {"count": 10_000},
}
"""How many test rows are corrupted, and in how many ways, if not in all."""


class Measured(Scores):
    """Scores on clean and corrupted images, cost as ratios to the deterministic network, and what was chosen."""

    cacc: Share
    cnll: NotNegative
    cece: Share
    cnll_blocks: Blocks
    cerror_blocks: Blocks
    latency: NotNegative
    flops: NotNegative
    chosen: str
    epochs: NotNegative


def measure(options: Json, workspace: Workspace) -> Json:
    """Choose the settings of a row, train it, and measure it.

    Options: `training`, the settings of the row; `trials`; `base`, those of the deterministic network; `tuned_as`, the settings
    whose trials decide in place of its own; `as_long_as`, those of MIMO, whose repeated batches the row's epochs make up for;
    `scaled`, whether a temperature is fitted; `corrupted`, how many rows are corrupted.
    """
    count, asked = options["trials"], options["training"]
    tuned = options.get("tuned_as")
    settings = choose_settings(asked, count, workspace) if tuned is None else adopt(asked, tuned, count, workspace)
    epochs = build_config({name: value for name, value in settings.items() if name != "l1"}).most_epochs
    if options.get("as_long_as"):
        method = choose_settings(options["as_long_as"], count, workspace)["method"]
        epochs *= getattr(build_spec(method), "batch_repetition", 1)
        settings = settings | {"epochs": epochs}
    trained = train_once(settings | {"seed": options["seed"]}, workspace)
    temperature = find_temperature(trained) if options.get("scaled") else None
    workspace.report("corruptions")
    return (
        measure_scores(trained, temperature)
        | measure_corrupted(trained, **options["corrupted"], temperature=temperature)
        | measure_costs(trained, options["base"])
        | {"chosen": describe_choice(settings, asked), "epochs": epochs}
    )


def adopt(settings: Json, tuned: Json, count: int, workspace: Workspace) -> Json:
    """The settings of an ensemble of whole networks, with what was chosen for one of them."""
    best = choose_settings(tuned, count, workspace)
    changes = {name: value for name, value in best.items() if value != tuned.get(name) and name != "method"}
    if best["method"] != tuned["method"] and settings["method"]["name"] == "deep-ensemble":
        return settings | changes | {"method": settings["method"] | {"of": best["method"]}}
    return settings | changes | ({"method": best["method"]} if settings["method"] == tuned["method"] else {})


def find_temperature(trained: Trained) -> float:
    _, rows = trained.split()
    return fit_temperature(predict_rows(trained, rows.x), rows.y)


def measure_costs(trained: Trained, base: Json) -> Json:
    """Latency and FLOPs of what is deployed, as ratios to the deterministic network."""
    data = trained.data
    network = build_network(build_config(base), data.shape, data.outputs)
    found = measure_cost(trained.ensemble, network, data, data.test)
    return {"latency": found["latency"]["value"], "flops": found["deployed_flops"]}


def describe_choice(settings: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """What was changed by the choice, for the table.

    >>> describe_choice({"method": {"name": "mimo", "members": 2}, "lr": 0.1}, {"method": {"name": "mimo"}, "lr": 0.05})
    'members 2, lr 0.1'
    """
    before, after = asked["method"], settings["method"]
    options = {name: value for name, value in after.items() if before.get(name) != value}
    others = {name: value for name, value in settings.items() if name != "method" and asked.get(name) != value}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in (options | others).items()) or "defaults"


# --- rows -------------------------------------------------------------------------------------------------------------


def collect(found: Found, row: str) -> list[Json]:
    """The cells of a row, by seed."""
    return [cell for name, cell in found.items() if name.rpartition(", seed")[0] == row]


def list_rows(found: Found) -> list[str]:
    return list(dict.fromkeys(name.rpartition(", seed")[0] for name in found))


def average(found: Found, row: str, key: str) -> float:
    return float(np.mean([cell[key] for cell in collect(found, row)]))


COLUMNS = {
    "method": "method",
    "accuracy": "accuracy, %",
    "nll": "NLL",
    "ece": "ECE",
    "cacc": "cAcc, %",
    "cnll": "cNLL",
    "cece": "cECE",
    "calibrated": "calibrated NLL",
    "latency": "latency, ×",
    "flops": "forward passes",
}
SCORES = ("accuracy", "nll", "ece", "cacc", "cnll", "cece", "latency", "flops")


def tabulate(found: Found) -> list[Json]:
    shares = {"accuracy": 100, "cacc": 100}
    return [
        {"method": row, "calibrated": average(found, row, "calibrated_nll")}
        | {key: shares.get(key, 1) * average(found, row, key) for key in SCORES}
        for row in list_rows(found)
    ]


def describe_choices(found: Found) -> str:
    """What was chosen for every row, in one sentence."""
    return "; ".join(f"{row}: {collect(found, row)[0]['chosen']}" for row in list_rows(found))


def list_published(*rows: tuple[Any, ...]) -> list[Json]:
    """The paper's rows: name, accuracy, NLL, ECE, cAcc, cNLL, cECE, milliseconds (as a ratio to the first), passes."""
    first = rows[0][7]
    return [dict(zip(("method", *SCORES), (*row[:7], row[7] / first, float(row[8])), strict=True)) for row in rows]


# --- claims -----------------------------------------------------------------------------------------------------------


def judge_single_pass(found: Found, rivals: tuple[str, ...]) -> list[Verdict]:
    """Whether MIMO is better than the other methods with one forward pass, on clean and on corrupted images."""
    verdicts = []
    for where, key in (("", "nll_blocks"), ("on corrupted images, ", "cnll_blocks")):
        gains = {row: compare_cells(collect(found, MIMO), collect(found, row), key) for row in rivals}
        verdicts.append(
            judge_claim(
                f"MIMO outperforms the other methods with a single forward pass{' on corrupted images' if where else ''}.",
                f"{where}MIMO's NLL is below that of {', '.join(rivals)} beyond the interval; direction: below each",
                "NLL of MIMO against " + ", ".join(f"{row} {gain}" for row, gain in gains.items()),
                all(gain.high < 0 for gain in gains.values()),
                all(gain.value < 0 for gain in gains.values()),
            )
        )
    return verdicts


def judge_ensemble(found: Found) -> Verdict:
    base, ours, best = (average(found, row, "nll") for row in (DETERMINISTIC, MIMO, ENSEMBLE))
    gain = compare_cells(collect(found, MIMO), collect(found, DETERMINISTIC))
    share = (base - ours) / (base - best) if base > best else 0.0
    return judge_claim(
        "It approaches the robustness of a deep ensemble (0.80 of its gain in NLL).",
        "MIMO has at least half of the ensemble's gain in NLL over the deterministic network, and its own gain is beyond the "
        "interval; direction: it has a gain",
        f"{share:.2f} of the gain of {base - best:.4f}; MIMO against the deterministic network {gain}",
        base > best and share >= 0.5 and gain.high < 0,
        base > best and share > 0,
    )


def judge_cost(found: Found) -> Verdict:
    latency, flops = average(found, MIMO, "latency"), average(found, MIMO, "flops")
    return judge_claim(
        "It costs one forward pass.",
        "the folded network has at most 1.05 times the latency and the FLOPs of the deterministic one; direction: at most 1.1 "
        "times",
        f"{latency:.3f} times the latency, {flops:.3f} times the FLOPs",
        max(latency, flops) <= 1.05,
        max(latency, flops) <= 1.1,
    )


def judge_controls(found: Found) -> list[Verdict]:
    """MIMO against the two rows that the paper lacks."""
    verdicts = []
    for row, text in (
        (LONGER, "a deterministic network with as many gradients"),
        (SCALED, "a deterministic network with a fitted temperature"),
    ):
        gain = compare_cells(collect(found, MIMO), collect(found, row))
        verdicts.append(
            judge_claim(
                f"Not in the paper: MIMO is better than {text}.",
                "NLL below beyond the interval; direction: below",
                f"NLL {gain}",
                gain.high < 0,
                gain.value < 0,
            )
        )
    return verdicts


def judge(found: Found) -> list[Verdict]:
    """The verdicts of tables 1 and 2."""
    calibration = {row: average(found, row, "ece") for row in (DETERMINISTIC, DROPOUT, MULTIHEAD, MIMO)}
    others = min(value for row, value in calibration.items() if row != MIMO)
    regime = require_regime(average(found, DETERMINISTIC, "accuracy"))
    verdicts = [
        *judge_single_pass(found, (DETERMINISTIC, DROPOUT, MULTIHEAD)),
        judge_claim(
            "Its calibration error is less than half of that of the other methods with a single forward pass.",
            "ECE at most half of the lowest of deterministic, dropout and naive multihead; direction: lower",
            ", ".join(f"{row} {format_percent(value, 1)}" for row, value in calibration.items()),
            calibration[MIMO] <= others / 2,
            calibration[MIMO] < others,
        ),
        judge_ensemble(found),
    ]
    return [*(regime.excuse(verdict) for verdict in verdicts), judge_cost(found), *judge_controls(found)]


CORRUPTIONS = f"{len(STANDARD)} corruptions at {len(SEVERITIES)} severities"
