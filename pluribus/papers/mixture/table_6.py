"""mixture/table-6: diversity, the share of differing predictions over the error."""

from ..recipe import Found
from ..verdicts import Verdict, judge_claim
from .claims import average, build_table
from .rows import BASELINE, LARGE, MIMO, MIXTURE, NAIVE, OWN_NORM

ROWS = (BASELINE, NAIVE, MIXTURE, LARGE, OWN_NORM, MIMO)
PUBLISHED = [
    {"method": NAIVE, "share": 4.0, "accuracy": 82.7, "diversity": 0.88},
    {"method": MIXTURE, "share": 1.0, "accuracy": 82.1, "diversity": 0.78},
    {"method": LARGE, "share": 3.3, "accuracy": 82.9, "diversity": 0.85},
    {"method": OWN_NORM, "share": 1.0, "accuracy": 81.9, "diversity": 0.4},
    {"method": MIMO, "share": 1.0, "accuracy": 82.0, "diversity": 0.91},
]


def judge(found: Found) -> list[Verdict]:
    diversity = {row: average(found, row, "diversity") for row in ROWS[1:]}
    alone = {row: average(found, row, "member_accuracy") for row in (NAIVE, LARGE)}
    evidence = ", ".join(f"{row} {value:.2f}" for row, value in diversity.items())
    return [
        judge_claim(
            "Mixtures are more diverse than BatchEnsembles (0.78 against 0.40).",
            "at least 1.5 times as diverse; direction: more diverse",
            evidence,
            diversity[MIXTURE] >= 1.5 * diversity[OWN_NORM],
            diversity[MIXTURE] > diversity[OWN_NORM],
        ),
        judge_claim(
            "More parameters make members more diverse, but less than naive ones (0.78, 0.85, 0.88).",
            "mixture, 1× < mixture, 3.3× < naive ensemble; direction: mixture, 1× < mixture, 3.3×",
            evidence,
            diversity[MIXTURE] < diversity[LARGE] < diversity[NAIVE],
            diversity[MIXTURE] < diversity[LARGE],
        ),
        judge_claim(
            "A member of the large mixture is better than a naive one (80.36 % against 79.89 %).",
            "higher accuracy by at least 0.2 points; direction: higher",
            ", ".join(f"{row} {100 * value:.2f} %" for row, value in alone.items()),
            alone[LARGE] >= alone[NAIVE] + 0.002,
            alone[LARGE] > alone[NAIVE],
        ),
    ]


RECIPE = build_table(
    6,
    "Diversity",
    "Are members that share templates as diverse as independent ones?",
    ROWS,
    {"accuracy": "accuracy, %", "diversity": "diversity"},
    PUBLISHED,
    judge,
)
