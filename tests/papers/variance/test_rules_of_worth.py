"""The rules of our own table: numbers just inside and just outside each threshold give the outcome that the rule states."""

import pytest
import torch

from pluribus.core.predictive import Predictive
from pluribus.papers.variance.findings import describe_worth
from pluribus.papers.variance.seeds import group_seeds
from pluribus.papers.variance.worth import DEEP, DROPOUT, NOISY, ONE, SCALED, VARIANCE, VARIATIONAL, measure_equivalents, score

from .rules import DIRECTION, HALF, NOT, NOT_DECIDED, REPRODUCED, judge, judge_all, vary

USUAL = {ONE: 0.4, SCALED: 0.4, DROPOUT: 0.36, VARIATIONAL: 0.34, VARIANCE: 0.34, "2": 0.36, "3": 0.33, "4": 0.3}


def worth(seeds=(1, 2, 3), base=0.9, latency=None, spread=0.0, auroc=0.02, **nll):
    """Every method with an NLL that is the same in ten blocks, but for those of the variance layer, which are spread."""
    values = USUAL | {{"variance": VARIANCE, "variational": VARIATIONAL, "deep": "4"}[key]: value for key, value in nll.items()}
    found = {}
    for key, value in values.items():
        row = DEEP.format(key) if key in "234" else key
        steps = [spread * (-1) ** i if row == VARIANCE else 0.0 for i in range(10)]
        cell = {"accuracy": base, "nll": value, "calibrated_nll": value, "nll_blocks": [value + step for step in steps]}
        cell |= {"auroc": 0.9 + (auroc if row == VARIANCE else 0.0), "draws": 8 if row in NOISY else None}
        cell |= {"latency": (latency or {}).get(row, 4.0), "flops": 4.0}
        found |= {f"{row}, seed {seed}": cell for seed in seeds}
    return found


@pytest.mark.parametrize(("variance", "outcome"), [(0.399, REPRODUCED), (0.401, NOT)])
def test_a_variance_layer_is_better_than_a_fitted_temperature(variance, outcome):
    assert judge("worth", worth(variance=variance), 0) == outcome


def test_it_must_be_better_beyond_its_interval():
    assert judge("worth", worth(variance=0.399, spread=0.05), 0) == DIRECTION


@pytest.mark.parametrize(("spread", "outcome"), [(0.0199 / HALF, REPRODUCED), (0.0201 / HALF, DIRECTION)])
def test_strange_images_are_told_better_beyond_the_interval_over_seeds(spread, outcome):
    assert judge("worth", vary(worth(), VARIANCE, "auroc", spread), 1) == outcome
    assert judge("worth", worth(auroc=-0.001), 1) == NOT


@pytest.mark.parametrize(("claim", "method"), [(2, "variance"), (3, "variational")])
@pytest.mark.parametrize(("nll", "outcome"), [(0.359, REPRODUCED), (0.361, NOT)])
def test_a_method_is_better_than_dropout(claim, method, nll, outcome):
    assert judge("worth", worth(**{method: nll}), claim) == outcome


@pytest.mark.parametrize(("deep", "outcome"), [(0.339, REPRODUCED), (0.341, NOT)])
def test_a_deep_ensemble_is_better_than_each_of_them(deep, outcome):
    assert judge("worth", worth(deep=deep), 4) == outcome


@pytest.mark.parametrize(
    ("change", "outcomes"),
    [
        ({}, [REPRODUCED] * 5),
        ({"seeds": (1, 2)}, [NOT_DECIDED] * 5),
        ({"base": 0.85}, [REPRODUCED] * 5),
        ({"base": 0.8499}, [NOT_DECIDED] * 5),
        ({"latency": {VARIANCE: 4.4}}, [REPRODUCED] * 5),
        ({"latency": {VARIANCE: 4.41}}, [REPRODUCED] * 2 + [NOT_DECIDED] * 3),
        ({"latency": {DROPOUT: 2.4}}, [REPRODUCED] * 5),
        ({"latency": {DROPOUT: 2.39}}, [REPRODUCED] * 2 + [NOT_DECIDED] * 3),
    ],
)
def test_methods_are_compared_at_equal_latency_on_networks_that_are_good_enough(change, outcomes):
    assert judge_all("worth", worth(**change)) == outcomes


def test_a_method_is_worth_as_many_networks_as_answer_as_well():
    found = measure_equivalents(group_seeds(worth(variance=0.345)))
    assert found[VARIANCE]["value"] == pytest.approx(2.5)
    assert found[ONE]["value"] == 1.0
    assert found[DEEP.format(4)]["value"] == 4.0


def test_a_fitted_temperature_has_the_calibrated_nll_and_keeps_the_answers():
    torch.manual_seed(0)
    y = torch.randint(0, 5, (400,))
    logits = torch.randn(1, 400, 5) * 8
    logits[0, torch.arange(200), y[:200]] += 30
    seen, unseen = Predictive(logits), Predictive(torch.randn(1, 100, 5))
    plain, scaled = (score(seen, unseen, y, is_scaled) for is_scaled in (False, True))
    assert scaled["nll"] == scaled["calibrated_nll"] == plain["calibrated_nll"] < plain["nll"]
    assert scaled["accuracy"] == plain["accuracy"]


def test_the_page_names_the_best_method_that_draws_and_what_each_is_worth():
    cells = {name: {"found": cell} for name, cell in worth(variance=0.33).items()}
    sentence = describe_worth({"variance/worth": {"scale": "cpu", "cells": cells}})
    assert "4 networks, variance layer has the lowest calibrated NLL" in sentence
    assert "variance layer 0.330, worth 3.0 networks" in sentence
    assert describe_worth({"variance/worth": {"scale": "smoke", "cells": cells}}) == ""
