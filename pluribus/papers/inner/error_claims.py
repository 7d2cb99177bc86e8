"""Rules that the tables of errors share.

The difference of two rows is that of the same networks, seeds and blocks of test rows; its interval draws pairs of network and
seed, and blocks, anew.
"""

import re
from collections.abc import Sequence

import numpy as np

from ..classification_scores import Difference, compare_cells
from ..recipe import Found, Json
from ..verdicts import Precondition, Verdict, format_percent, judge_claim
from .rows import BASE

LEAST_ACCURACY, LEAST_DEPTH = 0.85, 56
SAME = 0.01
"""Rows have the same errors if the interval of their difference lies within so much of 0."""
CHANCE = 0.2
"""A network that is right on at most this share of the rows is near guessing, which is right on a tenth of CIFAR-10."""


def list_networks(found: Found) -> list[str]:
    return list(dict.fromkeys(name.partition(": ")[0] for name in found))


def collect(found: Found, row: str, network: str | None = None) -> list[Json]:
    """The cells of a row by network and seed; of one network, if it is named."""
    return [
        cell
        for name, cell in found.items()
        if name.partition(": ")[2].rpartition(", seed ")[0] == row and network in (None, name.partition(": ")[0])
    ]


def average(found: Found, row: str, key: str = "accuracy", network: str | None = None) -> float:
    return float(np.mean([cell[key] for cell in collect(found, row, network)]))


def compare_rows(found: Found, ours: str, theirs: str, network: str | None = None, key: str = "error_blocks") -> Difference:
    """The difference of errors over all networks, or of one."""
    return compare_cells(collect(found, ours, network), collect(found, theirs, network), key)


def describe_networks(found: Found, ours: str, theirs: str) -> str:
    """The difference of errors of each network, for the evidence."""
    return ", ".join(f"{network} {compare_rows(found, ours, theirs, network).value:+.4f}" for network in list_networks(found))


def require_regime(found: Found) -> Precondition:
    """The condition of the paper's regime: base networks that have nearly converged, with capacity to spare."""
    by_network = {network: average(found, BASE, network=network) for network in list_networks(found)}
    return Precondition(
        f"every base network is right on at least {format_percent(LEAST_ACCURACY, 0)} of the test rows (the paper's on "
        "91.6 % to 94.4 % of CIFAR-10)",
        "base networks are right on " + ", ".join(f"{format_percent(value, 1)} ({key})" for key, value in by_network.items()),
        min(by_network.values()) >= LEAST_ACCURACY,
    )


def require_depth(found: Found) -> Precondition:
    """The condition of table 5: networks as deep as the paper's."""
    depths = {network: int(match[0]) for network in list_networks(found) if (match := re.search(r"\d+", network))}
    return Precondition(
        f"every network has at least {LEAST_DEPTH} layers, as the paper's have",
        "ours have " + " and ".join(map(str, sorted(set(depths.values())))),
        min(depths.values()) >= LEAST_DEPTH,
    )


def judge_fewer(claim: str, found: Found, ours: str, others: Sequence[str]) -> Verdict:
    """Whether a row has fewer errors than each of some others beyond the interval, over all networks."""
    gains = {row: compare_rows(found, ours, row) for row in others}
    return judge_claim(
        claim,
        f"errors of {ours}, over all networks, below those of {' and '.join(others)} beyond the interval; direction: below",
        "; ".join(f"errors against {row} {gain}: {describe_networks(found, ours, row)}" for row, gain in gains.items()),
        all(gain.high < 0 for gain in gains.values()),
        all(gain.value < 0 for gain in gains.values()),
    )


def judge_same(claim: str, found: Found, ours: str, theirs: str) -> Verdict:
    """Whether two rows have the same errors, over all networks."""
    gain = compare_rows(found, ours, theirs)
    return judge_claim(
        claim,
        f"the interval of the difference of errors, over all networks, lies within ±{100 * SAME:g} point; direction: the "
        "difference does",
        f"errors of {ours} against {theirs} {gain}: {describe_networks(found, ours, theirs)}",
        -SAME <= gain.low <= gain.high <= SAME,
        abs(gain.value) <= SAME,
    )


def judge_chance(claim: str, found: Found, row: str, usual: str) -> Verdict:
    """Whether a row is near guessing in every network."""
    networks = list_networks(found)
    shares = {network: average(found, row, network=network) for network in networks}
    return judge_claim(
        claim,
        f"right on at most {format_percent(CHANCE, 0)} of the rows in every network; direction: at most half as often as "
        f"{usual}",
        f"{row} is right on " + ", ".join(f"{format_percent(value, 1)} ({network})" for network, value in shares.items()),
        all(value <= CHANCE for value in shares.values()),
        all(shares[network] <= average(found, usual, network=network) / 2 for network in networks),
    )


def tabulate(found: Found) -> list[Json]:
    """A row for each method, with the mean error of every network in percent."""
    rows = dict.fromkeys(name.partition(": ")[2].rpartition(", seed ")[0] for name in found)
    return [
        {"method": row}
        | {
            network: 100 * (1 - average(found, row, network=network))
            for network in list_networks(found)
            if collect(found, row, network)
        }
        for row in rows
    ]
