"""Do the rules of `pluribus.calibrate` keep their promises on real data, for every method, and what is left under shift?

    python results/coverage.py                 trains what is missing (about half an hour of two cores), and writes the results

trains every method on four UCI regressions (the first ten standard splits) and on the digits (ten splits of their 1,797 rows),
holds 20 % of the training rows out, fits the rules on them, and counts on the test rows what they promised:

    regressions   the share of targets in intervals of 80, 90 and 95 %
    digits        the share of true classes in sets of 80, 90 and 95 % (LAC, empty sets allowed: others hold more than asked),
                  the share of wrong answers at a risk of 5 %, the share of false alarms at 5 %;
                  and the coverage of sets of 90 % on digits with noise added

The rule, which is older than the results. A cell is a data set, a method and a level; its share is that over the test rows of
all splits. With n held-out rows the expected share is k / (n + 1), and its variance over T test rows of a split

    p (1 − p) (1 / T + 1 / (n + 2))

the second term because all rows of a split share a threshold. Splits are taken as independent, although they share rows. A cell
holds if its share is within two standard deviations of what is expected. The promise of coverage, and that of false alarms, is
kept if at least nine of ten cells hold, and none is more than four standard deviations on the wrong side. The promise of the
risk is kept if it is exceeded in at most as many runs as 90 % of the binomial distribution with δ = 0.1 allow.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch

import pluribus
from pluribus.core.files import write_file
from pluribus.core.predictive import Predictive
from pluribus.core.seeds import set_seed
from pluribus.core.spec import Spec
from pluribus.data.dataset import Part
from pluribus.decisions.abstention import compute_binomial_cdf
from pluribus.decisions.classification import fit_classification_rules
from pluribus.decisions.conformal import build_sets, find_threshold, score_truth
from pluribus.decisions.intervals import fit_regression_rules
from pluribus.experiments import Job, run_jobs
from pluribus.models import build
from pluribus.reports.svg import MUTED, draw_svg, line_style, style_axes

HERE = Path(__file__).parent
WORK = HERE.parent / "runs" / "coverage"
SETS = ("uci-concrete", "uci-energy", "uci-yacht", "uci-wine", "digits")
SPLITS = range(10)
LEVELS = (0.8, 0.9, 0.95)
RISK, FALSE_ALARMS, DELTA = 0.05, 0.05, 0.1
NOISES = (0.0, 0.1, 0.2, 0.3, 0.4)
"""Standard deviations of the noise that is added to digits, whose pixels are from 0 to 1."""
ENOUGH, FARTHEST = 0.9, 4.0
Json = dict[str, Any]


def split_digits(split: int) -> tuple[Part, Part, Any]:
    """Other training and test rows of the digits for every split, and how they are prepared."""
    data = pluribus.data.load("digits")
    x, y = torch.cat([data.train.x, data.test.x]), torch.cat([data.train.y, data.test.y])
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(split))
    return Part(x[order[:1300]], y[order[:1300]]), Part(x[order[1300:]], y[order[1300:]]), data.preparation


def measure_run(folder: str, name: str, method: str, split: int, threads: int = 1) -> None:
    """Train one run, fit its rules, and write what they do on the test rows."""
    torch.set_num_threads(threads)
    if name == "digits":
        train, test, preparation = split_digits(split)
        outputs, model, options = 10, {"name": "mlp", "hidden": (64,)}, {"task": "classification"}
    else:
        data = pluribus.data.load(name, split=split)
        train, test, preparation = data.train, data.test, data.preparation
        outputs, model, options = 1, {"name": "mlp", "hidden": (50,)}, {"task": "regression"}
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(split))
    held_out, rows = train.take_rows(order[: len(train) // 5]), train.take_rows(order[len(train) // 5 :])
    set_seed(split)
    example = preparation(train.x[:2]).float()
    net = build(model["name"], tuple(example.shape[1:]), outputs, hidden=model["hidden"])
    ensemble = pluribus.ensemble(net, Spec.registry[method](), example=example, **options)
    pluribus.fit(ensemble, rows, preparation=preparation, epochs=60, batch_size=32, lr=3e-3, seed=split, progress=False)
    answer = lambda part: ensemble.predict(preparation(part.x).float())  # noqa: E731
    if options["task"] == "regression":
        found = measure_intervals(answer(held_out), answer(test), held_out, test, preparation)
    else:
        found = measure_sets(ensemble, answer(held_out), held_out, test, preparation, split)
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_file(Path(folder) / "found.json", json.dumps(found | {"test": len(test)}).encode())


def measure_intervals(own: Predictive, new: Predictive, held_out: Part, test: Part, preparation: Any) -> Json:
    """The share of targets in intervals, by level; `rows` is the number of rows that fitted them."""
    rules = fit_regression_rules(own, preparation.scale_targets(held_out.y))
    targets = preparation.scale_targets(test.y)
    covered = {str(level): rules.decide(new, level).hold(targets).double().mean().item() for level in LEVELS}
    return {"rows": len(rules.scores), "coverage": covered}


def measure_sets(ensemble: Any, own: Predictive, held_out: Part, test: Part, preparation: Any, seed: int) -> Json:
    """The share of true classes in sets, by level and by noise, and the risk and the false alarms on the test rows."""
    clean = preparation(test.x).float()
    scores = score_truth(own.probs, held_out.y, "lac")
    threshold = {level: find_threshold(scores, level) for level in LEVELS}

    def cover(p: Predictive, level: float) -> float:
        sets = build_sets(p.probs, threshold[level], "lac", allow_empty=True)
        return sets.gather(1, test.y.view(-1, 1)).double().mean().item()

    p = ensemble.predict(clean)
    rules = fit_classification_rules(own, held_out.y, risk=RISK, false_alarms=FALSE_ALARMS, delta=DELTA)
    decided = rules.decide(p)
    answered = decided.is_answered
    wrong = (decided.labels != test.y)[answered].double()
    generator = torch.Generator().manual_seed(seed)
    unit = 1 / torch.tensor(preparation.std).view(1, -1, 1, 1)  # pixels from 0 to 1, as the network sees them
    noisy = {
        str(noise): cover(ensemble.predict(clean + noise * unit * torch.randn(clean.shape, generator=generator)), 0.9)
        for noise in NOISES
    }
    return {
        "rows": len(held_out),
        "coverage": {str(level): cover(p, level) for level in LEVELS},
        "noisy": noisy,
        "risk": wrong.mean().item() if len(wrong) else 0.0,
        "answered": answered.double().mean().item(),
        "false_alarms": decided.is_foreign.double().mean().item(),
    }


def judge_cell(runs: list[Json], level: float, shares: list[float]) -> Json:
    """Expected and found share of a cell, and how many standard deviations lie between them."""
    expected, variance = 0.0, 0.0
    for run in runs:
        p = min(math.ceil((run["rows"] + 1) * level - 1e-9) / (run["rows"] + 1), 1.0)
        expected += p / len(runs)
        variance += p * (1 - p) * (1 / run["test"] + 1 / (run["rows"] + 2)) / len(runs) ** 2
    found = sum(shares) / len(shares)
    off = (found - expected) / math.sqrt(variance) if variance else 0.0
    return {"expected": expected, "found": found, "deviations": off, "holds": abs(off) <= 2}


def judge_promise(cells: list[Json], wrong_side: int) -> Json:
    """Whether a promise is kept; `wrong_side` is −1 where too small a share breaks it, and 1 where too large a share does."""
    holding = sum(cell["holds"] for cell in cells) / len(cells)
    farthest = max(wrong_side * cell["deviations"] for cell in cells)
    kept = holding >= ENOUGH and farthest <= FARTHEST
    return {"cells": len(cells), "holding": holding, "farthest": farthest, "kept": kept}


def judge_risk(exceeded: int, runs: int) -> Json:
    """Whether the risk was exceeded no more often than δ allows."""
    return {"runs": runs, "exceeded": exceeded, "kept": exceeded == 0 or compute_binomial_cdf(exceeded - 1, runs, DELTA) <= 0.9}


def draw_coverage(figure: Any, under_noise: dict[str, dict[str, float]]) -> None:
    """The share of true classes in sets of 90 %, by the noise that was added to the digits, a line for each method."""
    figure.set_size_inches(7, 4)
    axes = figure.subplots()
    for place, (method, shares) in enumerate(under_noise.items()):
        axes.plot(
            [float(noise) for noise in shares], [100 * share for share in shares.values()], label=method, **line_style(place)
        )
    axes.axhline(90, color=MUTED, linewidth=1)
    axes.set(xlabel="standard deviation of the noise (pixels are from 0 to 1)", ylabel="true classes in sets of 90 %, %")
    style_axes(axes)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)


def main() -> None:
    methods = sorted(Spec.registry)
    cells = [(name, method, split) for name in SETS for method in methods for split in SPLITS]
    jobs = [
        Job(
            "-".join(map(str, cell)),
            WORK / "-".join(map(str, cell)),
            measure_run,
            (str(WORK / "-".join(map(str, cell))), *cell),
        )
        for cell in cells
    ]
    unfinished = run_jobs(jobs, "2", is_finished=lambda job: (job.folder / "found.json").is_file())
    if unfinished:
        sys.exit(f"not finished: {unfinished}")
    found = {job.name: json.loads((job.folder / "found.json").read_text()) for job in jobs}
    coverage: Json = {}
    for name in SETS:
        for method in methods:
            runs = [found[f"{name}-{method}-{split}"] for split in SPLITS]
            for level in LEVELS:
                shares = [run["coverage"][str(level)] for run in runs]
                coverage[f"{name}, {method}, {level:.0%}"] = judge_cell(runs, level, shares)
    digits = {method: [found[f"digits-{method}-{split}"] for split in SPLITS] for method in methods}
    alarms = {
        method: judge_cell(runs, 1 - FALSE_ALARMS, [1 - run["false_alarms"] for run in runs]) for method, runs in digits.items()
    }
    exceeded = sum(run["risk"] > RISK for runs in digits.values() for run in runs)
    mean = lambda runs, key: sum(run[key] for run in runs) / len(runs)  # noqa: E731
    content: Json = {
        "command": "python results/coverage.py",
        "splits": len(SPLITS),
        "coverage": coverage,
        "false_alarms": alarms,
        "answered": {method: mean(runs, "answered") for method, runs in digits.items()},
        "risk": {method: mean(runs, "risk") for method, runs in digits.items()},
        "under_noise": {
            method: {noise: sum(run["noisy"][noise] for run in runs) / len(runs) for noise in map(str, NOISES)}
            for method, runs in digits.items()
        },
        "verdicts": {
            "coverage": judge_promise(list(coverage.values()), -1),
            "false alarms": judge_promise(list(alarms.values()), -1),
            "risk": judge_risk(exceeded, len(SPLITS) * len(methods)),
        },
    }
    write_file(HERE / "ablations" / "coverage.json", (json.dumps(content, indent=1) + "\n").encode())
    picture = draw_svg(lambda figure: draw_coverage(figure, content["under_noise"]))
    write_file(HERE / "ablations" / "coverage.svg", picture)
    print(json.dumps(content["verdicts"], indent=1))


if __name__ == "__main__":
    main()
