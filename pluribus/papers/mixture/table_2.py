"""mixture/table-2: accuracy on clean and corrupted images, with thin mixtures."""

from ..recipe import Found
from ..verdicts import Verdict
from .claims import build_table, judge_better, judge_control
from .rows import BASELINE, BATCH_ENSEMBLE, CONTROL, LARGE, MIMO, MIXTURE, NAIVE, OWN_NORM, THIN

ROWS = (BASELINE, BATCH_ENSEMBLE, OWN_NORM, MIMO, MIXTURE, THIN, LARGE, NAIVE, CONTROL)
PUBLISHED = [
    {"method": BASELINE, "share": 1.0, "accuracy": 79.8, "cacc": 51.4, "flops": 1.0},
    {"method": BATCH_ENSEMBLE, "share": 1.0, "accuracy": 81.5, "cacc": 54.1, "flops": 4.0},
    {"method": OWN_NORM, "share": 1.0, "accuracy": 81.9, "cacc": 54.1, "flops": 4.0},
    {"method": MIMO, "share": 1.0, "accuracy": 82.0, "cacc": 53.7, "flops": 1.0},
    {"method": MIXTURE, "share": 1.0, "accuracy": 82.2, "cacc": 52.9, "flops": 4.0},
    {"method": THIN, "share": 1.0, "accuracy": 82.3, "cacc": 54.2, "flops": 1.0},
    {"method": LARGE, "share": 3.3, "accuracy": 82.9, "cacc": 54.7, "flops": 4.0},
    {"method": NAIVE, "share": 4.0, "accuracy": 82.7, "cacc": 54.1, "flops": 4.0},
]


def judge(found: Found) -> list[Verdict]:
    return [
        judge_better("A thin mixture beats MIMO at equal FLOPs.", found, THIN, (MIMO,), "error_blocks", "errors"),
        judge_better(
            "A thin mixture beats MIMO at equal FLOPs on corrupted images.", found, THIN, (MIMO,), "cerror_blocks", "errors"
        ),
        judge_better(
            "With 3.3 times the parameters it beats a naive ensemble.",
            found,
            LARGE,
            (NAIVE,),
            "error_blocks",
            "errors",
        ),
        judge_control(found, "error_blocks", "errors"),
    ]


RECIPE = build_table(
    2,
    "Accuracy on clean and corrupted images",
    "Is a thin mixture better than MIMO at equal FLOPs, and than thin networks of their own?",
    ROWS,
    {"accuracy": "clean, %", "cacc": "corrupted, %", "flops": "FLOPs, ×"},
    PUBLISHED,
    judge,
)
