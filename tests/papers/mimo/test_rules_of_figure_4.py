"""The rules of figure 4: numbers just inside and just outside each threshold."""

import pytest

from pluribus.papers import load_recipes

REPRODUCED, DIRECTION, NOT = "reproduced", "direction reproduced", "not reproduced"
UNDECIDED = "not decided at this scale"


def build(separation=0.9, apart=0.25, accuracy=0.9301, **diverse):
    """Two seeds; MIMO's members disagree on 9 % of rows, independent networks on 10 %."""
    usual = {"multihead": 0.01, "TreeNet": 0.05, "BatchEnsemble": 0.06, "MIMO": 0.0901, "independent": 0.1} | diverse
    found = {"trajectories": {"apart": apart, "accuracy": 0.7}}
    for seed in range(2):
        found |= {f"separation, M = {m}, seed {seed}": {"separation": separation, "accuracy": accuracy} for m in (2, 3)}
        found |= {f"diversity, {name}, seed {seed}": {"disagreement": value, "accuracy": 0.9} for name, value in usual.items()}
    return found


@pytest.mark.parametrize(
    ("found", "claim", "outcome"),
    [
        (build(), 0, REPRODUCED),
        (build(separation=0.8999), 0, DIRECTION),
        (build(separation=0.4999), 0, NOT),
        (build(separation=0.4999, accuracy=0.9299), 0, UNDECIDED),
        (build(), 1, REPRODUCED),
        (build(apart=0.2499), 1, DIRECTION),
        (build(apart=0.0999), 1, NOT),
        (build(), 2, REPRODUCED),
        (build(MIMO=0.0899), 2, DIRECTION),
        (build(TreeNet=0.0902), 2, NOT),
        (build(BatchEnsemble=0.0902), 2, NOT),
        (build(multihead=0.0902), 2, NOT),
    ],
)
def test_subnetworks_separate_and_become_diverse(found, claim, outcome):
    assert load_recipes()["mimo/figure-4"].judge(found)[claim].outcome == outcome
