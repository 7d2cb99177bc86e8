"""mixture/table-4: NLL and ECE on corrupted images."""

from ..recipe import Found
from ..verdicts import Verdict
from .claims import build_table, judge_better, judge_control
from .rows import BASELINE, BATCH_ENSEMBLE, CONTROL, LARGE, MIMO, MIXTURE, NAIVE, OWN_NORM, THIN

ROWS = (BASELINE, BATCH_ENSEMBLE, OWN_NORM, MIMO, MIXTURE, THIN, LARGE, NAIVE, CONTROL)
PUBLISHED = [
    {"method": BASELINE, "share": 1.0, "cnll": 2.70, "cece": 23.9, "flops": 1.0},
    {"method": BATCH_ENSEMBLE, "share": 1.0, "cnll": 2.49, "cece": 19.1, "flops": 4.0},
    {"method": OWN_NORM, "share": 1.0, "cece": 19.1, "flops": 4.0},
    {"method": MIMO, "share": 1.0, "cnll": 2.28, "cece": 12.9, "flops": 1.0},
    {"method": MIXTURE, "share": 1.0, "cnll": 2.17, "cece": 10.3, "flops": 4.0},
    {"method": THIN, "share": 1.0, "cnll": 2.09, "cece": 9.7, "flops": 1.0},
    {"method": LARGE, "share": 3.3, "cnll": 2.00, "cece": 10.3, "flops": 4.0},
    {"method": NAIVE, "share": 4.0, "cnll": 2.27, "cece": 13.8, "flops": 4.0},
]


def judge(found: Found) -> list[Verdict]:
    cheap = (BASELINE, MIMO)
    return [
        judge_better(
            "With 3.3 times the parameters it outperforms naive ensembles on corrupted images.",
            found,
            LARGE,
            (NAIVE,),
            "cnll_blocks",
            "NLL",
        ),
        judge_better("A thin mixture outperforms all with the same FLOPs.", found, THIN, cheap, "cnll_blocks", "NLL"),
        judge_control(found, "cnll_blocks", "NLL"),
    ]


RECIPE = build_table(
    4,
    "Likelihood and calibration on corrupted images",
    "Are mixtures more robust than naive ensembles?",
    ROWS,
    {"cnll": "NLL, corrupted", "cece": "ECE, corrupted, %", "flops": "FLOPs, ×"},
    PUBLISHED,
    judge,
)
