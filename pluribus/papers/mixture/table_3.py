"""mixture/table-3: NLL and ECE on clean images, with thin mixtures."""

from ..recipe import Found
from ..verdicts import Verdict
from .claims import build_table, judge_better, judge_control, judge_match
from .rows import BASELINE, BATCH_ENSEMBLE, CONTROL, LARGE, MIMO, MIXTURE, NAIVE, OWN_NORM, THIN

ROWS = (BASELINE, BATCH_ENSEMBLE, OWN_NORM, MIMO, MIXTURE, THIN, LARGE, NAIVE, CONTROL)
PUBLISHED = [
    {"method": BASELINE, "share": 1.0, "nll": 0.875, "ece": 8.6, "flops": 1.0},
    {"method": BATCH_ENSEMBLE, "share": 1.0, "nll": 0.740, "ece": 5.6, "flops": 4.0},
    {"method": OWN_NORM, "share": 1.0, "ece": 2.8, "flops": 4.0},
    {"method": MIMO, "share": 1.0, "nll": 0.690, "ece": 2.2, "flops": 1.0},
    {"method": MIXTURE, "share": 1.0, "nll": 0.702, "ece": 2.7, "flops": 4.0},
    {"method": THIN, "share": 1.0, "nll": 0.689, "ece": 2.4, "flops": 1.0},
    {"method": LARGE, "share": 3.3, "nll": 0.666, "ece": 2.2, "flops": 4.0},
    {"method": NAIVE, "share": 4.0, "nll": 0.666, "ece": 2.1, "flops": 4.0},
]


def judge(found: Found) -> list[Verdict]:
    return [
        judge_match("At one network's parameters it is competitive with MIMO.", found, MIXTURE, MIMO, "nll_blocks", "NLL"),
        judge_match("It is competitive with naive ensembles at fewer parameters.", found, LARGE, NAIVE, "nll_blocks", "NLL"),
        judge_better("A thin mixture beats MIMO at equal FLOPs.", found, THIN, (MIMO,), "nll_blocks", "NLL"),
        judge_control(found, "nll_blocks", "NLL"),
    ]


RECIPE = build_table(
    3,
    "Likelihood and calibration",
    "How good are the probabilities of mixtures?",
    ROWS,
    {"nll": "NLL", "ece": "ECE, %", "calibrated_nll": "calibrated NLL", "flops": "FLOPs, ×"},
    PUBLISHED,
    judge,
)
