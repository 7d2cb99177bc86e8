"""From judged runs to the results of a comparison: every number with its spread over seeds, and what differences are worth.

Runs with the same seed are judged by the same rows, so methods are compared in pairs: a draw of the bootstrap takes seeds and
rows, the same ones for all methods, and

    gain = NLL(single) − NLL(method),     share = gain / gain of the deep ensemble

are computed in every draw. Resampling few seeds understates their spread; with one seed an interval is over rows alone.
"""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.saving import read_tensors
from ..metrics.intervals import Interval
from .folder import Run
from .shift import mce

DRAWS, AT_ONCE = 1000, 100
BASE, BEST = "single", "deep-ensemble"
Json = dict[str, Any]


def number(values: list[float], interval: tuple[float, float] | None = None) -> Json:
    """The mean over seeds, its spread, and each one's own.

    >>> number([1.0, 3.0])
    {'mean': 2.0, 'std': 1.4142135623730951, 'seeds': [1.0, 3.0]}
    """
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else 0.0
    found = {"mean": mean, "std": spread, "seeds": values}
    return found | ({"low": interval[0], "high": interval[1]} if interval else {})


def numbers(each: list[dict[str, float]]) -> Json:
    return {name: number([one[name] for one in each]) for name in each[0]}


def combined(judged: dict[int, Json], base: dict[int, Json]) -> Json:
    """One method from the judgements of its seeds; `base` has those of the single network."""
    each = list(judged.values())
    tempered = [one["tempered"] for one in each]
    found = {
        "members": each[0]["members"],
        "scores": numbers([one["scores"] for one in each]),
        "member_scores": numbers([one["member_scores"] for one in each]),
        "diversity": numbers([one["diversity"] for one in each]),
        "tempered": numbers(tempered) if all(tempered) else None,
        "reliability": pooled([one["reliability"] for one in each]) if "reliability" in each[0] else None,
        "risk_coverage": averaged([one["risk_coverage"] for one in each]) if "risk_coverage" in each[0] else None,
        "shift": shifted(judged, base) if each[0].get("shift") else None,
        "ood": {},
        "attack": attacks([one["attack"] for one in each]) if each[0].get("attack") else None,
        "unsure": each[0].get("unsure", []),
    }
    for other in each[0].get("ood", {}):
        sets = [one["ood"][other] for one in each]
        found["ood"][other] = {kind: numbers([one[kind] for one in sets]) for kind in ("auroc", "fpr95")}
    return found


def pooled(each: list[Json]) -> Json:
    """Reliability over the rows of all seeds together."""
    count = [sum(counts) for counts in zip(*(one["count"] for one in each), strict=True)]
    result: Json = {"count": count}
    for name in ("confidence", "accuracy"):
        sums = [sum((one[name][place] or 0.0) * one["count"][place] for one in each) for place in range(len(count))]
        result[name] = [total / n if n else None for total, n in zip(sums, count, strict=True)]
    return result


def averaged(each: list[Json]) -> Json:
    return {name: [sum(values) / len(values) for values in zip(*(one[name] for one in each), strict=True)] for name in each[0]}


def shifted(judged: dict[int, Json], base: dict[int, Json]) -> Json:
    each = [one["shift"] for one in judged.values()]
    found: Json = {name: number([one[name] for one in each]) for name in ("cacc", "cnll", "cece")}
    paired = [mce(one["shift"], base[seed]["shift"]) for seed, one in judged.items() if seed in base]
    if paired:
        found["mce"] = number(paired)
    kinds = each[0]["kinds"]
    found["severities"] = {
        name: [mean([one["clean"][name] for one in each])]
        + [mean([one["kinds"][kind][name][level] for one in each for kind in kinds]) for level in range(5)]
        for name in ("accuracy", "nll", "ece")
    }
    found["kinds"] = {kind: number([mean(one["kinds"][kind]["accuracy"]) for one in each]) for kind in kinds}
    return found


def attacks(each: list[Json]) -> Json:
    def curves(some: list[Json]) -> Json:
        lines = averaged([{name: one[name] for name in ("success", "entropy")} for one in some])
        return lines | {"final": number([one["final"] for one in some])}

    single = [one["one_sample"] for one in each]
    return {"title": each[0]["title"]} | curves(each) | {"one_sample": curves(single) if all(single) else None}


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# --- differences ------------------------------------------------------------------------------------------------------


class Draws:
    """The mean of a column of every method's rows in each draw of seeds and rows: `[draws]`."""

    def __init__(self, rows: dict[str, dict[int, Tensor]], draws: int = DRAWS) -> None:
        seeds = sorted(set.intersection(*(set(each) for each in rows.values())))
        self.seeds = len(seeds)
        generator = torch.Generator().manual_seed(0)
        size = len(next(iter(rows.values()))[seeds[0]])
        stacked = torch.stack([torch.stack([each[seed] for seed in seeds]) for each in rows.values()]).double()  # [m, S, N]
        parts = []
        for start in range(0, draws, AT_ONCE):
            some = min(AT_ONCE, draws - start)
            picks = torch.randint(size, (some, size), generator=generator)
            weights = torch.stack([torch.bincount(pick, minlength=size) for pick in picks]).double()
            means = torch.einsum("msn,dn->dms", stacked, weights) / size
            which = torch.randint(len(seeds), (some, 1, len(seeds)), generator=generator).expand(-1, len(rows), -1)
            parts.append(means.gather(2, which).mean(2))
        drawn = torch.cat(parts)
        self.values = dict(zip(rows, stacked.mean((1, 2)).tolist(), strict=True))
        self.drawn = {name: drawn[:, place] for place, name in enumerate(rows)}

    def interval(self, name: str) -> Interval:
        return Interval(self.values[name], *edges(self.drawn[name]))

    def less(self, name: str, other: str) -> Interval:
        """By how much lower it is than that of the other."""
        return Interval(self.values[other] - self.values[name], *edges(self.drawn[other] - self.drawn[name]))

    def share(self, name: str, base: str, best: str) -> Interval | None:
        """Of the best one's gain over the base; None where that gain is not beyond the noise."""
        whole = self.less(best, base)
        if whole.low <= 0:
            return None
        drawn = (self.drawn[base] - self.drawn[name]) / (self.drawn[base] - self.drawn[best])
        return Interval((self.values[base] - self.values[name]) / whole.value, *edges(drawn))


def edges(drawn: Tensor) -> tuple[float, float]:
    low, high = drawn.quantile(torch.tensor([0.025, 0.975], dtype=torch.double)).tolist()
    return low, high


def rows_of(path: Path) -> dict[str, Tensor]:
    return read_tensors(Run(path).path / "rows.safetensors")[1]
