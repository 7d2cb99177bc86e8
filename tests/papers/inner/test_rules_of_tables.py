"""The rules of the IEN paper's tables of errors: numbers just inside and just outside each threshold."""

import pytest

from pluribus.papers import load_recipes
from pluribus.papers.inner import table_1
from pluribus.papers.inner.figure_3 import name_row
from pluribus.papers.inner.rows import (
    BASE,
    BASE_FOLDED,
    DENSE,
    DROPOUT,
    DROPOUT_IEN,
    EXACT,
    EXACT_LEAN,
    FAST,
    IEN,
    INVERSE,
    LEAN,
    MAXOUT,
    MAXOUT_FOLDED,
    MEAN,
    SLOW,
)

REPRODUCED, DIRECTION, NOT = "reproduced", "direction reproduced", "not reproduced"
UNDECIDED = "not decided at this scale"


def judge(artefact, found, claim):
    return load_recipes()[f"inner/{artefact}"].judge(found)[claim].outcome


def score(error, noise=0.0, shift=None, spread=None):
    blocks = [error - noise, error + noise] * 3
    return {"accuracy": 1 - error, "error_blocks": blocks, "shift": shift, "spread": spread}


def build(rows, networks=("ResNet56", "VGG16"), only_first=(), changed=None):
    """Every network has the same rows with two seeds each, but for those of the first network alone, and what is changed."""
    found = {}
    for network in networks:
        for row, cell in rows.items():
            if row not in only_first or network == networks[0]:
                own = (changed or {}).get((network, row), cell)
                found |= {f"{network}: {row}, seed {seed}": own for seed in range(2)}
    return found


# --- table 1 --------------------------------------------------------------------------------------------------------

TABLE = {
    IEN: score(0.06, spread=0.05),
    MEAN: score(0.06, shift=1e-5),
    INVERSE: score(0.06),
    DENSE: score(0.055),
    MAXOUT: score(0.07),
    MAXOUT_FOLDED: score(0.9),
    BASE: score(0.065),
    BASE_FOLDED: score(0.9),
    SLOW: score(0.06),
    FAST: score(0.08),
    LEAN: score(0.06),
    EXACT: score(0.5, shift=1e-9),
    EXACT_LEAN: score(0.5, shift=1e-9),
}
BETTER, DENSE_BETTER, THAN_MAXOUT, INVERSE_SAME, NO_MAXOUT, NO_BASE, MEAN_SAME, IDENTICAL, SETTINGS, BEYOND, RATE, LEAN_SAME = (
    range(12)
)


def build_table(changed=None, **rows):
    named = {"ien": IEN, "mean": MEAN, "inverse": INVERSE, "dense": DENSE, "maxout": MAXOUT, "folded": MAXOUT_FOLDED}
    named |= {"base": BASE, "base_folded": BASE_FOLDED, "slow": SLOW, "fast": FAST, "lean": LEAN, "exact": EXACT}
    own = TABLE | {named[key]: value for key, value in rows.items()}
    return build(own, only_first=(LEAN, EXACT, EXACT_LEAN), changed=changed)


@pytest.mark.parametrize(
    ("claim", "rows", "outcome"),
    [
        (BETTER, {}, REPRODUCED),
        (BETTER, {"ien": score(0.0649, 0.01, spread=0.05)}, DIRECTION),
        (BETTER, {"ien": score(0.0651, spread=0.05)}, NOT),
        (BETTER, {"ien": score(0.1501, spread=0.05), "base": score(0.15)}, NOT),
        (BETTER, {"ien": score(0.1502, spread=0.05), "base": score(0.1501)}, UNDECIDED),
        (BETTER, {"ien": score(0.15, spread=0.05), "base": score(0.1501)}, REPRODUCED),
        (DENSE_BETTER, {}, REPRODUCED),
        (DENSE_BETTER, {"dense": score(0.0649, 0.01)}, DIRECTION),
        (DENSE_BETTER, {"dense": score(0.0651)}, NOT),
        (DENSE_BETTER, {"dense": score(0.2), "base": score(0.16)}, UNDECIDED),
        (THAN_MAXOUT, {}, REPRODUCED),
        (THAN_MAXOUT, {"maxout": score(0.0601, 0.01)}, DIRECTION),
        (THAN_MAXOUT, {"maxout": score(0.0599)}, NOT),
        (INVERSE_SAME, {"inverse": score(0.06099)}, REPRODUCED),
        (INVERSE_SAME, {"inverse": score(0.05901)}, REPRODUCED),
        (INVERSE_SAME, {"inverse": score(0.06101)}, DIRECTION),
        (INVERSE_SAME, {"inverse": score(0.0699)}, DIRECTION),
        (INVERSE_SAME, {"inverse": score(0.0701)}, NOT),
        (INVERSE_SAME, {"inverse": score(0.0701), "ien": score(0.06, spread=0.0999)}, NOT),
        (INVERSE_SAME, {"inverse": score(0.0701), "ien": score(0.06, spread=0.1001)}, UNDECIDED),
        (INVERSE_SAME, {"ien": score(0.06, spread=1.7)}, REPRODUCED),
        (NO_MAXOUT, {"folded": score(0.8001)}, REPRODUCED),
        (NO_MAXOUT, {"folded": score(0.7999)}, DIRECTION),
        (NO_MAXOUT, {"folded": score(0.5351)}, DIRECTION),
        (NO_MAXOUT, {"folded": score(0.5349)}, NOT),
        (NO_BASE, {"base_folded": score(0.8001)}, REPRODUCED),
        (NO_BASE, {"base_folded": score(0.7999)}, DIRECTION),
        (NO_BASE, {"base_folded": score(0.5324)}, NOT),
        (MEAN_SAME, {"mean": score(0.06, shift=9.9e-4)}, REPRODUCED),
        (MEAN_SAME, {"mean": score(0.06099, shift=1.01e-3)}, DIRECTION),
        (MEAN_SAME, {"mean": score(0.06101, shift=1.01e-3)}, NOT),
        (IDENTICAL, {"exact": score(0.5, shift=9.9e-7)}, REPRODUCED),
        (IDENTICAL, {"exact": score(0.5, shift=1.01e-6)}, DIRECTION),
        (IDENTICAL, {"exact": score(0.5, shift=1.01e-3)}, NOT),
        (SETTINGS, {"slow": score(0.0699)}, REPRODUCED),
        (SETTINGS, {"slow": score(0.0501)}, REPRODUCED),
        (SETTINGS, {"slow": score(0.0699, 0.01)}, DIRECTION),
        (SETTINGS, {"slow": score(0.0701)}, NOT),
        (SETTINGS, {"slow": score(0.0499)}, NOT),
        (BEYOND, {"slow": score(0.0601)}, REPRODUCED),
        (BEYOND, {"slow": score(0.0601, 0.01)}, DIRECTION),
        (BEYOND, {"slow": score(0.0599)}, NOT),
        (BEYOND, {"slow": score(0.0601), "fast": score(0.0599)}, NOT),
        (RATE, {"slow": score(0.065, 0.01), "fast": score(0.0651)}, REPRODUCED),
        (RATE, {"slow": score(0.065, 0.02), "fast": score(0.0701, 0.03)}, DIRECTION),
        (RATE, {"slow": score(0.065, 0.02), "fast": score(0.0699, 0.03)}, NOT),
        (LEAN_SAME, {"lean": score(0.0699)}, REPRODUCED),
        (LEAN_SAME, {"lean": score(0.0699, 0.01)}, DIRECTION),
        (LEAN_SAME, {"lean": score(0.0701)}, NOT),
    ],
)
def test_table_1(claim, rows, outcome):
    assert judge("table-1", build_table(**rows), claim) == outcome


@pytest.mark.parametrize(
    ("claim", "row", "cell", "outcome"),
    [
        (INVERSE_SAME, INVERSE, score(0.0611), DIRECTION),
        (NO_MAXOUT, MAXOUT_FOLDED, score(0.79), DIRECTION),
        (MEAN_SAME, MEAN, score(0.06, shift=0.01), DIRECTION),
        (BETTER, BASE, score(0.16), REPRODUCED),
    ],
)
def test_one_network_out_of_line_changes_what_must_hold_in_every_network(claim, row, cell, outcome):
    assert judge("table-1", build_table({("VGG16", row): cell}), claim) == outcome


def test_the_regime_is_that_of_the_worst_base_network():
    worse = {("VGG16", BASE): score(0.151), ("VGG16", IEN): score(0.3, spread=0.05)}
    assert judge("table-1", build_table(worse), BETTER) == UNDECIDED
    worse[("VGG16", BASE)] = score(0.15)
    assert judge("table-1", build_table(worse), BETTER) == NOT


# --- figure 3 -------------------------------------------------------------------------------------------------------


def build_figure(base=0.065, **changes):
    cells = {BASE: score(base)}
    for method, errors in ((IEN, (0.05, 0.051, 0.06)), (DENSE, (0.05, 0.051, 0.06)), (MAXOUT, (0.07, 0.07, 0.07))):
        cells |= {name_row(method, m): score(error) for m, error in zip((2, 4, 8), errors, strict=True)}
    cells |= {
        name_row({"ien": IEN, "dense": DENSE, "maxout": MAXOUT}[key[:-1]], int(key[-1])): cell for key, cell in changes.items()
    }
    return build(cells)


@pytest.mark.parametrize(
    ("claim", "changes", "outcome"),
    [
        (0, {}, REPRODUCED),
        (0, {"maxout8": score(0.0601, 0.01)}, DIRECTION),
        (0, {"maxout8": score(0.0599)}, NOT),
        (0, {"maxout8": score(0.0599), "base": 0.1501}, UNDECIDED),
        (1, {}, REPRODUCED),
        (1, {"ien2": score(0.0651), "ien4": score(0.0651)}, REPRODUCED),
        (1, {"ien2": score(0.0651), "ien4": score(0.0651), "ien8": score(0.0651)}, DIRECTION),
        (1, {f"{key}{m}": score(0.0651) for key, m in (("ien", 2), ("ien", 4), ("ien", 8), ("dense", 2))}, NOT),
        (2, {}, REPRODUCED),
        (2, {"maxout2": score(0.06)}, REPRODUCED),
        (2, {"maxout2": score(0.0649), "maxout4": score(0.0649)}, NOT),
        (3, {}, REPRODUCED),
        (3, {"ien4": score(0.0599, 0.01)}, DIRECTION),
        (3, {"ien4": score(0.0601)}, NOT),
    ],
)
def test_figure_3(claim, changes, outcome):
    assert judge("figure-3", build_figure(**changes), claim) == outcome


def test_maxout_that_is_worse_in_half_of_the_settings_has_the_direction():
    found = build_figure(maxout2=score(0.06), maxout4=score(0.06))
    found |= {f"VGG16: maxout, m = 4, seed {seed}": score(0.07) for seed in range(2)}
    assert judge("figure-3", found, 2) == DIRECTION


# --- table 2 --------------------------------------------------------------------------------------------------------


def outer(alone, together, noise=0.0):
    def list_blocks(error):
        return [error - noise, error + noise] * 3

    return {
        **{"accuracy": 1 - alone, "outer_accuracy": 1 - together},
        **{"error_blocks": list_blocks(alone), "outer_blocks": list_blocks(together)},
    }


OUTER = {
    IEN: outer(0.06, 0.05),
    DENSE: outer(0.06, 0.05),
    MAXOUT: outer(0.07, 0.06),
    BASE: outer(0.065, 0.055),
    SLOW: outer(0.06, 0.05),
}


@pytest.mark.parametrize(
    ("claim", "rows", "outcome"),
    [
        (0, {}, REPRODUCED),
        (0, {IEN: outer(0.06, 0.0549, 0.01)}, DIRECTION),
        (0, {IEN: outer(0.06, 0.0551)}, NOT),
        (0, {MAXOUT: outer(0.07, 0.0499)}, NOT),
        (0, {IEN: outer(0.2, 0.19), BASE: outer(0.1501, 0.12)}, UNDECIDED),
        (0, {IEN: outer(0.2, 0.19), BASE: outer(0.15, 0.12)}, NOT),
        (1, {}, REPRODUCED),
        (1, {BASE: outer(0.065, 0.0599, 0.01)}, DIRECTION),
        (1, {BASE: outer(0.065, 0.0601)}, NOT),
        (2, {}, REPRODUCED),
        (2, {IEN: outer(0.0649, 0.05, 0.01)}, DIRECTION),
        (2, {IEN: outer(0.0651, 0.05)}, NOT),
        (2, {IEN: outer(0.0549, 0.05)}, NOT),
        (3, {SLOW: outer(0.06, 0.0599)}, REPRODUCED),
        (3, {SLOW: outer(0.06, 0.0599, 0.01)}, DIRECTION),
        (3, {SLOW: outer(0.06, 0.0601)}, NOT),
    ],
)
def test_table_2(claim, rows, outcome):
    assert judge("table-2", build(OUTER | rows), claim) == outcome


# --- table 5 --------------------------------------------------------------------------------------------------------

DROPPED = {IEN: score(0.06), BASE: score(0.065), DROPOUT: score(0.9), DROPOUT_IEN: score(0.89)}


@pytest.mark.parametrize(
    ("claim", "rows", "networks", "outcome"),
    [
        (0, {}, ("ResNet56", "ResNet110"), REPRODUCED),
        (0, {DROPOUT: score(0.8001)}, ("ResNet56", "ResNet110"), REPRODUCED),
        (0, {DROPOUT: score(0.7999)}, ("ResNet56", "ResNet110"), DIRECTION),
        (0, {DROPOUT: score(0.5324)}, ("ResNet56", "ResNet110"), NOT),
        (0, {DROPOUT: score(0.5324)}, ("ResNet-50", "ResNet110"), UNDECIDED),
        (0, {DROPOUT: score(0.5326)}, ("ResNet-8", "ResNet-14"), DIRECTION),
        (1, {}, ("ResNet56", "ResNet110"), REPRODUCED),
        (1, {DROPOUT_IEN: score(0.5299)}, ("ResNet56", "ResNet110"), NOT),
        (1, {DROPOUT_IEN: score(0.5299)}, ("ResNet-8", "ResNet-14"), UNDECIDED),
        (2, {}, ("ResNet56", "ResNet110"), REPRODUCED),
        (2, {DROPOUT_IEN: score(0.8999, 0.01)}, ("ResNet56", "ResNet110"), DIRECTION),
        (2, {DROPOUT_IEN: score(0.9001)}, ("ResNet56", "ResNet110"), NOT),
        (2, {DROPOUT_IEN: score(0.9001), BASE: score(0.1501)}, ("ResNet56", "ResNet110"), UNDECIDED),
    ],
)
def test_table_5(claim, rows, networks, outcome):
    assert judge("table-5", build(DROPPED | rows, networks), claim) == outcome


# --- trainings that are shared --------------------------------------------------------------------------------------


def list_trainings(artefact):
    cells = load_recipes()[f"inner/{artefact}"].scales["cpu"].cells.values()
    return [{**cell["training"], "seed": seed} for cell in cells for seed in cell.get("seeds", [cell["seed"]])]


def test_other_artefacts_train_only_what_table_1_lacks():
    ours = list_trainings("table-1")
    assert all(each in ours for each in list_trainings("table-2"))
    more = [each for each in list_trainings("table-5") if each not in ours]
    assert {each["model"]["dropout"] for each in more} == {0.5}
    assert len(more) == 2 * 2 * 3
    assert {each["method"]["copies"] for each in list_trainings("figure-3") if each not in ours} == {2, 8}


def test_every_row_of_the_paper_has_its_numbers_and_ours_are_trained_with_sgd():
    assert all(len(numbers.split()) == 12 for numbers in table_1.PAPER.values())
    assert {each["optimizer"] for each in list_trainings("table-1")} == {"sgd"}
    rates = {each["lr"] for each in list_trainings("table-1") if each["model"]["name"] != "vgg"}
    assert rates == {0.1, 0.4}
