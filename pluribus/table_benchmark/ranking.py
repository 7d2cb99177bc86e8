"""The rule: ranks of contenders, their intervals, and which leads are beyond the noise. It is older than any recorded result.

A contender is ranked if it has finished every split of every table. On one split the smallest score has rank 1, and equal ones
share the mean of their ranks. Ranks are averaged over the splits of a table, and then over tables, which count alike.

The splits of a table share most of their training rows, so that scores of J splits vary less than those of J independent
samples. Nadeau and Bengio ("Inference for the Generalization Error", 2003) correct for this: with a test rows for each training
row, the variance of a mean over J splits is

    (1/J + a) s²    rather than    s²/J

An *interval* of a mean rank holds 95 % of 2,000 bootstrap draws; each takes max(1, round(1 / (1/J + a))) splits of every table
with replacement, the same ones for all contenders. So a draw varies as much as the correction says.

A *leads* B on a table, beyond the noise, if d/se exceeds the 97.5 % quantile of Student's t with J − 1 degrees of freedom; d is
the mean over splits of the difference of scores, B's less A's, and se² = (1/J + a) s². Over all tables the same is asked of the
mean of d over B's mean score (of NLL, which has no zero, of d alone), with se² the sum of the tables' over their squared
number, and the sum of their degrees of freedom.

A contender *leads beyond the noise* if, over all tables, it leads every other one in this sense at the level 0.05 divided by
the number of the others (Bonferroni): then all these leads hold together with 95 %. If there is none, nobody leads.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LEVEL, DRAWS = 0.05, 2000
RANKED = ("rmse", "crps", "nll")
"""Scores by which contenders are ranked, all of them better if smaller."""
Scores = Mapping[str, Mapping[str, Sequence[float]]]
"""table → contender → the score on each split"""


def rank_scores(scores: Sequence[float]) -> list[float]:
    """Ranks from 1, smallest first; equal scores share the mean of their ranks, and NaN is worse than any number.

    >>> rank_scores([0.3, 0.1, 0.3, float("nan")])
    [2.5, 1.0, 2.5, 4.0]
    """
    values = [math.inf if math.isnan(score) else score for score in scores]
    return [1 + sum(other < own for other in values) + (values.count(own) - 1) / 2 for own in values]


def count_independent_splits(splits: int, test_share: float) -> int:
    """How many independent splits are worth as much as these; `test_share` is the number of test rows for each training row.

    >>> count_independent_splits(10, 1 / 9)
    5
    """
    return max(1, round(1 / (1 / splits + test_share)))


def rank_contenders(scores: Scores, test_shares: Mapping[str, float], seed: int = 0) -> dict[str, dict[str, Any]]:
    """The mean rank of every contender with its interval, and its mean rank on each table.

    Args: the scores, of the same contenders on every table; of each table the number of test rows for each training row.
    """
    names = list(next(iter(scores.values())))
    ranks = {}  # table → [splits, contenders]
    for table, found in scores.items():
        ranks[table] = np.array([rank_scores(each) for each in zip(*(found[name] for name in names), strict=True)])
    generator = np.random.default_rng(seed)
    draws = np.zeros((DRAWS, len(names)))
    for table, each in ranks.items():
        count = count_independent_splits(len(each), test_shares[table])
        chosen = generator.integers(len(each), size=(DRAWS, count))
        draws += each[chosen].mean(1) / len(ranks)
    low, high = np.quantile(draws, [LEVEL / 2, 1 - LEVEL / 2], axis=0)
    middle = np.mean([each.mean(0) for each in ranks.values()], axis=0)
    return {
        name: {
            "rank": float(middle[place]),
            "low": float(low[place]),
            "high": float(high[place]),
            "tables": {table: float(each.mean(0)[place]) for table, each in ranks.items()},
        }
        for place, name in enumerate(names)
    }


def compare_pair(own: Sequence[float], other: Sequence[float], test_share: float, relative: bool) -> tuple[float, float, int]:
    """The lead of the first over the second on one table, its standard error, and its degrees of freedom.

    A `relative` lead is a share of the other's mean score.

    >>> lead, error, freedom = compare_pair([1.0, 1.0], [2.0, 4.0], test_share=0.5, relative=False)
    >>> lead, round(error, 4), freedom  # s² = 2, times 1/2 + 1/2
    (2.0, 1.4142, 1)
    """
    differences = np.subtract(other, own)
    scale = float(np.mean(other)) if relative else 1.0
    if len(differences) < 2:
        return float(differences.mean()) / scale, math.inf, 0
    error = math.sqrt((1 / len(differences) + test_share) * float(differences.var(ddof=1)))
    return float(differences.mean()) / scale, error / scale, len(differences) - 1


def is_beyond_noise(lead: float, error: float, freedom: int, level: float) -> bool:
    """Whether a lead exceeds what noise makes of no difference in `level` of all cases, half of them in each direction."""
    from scipy.stats import t

    if freedom < 1 or not math.isfinite(lead) or not math.isfinite(error):
        return False
    return lead > 0 and lead > float(t.ppf(1 - level / 2, freedom)) * error


def compare_over_tables(
    own: str, other: str, scores: Scores, test_shares: Mapping[str, float], relative: bool
) -> tuple[float, float, int]:
    """The mean lead over all tables, its standard error, and its degrees of freedom."""
    pairs = [compare_pair(found[own], found[other], test_shares[table], relative) for table, found in scores.items()]
    leads, errors, freedoms = zip(*pairs, strict=True)
    return sum(leads) / len(leads), math.sqrt(sum(error**2 for error in errors)) / len(errors), sum(freedoms)


def find_leads(scores: Scores, test_shares: Mapping[str, float], score: str) -> dict[str, Any]:
    """Who leads whom beyond the noise, on each table and over all, and the contender that leads all others.

    Returns: `tables`, table → contender → those that it leads there; `pairs`, contender → those that it leads over all tables;
    `leader`, or None.
    """
    names, relative = list(next(iter(scores.values()))), score != "nll"
    strict = LEVEL / max(1, len(names) - 1)
    tables: dict[str, dict[str, list[str]]] = {}
    for table, found in scores.items():
        tables[table] = {
            own: [
                other
                for other in names
                if other != own
                and is_beyond_noise(*compare_pair(found[own], found[other], test_shares[table], relative), LEVEL)
            ]
            for own in names
        }
    pairs: dict[str, list[str]] = {}
    leader = None
    for own in names:
        found_pairs = {other: compare_over_tables(own, other, scores, test_shares, relative) for other in names if other != own}
        pairs[own] = [other for other, pair in found_pairs.items() if is_beyond_noise(*pair, LEVEL)]
        if found_pairs and all(is_beyond_noise(*pair, strict) for pair in found_pairs.values()):
            leader = own
    return {"tables": tables, "pairs": pairs, "leader": leader}
