"""The rules of the MixtureEnsembles paper: numbers just inside and just outside each threshold give the stated outcome."""

import pytest

from pluribus.papers import load_recipes
from pluribus.papers.mixture import table_5
from pluribus.papers.mixture.rows import (
    BASELINE,
    BATCH_ENSEMBLE,
    BUDGETS,
    CONTROL,
    LARGE,
    MIMO,
    MIXTURE,
    NAIVE,
    OWN_NORM,
    THIN,
    configure_narrow,
    configure_row,
)
from pluribus.runs.config import build_config

REPRODUCED, DIRECTION, NOT = "reproduced", "direction reproduced", "not reproduced"
UNDECIDED = "not decided at this scale"


def judge(artefact, found, claim):
    return load_recipes()[f"mixture/{artefact}"].judge(found)[claim].outcome


def scores(nll=0.2, error=0.05, noise=0.0, diversity=0.5, alone=0.94):
    blocks = {
        f"{c}{key}_blocks": [value - noise, value + noise] * 10
        for c in ("", "c")
        for key, value in (("nll", nll), ("error", error))
    }
    return blocks | {"accuracy": 1 - error, "member_accuracy": alone, "diversity": diversity, "nll": nll, "share": 1.0}


ROWS = {
    BASELINE: scores(0.2, 0.06),
    BATCH_ENSEMBLE: scores(0.19, 0.055),
    OWN_NORM: scores(0.18, 0.054, diversity=0.4),
    MIMO: scores(0.17, 0.052),
    MIXTURE: scores(0.16, 0.05, diversity=0.78),
    THIN: scores(0.155, 0.049),
    LARGE: scores(0.14, 0.046, diversity=0.85, alone=0.945),
    NAIVE: scores(0.141, 0.047, diversity=0.88, alone=0.94),
    CONTROL: scores(0.165, 0.051),
}
"""In the order of the paper."""


def build(**changes):
    named = {"mixture": MIXTURE, "large": LARGE, "thin": THIN, "baseline": BASELINE, "own": OWN_NORM, "mimo": MIMO}
    rows = ROWS | {named[key]: value for key, value in changes.items()}
    return {f"{row}, seed {seed}": cell for row, cell in rows.items() for seed in range(2)}


@pytest.mark.parametrize(
    ("table", "claim", "changes", "outcome"),
    [
        ("table-1", 0, {}, REPRODUCED),
        ("table-1", 0, {"mixture": scores(0.179, noise=0.1)}, DIRECTION),
        ("table-1", 0, {"mixture": scores(0.181)}, NOT),
        ("table-1", 0, {"mixture": scores(0.181), "baseline": scores(0.2, 0.0701)}, UNDECIDED),
        ("table-1", 1, {}, REPRODUCED),
        ("table-1", 1, {"mixture": scores(0.21)}, NOT),
        ("table-1", 2, {"large": scores(0.148)}, REPRODUCED),
        ("table-1", 2, {"large": scores(0.1481)}, DIRECTION),
        ("table-1", 2, {"large": scores(0.201)}, NOT),
        ("table-2", 0, {}, REPRODUCED),
        ("table-2", 0, {"thin": scores(0.155, 0.0519, noise=0.01)}, DIRECTION),
        ("table-2", 0, {"thin": scores(0.155, 0.0521)}, NOT),
        ("table-2", 1, {}, REPRODUCED),
        ("table-2", 2, {}, REPRODUCED),
        ("table-2", 2, {"large": scores(0.14, 0.0471)}, NOT),
        ("table-2", 3, {}, REPRODUCED),
        ("table-2", 3, {"thin": scores(0.155, 0.0511)}, NOT),
        ("table-2", 3, {"thin": scores(0.155, 0.0511), "baseline": scores(0.2, 0.1)}, NOT),
        ("table-3", 0, {"mixture": scores(0.1784)}, REPRODUCED),
        ("table-3", 0, {"mixture": scores(0.1786)}, DIRECTION),
        ("table-3", 1, {}, REPRODUCED),
        ("table-3", 2, {}, REPRODUCED),
        ("table-3", 3, {"thin": scores(0.1651)}, NOT),
        ("table-4", 0, {}, REPRODUCED),
        ("table-4", 0, {"large": scores(0.142)}, NOT),
        ("table-4", 1, {"thin": scores(0.171)}, NOT),
        ("table-4", 2, {}, REPRODUCED),
        ("table-6", 0, {"mixture": scores(diversity=0.61)}, REPRODUCED),
        ("table-6", 0, {"mixture": scores(diversity=0.59)}, DIRECTION),
        ("table-6", 0, {"mixture": scores(diversity=0.39)}, NOT),
        ("table-6", 1, {}, REPRODUCED),
        ("table-6", 1, {"large": scores(diversity=0.89)}, DIRECTION),
        ("table-6", 1, {"large": scores(diversity=0.77)}, NOT),
        ("table-6", 2, {"large": scores(alone=0.9421)}, REPRODUCED),
        ("table-6", 2, {"large": scores(alone=0.9419)}, DIRECTION),
        ("table-6", 2, {"large": scores(alone=0.9399)}, NOT),
    ],
)
def test_the_tables(table, claim, changes, outcome):
    assert judge(table, build(**changes), claim) == outcome


@pytest.mark.parametrize(
    ("large", "mixture", "outcomes"),
    [
        (0.22, 0.23, (REPRODUCED, REPRODUCED)),
        (0.226, 0.2345, (NOT, DIRECTION)),
        (0.226, 0.25, (NOT, NOT)),
    ],
)
def test_table_5(large, mixture, outcomes):
    errors = {table_5.BASELINE: 0.24, table_5.BATCH_ENSEMBLE: 0.234, table_5.MIMO: 0.225, table_5.NAIVE: 0.225}
    errors |= {table_5.LARGE: large, table_5.MIXTURE: mixture}
    found = {f"{row}, seed 0": scores(error=error) for row, error in errors.items()}
    assert tuple(judge("table-5", found, claim) for claim in range(2)) == outcomes


def build_figure(budgets=(0.1, 0.08, 0.06, 0.055, 0.05), rivals=(0.14, 0.14), members=(0.065, 0.06, 0.062), single=0.0699):
    errors = {f"mixture, {budget:g}×": error for budget, error in zip(BUDGETS, budgets, strict=True)}
    for row, error in zip((BATCH_ENSEMBLE, MIMO), rivals, strict=True):
        errors |= {f"{row}, 1×": 0.06, f"{row}, 0.4×": error}
    errors |= {f"{count} members": error for count, error in zip((2, 4, 8), members, strict=True)}
    errors |= {BASELINE: single, NAIVE: 0.05}
    return {f"{row}, seed 0": scores(error=error) for row, error in errors.items()}


@pytest.mark.parametrize(
    ("found", "claim", "outcome"),
    [
        (build_figure(), 0, REPRODUCED),
        (build_figure(budgets=(0.1, 0.08, 0.06, 0.061, 0.05)), 0, DIRECTION),
        (build_figure(budgets=(0.1, 0.08, 0.06, 0.061, 0.11)), 0, NOT),
        (build_figure(), 1, REPRODUCED),
        (build_figure(rivals=(0.14, 0.0799)), 1, NOT),
        (build_figure(), 2, REPRODUCED),
        (build_figure(members=(0.059, 0.06, 0.062)), 2, NOT),
        (build_figure(members=(0.059, 0.06, 0.062), single=0.0701), 2, UNDECIDED),
    ],
)
def test_figure_3(found, claim, outcome):
    assert judge("figure-3", found, claim) == outcome


@pytest.mark.parametrize(
    ("small", "large", "outcomes"),
    [
        (0.0501, 0.1003, (REPRODUCED, REPRODUCED)),
        (0.049, 0.1, (DIRECTION, REPRODUCED)),
        (0.051, 0.1, (REPRODUCED, DIRECTION)),
        (0.06, 0.059, (REPRODUCED, NOT)),
        (-0.01, 0.1, (NOT, REPRODUCED)),
    ],
)
def test_figure_4(small, large, outcomes):
    def line(dip):
        return {"shares": [0.0, 0.5, 1.0], "training_mode": [0.9, 0.9 - dip, 0.9] if dip > 0 else [0.9, 0.9, 0.9]}

    dips = {"mixture, 0.4×": small, "mixture, 1×": 0.08, "mixture, 3.3×": large, NAIVE: 0.5}
    found = {f"{row}, seed 0": line(dip) for row, dip in dips.items()}
    assert tuple(judge("figure-4", found, claim) for claim in range(2)) == outcomes


# --- settings ---------------------------------------------------------------------------------------------------------


def test_every_published_training_is_one_that_pluribus_train_takes():
    for name, recipe in load_recipes().items():
        if recipe.paper_name == "mixture" and name != "mixture/table-5":
            for options in recipe.scales["paper"].cells.values():
                assert build_config(options["training"]).spec.name == options["training"]["method"]["name"]


def test_thin_networks_have_half_of_the_width_and_narrow_ones_their_share_of_the_parameters():
    assert configure_row("paper", THIN)["model"] == {"name": "wrn", "depth": 28, "width": 5}
    assert configure_row("paper", THIN)["epochs"] == 1000
    assert configure_row("cpu", CONTROL)["model"]["width"] == 0.25
    assert configure_narrow("cpu", MIMO, 0.4)["model"]["width"] == pytest.approx(0.5 * 0.63)
