"""mimo/table-2: the methods of table 1 on CIFAR-100."""

from ..recipe import Recipe, Scale
from .benchmark import COLUMNS, CORRUPTIONS, Measured, judge, list_published, measure, tabulate
from .benchmark_cells import list_cells

PUBLISHED = list_published(
    ("deterministic", 79.8, 0.875, 0.086, 51.4, 2.700, 0.239, 0.632, 1),
    ("dropout", 79.6, 0.830, 0.050, 42.6, 2.900, 0.202, 0.656, 1),
    ("naive multihead", 79.5, 0.834, 0.048, 52.1, 2.339, 0.156, 0.636, 1),
    ("MIMO", 82.0, 0.690, 0.022, 53.7, 2.284, 0.129, 0.639, 1),
    ("TreeNet", 80.8, 0.777, 0.047, 53.5, 2.295, 0.176, 0.961, 1.5),
    ("BatchEnsemble", 81.5, 0.740, 0.056, 54.1, 2.490, 0.191, 2.552, 4),
    ("thin ensemble", 81.5, 0.694, 0.017, 53.7, 2.190, 0.111, 0.823, 4),
    ("ensemble", 82.7, 0.666, 0.021, 54.1, 2.270, 0.138, 2.536, 4),
)

RECIPE = Recipe(
    id="mimo/table-2",
    title="Methods on CIFAR-100",
    question="Is MIMO better than other methods with one forward pass where there are a hundred classes?",
    source="table 2, section 4",
    scales={
        "smoke": Scale("100 digits, half of SmallCNN, 1 epoch, no tuning; 20 corrupted rows.", list_cells("smoke")),
        "cpu": Scale(
            "The fast network, half as wide, on 5,000 rows of CIFAR-100, the fast recipe, 40 epochs; every row has "
            f"three trials on one seed, and is judged on three others; {CORRUPTIONS} of 500 test rows; latency of "
            "what is deployed.",
            list_cells("cpu", data="cifar100"),
            ("cifar100",),
        ),
        "paper": Scale("WRN-28-10 on CIFAR-100, the published settings.", list_cells("paper", data="cifar100"), ("cifar100",)),
    },
    measure=measure,
    measured=Measured,
    tabulate=tabulate,
    judge=judge,
    columns=COLUMNS,
    published=PUBLISHED,
)
