"""mimo/table-1: eight methods on CIFAR-10, clean and corrupted, and two controls that the paper lacks."""

from ..recipe import Recipe, Scale
from .benchmark import COLUMNS, CORRUPTIONS, Measured, judge, list_published, measure, tabulate
from .benchmark_cells import list_cells

PUBLISHED = list_published(
    ("deterministic", 96.0, 0.159, 0.023, 76.1, 1.050, 0.153, 0.632, 1),
    ("dropout", 95.9, 0.160, 0.024, 68.8, 1.270, 0.166, 0.656, 1),
    ("naive multihead", 95.9, 0.161, 0.022, 76.6, 0.969, 0.144, 0.636, 1),
    ("MIMO", 96.4, 0.123, 0.010, 76.6, 0.927, 0.112, 0.639, 1),
    ("TreeNet", 95.9, 0.158, 0.018, 75.5, 0.969, 0.137, 0.961, 1.5),
    ("BatchEnsemble", 96.2, 0.143, 0.021, 77.5, 1.020, 0.129, 2.552, 4),
    ("thin ensemble", 96.3, 0.115, 0.008, 77.2, 0.840, 0.089, 0.823, 4),
    ("ensemble", 96.6, 0.114, 0.010, 77.9, 0.810, 0.087, 2.536, 4),
)

RECIPE = Recipe(
    id="mimo/table-1",
    title="Methods on CIFAR-10",
    question="Is MIMO better than other methods with one forward pass, and how near is it to a deep ensemble?",
    source="table 1, section 4",
    scales={
        "smoke": Scale("100 digits, half of SmallCNN, 1 epoch, no tuning; 20 corrupted rows.", list_cells("smoke")),
        "cpu": Scale(
            "The fast network, half as wide, on 5,000 rows of CIFAR-10 with the fast recipe, 40 epochs; every row has three "
            f"trials on one seed, and is judged on three others; {CORRUPTIONS} of 500 test rows; latency of what is deployed.",
            list_cells("cpu"),
            ("cifar10",),
        ),
        "paper": Scale("WRN-28-10 on CIFAR-10, the published settings.", list_cells("paper"), ("cifar10",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns=COLUMNS,
    published=PUBLISHED,
    departures=[
        "In tables 1 and 2 the paper's rows have the hyper-parameters of its appendix B; at scale cpu every row, the "
        "deterministic network included, is tuned with the same number of trials. The paper's milliseconds are shown as ratios "
        "to its deterministic network; our forward passes are ratios of FLOPs."
    ],
)
