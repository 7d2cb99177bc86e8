"""Statistics of a comparison: means and spreads over seeds, and intervals of paired differences.

Runs with the same seed are evaluated on the same rows, so methods are compared in pairs: each draw of the bootstrap takes the
same rows for all methods, and

    gain = NLL(baseline) − NLL(method),     share = gain / gain of the reference

are computed in every draw; the NLL that decides is the calibrated one. The baseline is the single network, the reference the
deep ensemble. With one seed an interval is over rows alone. An interval is for one comparison: among many methods, one is more
likely to exceed the noise by chance.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.errors import FileError
from ..core.files import restore_number
from ..core.tensor_files import read_described_tensors, read_tensors
from ..data.corruptions import STANDARD
from ..metrics.intervals import Interval, central_interval
from ..runs.evaluation import ROW_SCORES, ROWS_FORMAT, ROWS_KEY, SUB_ENSEMBLE_SCORES
from ..runs.robustness import mce
from ..runs.run_folder import Run

DRAWS, AT_ONCE = 2000, 100
Json = dict[str, Any]


def summarize_seeds(values: list[float] | list[float | None], interval: tuple[float, float] | None = None) -> Json:
    """The mean over seeds, the standard deviation, and the value of each seed. A seed without a finite value makes them NaN.

    >>> summarize_seeds([1.0, 3.0])
    {'mean': 2.0, 'std': 1.4142135623730951, 'seeds': [1.0, 3.0]}
    """
    numbers = [restore_number(value) for value in values]
    middle = mean(numbers)
    spread = math.sqrt(sum((v - middle) ** 2 for v in numbers) / (len(values) - 1)) if len(values) > 1 else None
    found = {"mean": middle, "std": spread, "seeds": numbers}
    return found | ({"low": interval[0], "high": interval[1]} if interval else {})


def summarize_scores(each: list[dict[str, float]]) -> Json:
    """`summarize_seeds` of every score."""
    return {name: summarize_seeds([one[name] for one in each]) for name in each[0]}


def combine_seeds(judged: dict[int, Json], base: dict[int, Json]) -> Json:
    """Combine the judgements of one method over its seeds; `base` has the judgements of the baseline."""
    each = list(judged.values())
    tempered = [one["tempered"] for one in each]
    found = {
        "members": each[0]["members"],
        "not_finite": sum(one.get("not_finite", 0) for one in each),
        "scores": summarize_scores([one["scores"] for one in each]),
        "member_scores": summarize_scores([one["member_scores"] for one in each]),
        "diversity": summarize_scores([one["diversity"] for one in each]),
        "tempered": summarize_scores(tempered) if all(tempered) else None,
        "reliability": pool_reliability([one["reliability"] for one in each]) if "reliability" in each[0] else None,
        "risk_coverage": average_curves([one["risk_coverage"] for one in each]) if "risk_coverage" in each[0] else None,
        "shift": combine_shift(judged, base) if each[0].get("shift") else None,
        "ood": {},
        "attack": combine_attacks([one["attack"] for one in each]) if each[0].get("attack") else None,
        "unsure": each[0].get("unsure", []),
    }
    if all(one.get("interval_calibration") for one in each):
        found["interval_calibration"] = average_curves([one["interval_calibration"] for one in each])
    if each[0].get("residuals"):
        found["residuals"] = each[0]["residuals"]
    for other in each[0].get("ood", {}):
        sets = [one["ood"][other] for one in each]
        found["ood"][other] = {kind: summarize_scores([one[kind] for one in sets]) for kind in ("auroc", "fpr95")}
    return found


def pool_reliability(each: list[Json]) -> Json:
    """Pool the reliability bins over the rows of all seeds; one without rows is None, one without a finite mean NaN."""
    count = [sum(counts) for counts in zip(*(one["count"] for one in each), strict=True)]
    result: Json = {"count": count}
    for name in ("confidence", "accuracy"):
        sums = [
            sum(restore_number(one[name][place]) * one["count"][place] for one in each if one["count"][place])
            for place in range(len(count))
        ]
        result[name] = [total / n if n else None for total, n in zip(sums, count, strict=True)]
    return result


def average_curves(each: list[Json]) -> Json:
    """The mean of curves over seeds, point by point."""
    return {name: [mean(list(values)) for values in zip(*(one[name] for one in each), strict=True)] for name in each[0]}


def combine_shift(judged: dict[int, Json], base: dict[int, Json]) -> Json:
    """The scores under corruption over seeds; the mCE is relative to the baseline with the same seed."""
    each = [one["shift"] for one in judged.values()]
    found: Json = {name: summarize_seeds([one[name] for one in each]) for name in ("cacc", "cnll", "cece")}
    paired = [mce(one["shift"], base[seed]["shift"]) for seed, one in judged.items() if seed in base]
    if paired:
        found["mce"] = summarize_seeds(paired)
    kinds = each[0]["kinds"]
    found["severities"] = {
        name: [mean([one["clean"][name] for one in each])]
        + [mean([one["kinds"][kind][name][level] for one in each for kind in STANDARD]) for level in range(5)]
        for name in ("accuracy", "nll", "ece")
    }
    found["kinds"] = {kind: summarize_seeds([mean(one["kinds"][kind]["accuracy"]) for one in each]) for kind in kinds}
    return found


def combine_attacks(each: list[Json]) -> Json:
    """The attack curves averaged over seeds."""

    def curves(some: list[Json]) -> Json:
        lines = average_curves([{name: one[name] for name in ("success", "entropy")} for one in some])
        return lines | {"final": summarize_seeds([one["final"] for one in some])}

    single = [one["one_sample"] for one in each]
    return {"title": each[0]["title"]} | curves(each) | {"one_sample": curves(single) if all(single) else None}


def mean(values: Sequence[float | None]) -> float:
    """The mean of numbers of a JSON record; NaN if one of them is not finite."""
    return sum(map(restore_number, values)) / len(values)


# --- differences ------------------------------------------------------------------------------------------------------


class PairedBootstrap:
    """A paired bootstrap of the mean of a row score: for every method its value in each of many draws, `[draws]`.

    With θ̂ the mean over S seeds and N rows, θ̂_s that of one seed, and for every draw

        z ~ N(0, 1)^S,   c ~ χ²(S − 1):
        θ = (mean over rows drawn with replacement) + √((S − 1) / c) · Σ_s z_s (θ̂_s − θ̂) / √(S (S − 1))

    The last term is Student's t of the mean over seeds. Rows, z and c are the same for all methods, so the draws of a
    difference of two methods vary with the rows and with the differences between seeds. With one seed there is no such term.
    """

    def __init__(self, rows: dict[str, dict[int, Tensor]], draws: int = DRAWS, shared: bool = True) -> None:
        """`rows[method][seed]` is `[N]`, with the same seeds for all. `shared`: all seeds are evaluated on the same rows."""
        seeds = list(next(iter(rows.values())))
        for seed in seeds:
            sizes = {name: len(each[seed]) for name, each in rows.items()}
            if len(set(sizes.values())) > 1:
                raise FileError(f"runs with the same seed must be judged by the same rows, seed {seed} has {sizes}")
        self.seeds = len(seeds)
        stacks = [torch.stack([each[seed] for each in rows.values()]).double() for seed in seeds]  # [methods, N] each
        generator = torch.Generator().manual_seed(0)
        by_seed = torch.stack([stack.mean(1) for stack in stacks], dim=1)  # [methods, S]
        centre = by_seed.mean(1)
        parts = []
        for start in range(0, draws, AT_ONCE):
            some, weights, means = min(AT_ONCE, draws - start), torch.zeros(0), []
            for place, stack in enumerate(stacks):
                if place == 0 or not shared:
                    weights = draw_row_counts(some, stack.shape[1], generator)
                means.append(weights @ stack.T / stack.shape[1])
            parts.append(torch.stack(means).mean(0))
        drawn = torch.cat(parts)  # [draws, methods]
        if self.seeds > 1:
            z = torch.randn(draws, self.seeds, generator=generator, dtype=torch.double)
            chi = torch.randn(draws, self.seeds - 1, generator=generator, dtype=torch.double).square().sum(1, keepdim=True)
            scale = ((self.seeds - 1) / chi).sqrt() / math.sqrt(self.seeds * (self.seeds - 1))
            drawn = drawn + scale * (z @ (by_seed - centre.unsqueeze(1)).T)
        self.values = dict(zip(rows, centre.tolist(), strict=True))
        self.drawn = {name: drawn[:, place] for place, name in enumerate(rows)}

    def interval(self, name: str) -> Interval:
        """The mean of a method and its 95 % interval."""
        return Interval(self.values[name], *central_interval(self.drawn[name]))

    def gain(self, name: str, other: str) -> Interval:
        """By how much the mean of `name` is lower than that of `other`."""
        return Interval(self.values[other] - self.values[name], *central_interval(self.drawn[other] - self.drawn[name]))

    def share(self, name: str, base: str, best: str) -> Interval | None:
        """The share of the best method's gain over the base; None if that gain is within the noise or the interval infinite."""
        whole = self.gain(best, base)
        if whole.low <= 0:
            return None
        gain, gains = self.drawn[base] - self.drawn[name], self.drawn[base] - self.drawn[best]
        # A draw without a gain to share counts as an infinite share, with the sign of the method's own gain.
        drawn = torch.where(gains > 0, gain / gains, gain.sign() * torch.inf)
        low, high = central_interval(drawn)
        if not math.isfinite(low + high):
            return None
        return Interval((self.values[base] - self.values[name]) / whole.value, low, high)


def draw_row_counts(draws: int, rows: int, generator: torch.Generator) -> Tensor:
    """How often each row is drawn in each draw, `[draws, rows]`."""
    picks = torch.randint(rows, (draws, rows), generator=generator)
    return torch.stack([torch.bincount(pick, minlength=rows) for pick in picks]).double()


def read_row_scores(path: Path) -> dict[str, Tensor]:
    """Read the scores of every test row, `[N]` each, of a judged run.

    Raises:
        FileError: the file is damaged, or its scores are not of the rows that the run was judged by.
    """
    run = Run(path)
    cure = f"delete {run.row_scores} and resume the comparison: it is computed again"
    try:
        metadata, table = read_tensors(run.row_scores)
        if metadata:  # an older version wrote none
            read_described_tensors(run.row_scores, ROWS_KEY, (ROWS_FORMAT,), "not of the scores of rows")
    except FileError as error:
        raise FileError(f"{error}; {cure}") from error
    rows = run.read_json("judgement.json")["rows"]
    for name, column in table.items():
        is_known = name in ROW_SCORES or SUB_ENSEMBLE_SCORES.fullmatch(name)
        if not is_known or column.dtype not in (torch.float, torch.double) or list(column.shape) != [rows]:
            what = f"{name}, {str(column.dtype).removeprefix('torch.')} of shape {list(column.shape)}"
            raise FileError(f"{run.row_scores} must hold one real number for each of {rows} rows, got {what}; {cure}")
    return table
