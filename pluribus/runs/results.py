"""From judged runs to the results of a comparison: every number with its spread over seeds, and what differences are worth.

Runs with the same seed are judged by the same rows, so methods are compared in pairs: whatever is drawn is drawn for all of
them, and

    gain = NLL(single) − NLL(method),     share = gain / gain of the deep ensemble

are computed in every draw. With one seed an interval is over rows alone. An interval is for one comparison: among many methods,
one is more likely to be beyond the noise by chance.
"""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.saving import read_tensors
from ..data.corruptions import STANDARD
from ..metrics.intervals import Interval, central_interval
from .folder import Run
from .shift import mce

DRAWS, AT_ONCE = 2000, 100
BASE, BEST = "single", "deep-ensemble"
Json = dict[str, Any]


def number(values: list[float], interval: tuple[float, float] | None = None) -> Json:
    """The mean over seeds, its spread, and each one's own.

    >>> number([1.0, 3.0])
    {'mean': 2.0, 'std': 1.4142135623730951, 'seeds': [1.0, 3.0]}
    """
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else None
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
        + [mean([one["kinds"][kind][name][level] for one in each for kind in STANDARD]) for level in range(5)]
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
    """The mean of a column of every method's rows, in each of many draws: `[draws]`.

    With θ̂ the mean over S seeds and N rows, θ̂_s that of one seed, and for every draw

        z ~ N(0, 1)^S,   c ~ χ²(S − 1):
        θ = (mean over rows drawn with replacement) + √((S − 1) / c) · Σ_s z_s (θ̂_s − θ̂) / √(S (S − 1))

    The last term is Student's t of the mean over seeds. Rows, z and c are the same for all methods, so the difference of two
    methods is drawn as it should be: by rows, plus the t of its own differences between seeds. One seed has no such term.
    """

    def __init__(self, rows: dict[str, dict[int, Tensor]], draws: int = DRAWS, shared: bool = True) -> None:
        """`rows[method][seed]` is `[N]`, of the same seeds for all. `shared`: all seeds are judged by the same rows."""
        seeds = list(next(iter(rows.values())))
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
                    weights = picked(some, stack.shape[1], generator)
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
        return Interval(self.values[name], *central_interval(self.drawn[name]))

    def less(self, name: str, other: str) -> Interval:
        """By how much lower it is than that of the other."""
        return Interval(self.values[other] - self.values[name], *central_interval(self.drawn[other] - self.drawn[name]))

    def share(self, name: str, base: str, best: str) -> Interval | None:
        """Of the best one's gain over the base; None where that gain is not beyond the noise, or the interval has no end."""
        whole = self.less(best, base)
        if whole.low <= 0:
            return None
        gain, gains = self.drawn[base] - self.drawn[name], self.drawn[base] - self.drawn[best]
        # Where a draw has no gain to share, whatever is gained is more than any share of it.
        drawn = torch.where(gains > 0, gain / gains, gain.sign() * torch.inf)
        low, high = central_interval(drawn)
        if not math.isfinite(low + high):
            return None
        return Interval((self.values[base] - self.values[name]) / whole.value, low, high)


def picked(draws: int, rows: int, generator: torch.Generator) -> Tensor:
    """How often each row is drawn: `[draws, rows]`."""
    picks = torch.randint(rows, (draws, rows), generator=generator)
    return torch.stack([torch.bincount(pick, minlength=rows) for pick in picks]).double()


def rows_of(path: Path) -> dict[str, Tensor]:
    return read_tensors(Run(path).path / "rows.safetensors")[1]
