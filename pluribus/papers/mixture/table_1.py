"""mixture/table-1: accuracy, NLL and ECE on CIFAR-10."""

from ..recipe import Found
from ..verdicts import Verdict
from .claims import build_table, judge_better, judge_match
from .rows import BASELINE, BATCH_ENSEMBLE, LARGE, MIMO, MIXTURE, NAIVE, OWN_NORM

ROWS = (BASELINE, BATCH_ENSEMBLE, OWN_NORM, MIMO, MIXTURE, LARGE, NAIVE)
PUBLISHED = [
    {"method": BASELINE, "share": 1.0, "accuracy": 96.0, "nll": 0.159, "ece": 2.3},
    {"method": BATCH_ENSEMBLE, "share": 1.0, "accuracy": 96.2, "nll": 0.143, "ece": 2.1},
    {"method": OWN_NORM, "share": 1.0, "accuracy": 96.2, "ece": 1.8},
    {"method": MIMO, "share": 1.0, "accuracy": 96.4, "nll": 0.123, "ece": 1.0},
    {"method": MIXTURE, "share": 1.0, "accuracy": 96.3, "nll": 0.120, "ece": 0.8},
    {"method": LARGE, "share": 3.3, "accuracy": 96.6, "nll": 0.119, "ece": 0.8},
    {"method": NAIVE, "share": 4.0, "accuracy": 96.6, "nll": 0.114, "ece": 1.0},
]


def judge(found: Found) -> list[Verdict]:
    rivals = (BATCH_ENSEMBLE, OWN_NORM)
    return [
        judge_better("At one network's parameters it outperforms BatchEnsemble.", found, MIXTURE, rivals, "nll_blocks", "NLL"),
        judge_better("At one network's parameters it beats the baseline.", found, MIXTURE, (BASELINE,), "nll_blocks", "NLL"),
        judge_match("It matches a naive ensemble with 17 % fewer parameters.", found, LARGE, NAIVE, "nll_blocks", "NLL"),
    ]


RECIPE = build_table(
    1,
    "CIFAR-10",
    "Is a mixture with the parameters of one network better than BatchEnsemble, and with 3.3 times as good as four networks?",
    ROWS,
    {"accuracy": "accuracy, %", "nll": "NLL", "ece": "ECE, %"},
    PUBLISHED,
    judge,
)
