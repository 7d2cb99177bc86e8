"""The rules of the MIMO paper: numbers just inside and just outside each threshold give the outcome that the rule states."""

import numpy as np
import pytest
import torch

from pluribus.papers import load_recipes
from pluribus.papers.classification_scores import compare_cells
from pluribus.papers.mimo.figure_2 import MEMBERS, draw_points, split_error
from pluribus.papers.mimo.regularization import STRENGTHS
from pluribus.papers.trained_runs import L1Penalty
from pluribus.papers.verdicts import Precondition, judge_claim

REPRODUCED, DIRECTION, NOT = "reproduced", "direction reproduced", "not reproduced"
UNDECIDED = "not decided at this scale"


def judge(artefact, found, claim):
    return load_recipes()[f"mimo/{artefact}"].judge(found)[claim].outcome


def test_a_claim_whose_precondition_fails_is_not_decided():
    verdict = judge_claim("more is better", "more by 1", "2 more", met=True)
    assert Precondition("it is warm", "it was 10°", met=True).judge(verdict).outcome == REPRODUCED
    found = Precondition("it is warm", "it was 10°", met=False).judge(verdict)
    assert found.outcome == UNDECIDED
    assert found.rule == "more by 1; judged only if it is warm"
    assert found.evidence == "2 more; but it was 10°"


# --- cost -------------------------------------------------------------------------------------------------------------

COUNTS = {
    "parameters": 36_479_194,
    "mimo_parameters": 36_492_878,
    "folded_parameters": 36_492_014,
    "flops": 10_559_000_000,
    "mimo_flops": 10_561_000_000,
    "folded_flops": 10_559_000_000,
}


@pytest.mark.parametrize(
    ("changes", "outcomes"),
    [
        ({}, (REPRODUCED, REPRODUCED)),
        ({"flops": 10_559_999_999}, (REPRODUCED, REPRODUCED)),
        ({"flops": 10_560_000_001}, (DIRECTION, REPRODUCED)),
        ({"mimo_parameters": 36_479_194 + 36_480}, (NOT, REPRODUCED)),
        ({"mimo_parameters": 36_479_194 + 36_470}, (DIRECTION, REPRODUCED)),
        ({"folded_flops": 10_560_000_000}, (REPRODUCED, REPRODUCED)),
        ({"folded_flops": 10_560_100_000}, (REPRODUCED, DIRECTION)),
        ({"folded_flops": 10_561_100_000}, (REPRODUCED, NOT)),
    ],
)
def test_the_counts_are_the_published_ones(changes, outcomes):
    found = {"counts": COUNTS | changes}
    assert tuple(judge("cost", found, claim) for claim in range(2)) == outcomes


# --- figure 2 ---------------------------------------------------------------------------------------------------------


def cell(bias=2.0, variance=1.0, spread=0.5, noise=0.1):
    """A cell whose draws of sets lie `noise` around its numbers."""
    draws = np.linspace(-noise, noise, 100)
    return {
        "bias": bias,
        "variance": variance,
        "error": bias + variance,
        "bias_draws": (bias + draws).tolist(),
        "variance_draws": (variance + draws).tolist(),
        "target_variance": 12.0,
        "member_spread": spread,
    }


def build(**changes):
    """Cells of M = 1 to 5; `m3=cell(…)` replaces that of M = 3."""
    usual = {count: cell(2.1, 0.7) for count in MEMBERS[1:]} | {1: cell()}
    return {f"M = {count}": changes.get(f"m{count}", usual[count]) for count in MEMBERS}


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (build(), REPRODUCED),
        (build(m4=cell(2.1, 0.99)), REPRODUCED),
        (build(m4=cell(2.1, 1.01)), DIRECTION),
        (build(m3=cell(2.1, 1.01)), NOT),
        (build(m1=cell(2.0, 1.01)), UNDECIDED),
    ],
)
def test_variance_is_below_that_of_one_network(found, outcome):
    assert judge("figure-2", found, 0) == outcome


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (build(), REPRODUCED),
        (build(m5=cell(2.0, 0.7)), NOT),
        (build(m5=cell(2.01, 0.9)), REPRODUCED),
        (build(**{f"m{count}": cell(2.4, 0.7) for count in MEMBERS[1:]}), DIRECTION),
    ],
)
def test_bias_rises_by_less_than_variance_falls(found, outcome):
    assert judge("figure-2", found, 1) == outcome


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (build(), REPRODUCED),
        (build(**{f"m{count}": cell(2.5, 0.7) for count in MEMBERS[1:]}), NOT),
        (build(**{f"m{count}": cell(2.5, 0.7) for count in (2, 3, 4)}), REPRODUCED),
        (build(m1=cell(2.0, 1.0, noise=1.0), **{f"m{count}": cell(2.1, 0.85) for count in MEMBERS[1:]}), DIRECTION),
    ],
)
def test_the_error_is_lower_for_some_m(found, outcome):
    assert judge("figure-2", found, 2) == outcome


@pytest.mark.parametrize(("spread", "outcome"), [(0.0701, REPRODUCED), (0.0699, DIRECTION), (0.0069, NOT)])
def test_members_are_diverse_by_a_tenth_of_the_variance(spread, outcome):
    assert judge("figure-2", build(m3=cell(2.1, 0.7, spread)), 3) == outcome


def test_bias_and_variance_do_not_depend_on_the_number_of_sets():
    rng = np.random.default_rng(0)
    targets = rng.normal(size=50)
    for sets in (2, 10):
        many = [split_error(targets + 0.5 + 2 * rng.normal(size=(sets, 50)), targets) for _ in range(4000)]
        bias, variance = np.mean(many, axis=0)
        assert bias == pytest.approx(0.25, abs=0.02)
        assert variance == pytest.approx(4.0, abs=0.04)


def test_targets_are_those_of_blundell_with_the_noise_inside():
    x, y = draw_points(200_000, seed=1)
    near = (x - 0.25).abs() < 0.002
    slope = 1 + 0.6 * np.pi * np.cos(np.pi / 2) + 1.2 * np.pi * np.cos(np.pi)
    assert y[near].mean().item() == pytest.approx(0.25 + 0.3, abs=0.01)
    assert y[near].std().item() == pytest.approx(0.02 * abs(slope), rel=0.1)
    assert torch.equal(x, draw_points(200_000, seed=1)[0])


# --- figure 3 ---------------------------------------------------------------------------------------------------------


def plane(barrier, pairwise, accuracy=0.5):
    return {"barriers": [barrier, barrier + 0.01, barrier + 0.02], "pairwise": pairwise, "members": [accuracy, 0.9, 0.9]}


@pytest.mark.parametrize(
    ("mimo", "heads", "outcomes"),
    [
        (plane(0.05, 0.1), plane(-0.01, 0.02), (REPRODUCED, REPRODUCED)),
        (plane(0.0499, 0.0999), plane(-0.01, 0.02), (DIRECTION, DIRECTION)),
        (plane(0.05, 0.1), plane(-0.0099, 0.0201), (DIRECTION, DIRECTION)),
        (plane(0.05, 0.1), plane(0.03, 0.0501), (NOT, NOT)),
        (plane(0.05, 0.1, accuracy=0.4999), plane(-0.01, 0.02), (UNDECIDED, UNDECIDED)),
    ],
)
def test_subnetworks_are_separate_by_barriers_and_disagreement(mimo, heads, outcomes):
    found = {f"{name}, seed {seed}": cell for seed in range(2) for name, cell in (("MIMO", mimo), ("multihead", heads))}
    assert tuple(judge("figure-3", found, claim) for claim in range(2)) == outcomes


# --- figure 5 ---------------------------------------------------------------------------------------------------------


def scores(accuracy, nll, alone, noise=0.0):
    return {
        "accuracy": accuracy,
        "nll": nll,
        "member_accuracy": alone,
        "nll_blocks": [nll - noise, nll + noise] * 10,
    }


def build_members(changes=None, single=0.93):
    """Six sizes; members lose half a point a step, the lowest NLL is at M = 3, the highest accuracy at M = 2."""
    usual = {count: scores(single, 0.30 + 0.01 * abs(count - 3), single - 0.005 * (count - 1)) for count in range(1, 7)}
    usual[2]["accuracy"] = 0.95
    usual |= changes or {}
    return {f"M = {count}, seed {seed}": cell for count, cell in usual.items() for seed in range(2)}


@pytest.mark.parametrize(
    ("found", "claim", "outcome"),
    [
        (build_members(), 0, REPRODUCED),
        (build_members({6: scores(0.9, 0.33, 0.8899)}), 0, DIRECTION),
        (build_members({6: scores(0.9, 0.33, 0.94)}), 0, NOT),
        (build_members({6: scores(0.9, 0.33, 0.94)}, single=0.9299), 0, UNDECIDED),
        (build_members(), 1, REPRODUCED),
        (build_members({3: scores(0.9, 0.30, 0.9, noise=0.3)}), 1, DIRECTION),
        (build_members({1: scores(0.93, 0.29, 0.93)}), 1, NOT),
        (build_members({1: scores(0.92, 0.29, 0.93)}), 1, UNDECIDED),
        (build_members({5: scores(0.93, 0.1, 0.91)}), 1, DIRECTION),
        (build_members(), 2, REPRODUCED),
        (build_members({3: scores(0.96, 0.30, 0.92)}), 2, DIRECTION),
        (build_members({4: scores(0.96, 0.31, 0.915)}), 2, NOT),
    ],
)
def test_the_ensemble_peaks_between_two_and_four(found, claim, outcome):
    assert judge("figure-5", found, claim) == outcome


def test_an_effect_that_shows_outside_of_the_regime_counts():
    assert judge("figure-5", build_members(single=0.8), 0) == REPRODUCED


def test_differences_are_paired_by_seed_and_block():
    rng = np.random.default_rng(0)
    theirs = [{"nll_blocks": rng.normal(size=50).tolist()} for _ in range(3)]
    ours = [{"nll_blocks": (np.array(cell["nll_blocks"]) - 0.01 + 0.001 * rng.normal(size=50)).tolist()} for cell in theirs]
    found = compare_cells(ours, theirs)
    assert found.value == pytest.approx(-0.01, abs=0.001)
    assert -0.011 < found.low < found.value < found.high < -0.009


# --- figure 6 ---------------------------------------------------------------------------------------------------------


def repeated(error, nll=0.3, noise=0.0):
    return {"accuracy": 1 - error, "error_blocks": [error - noise, error + noise] * 10, "nll_blocks": [nll] * 20, "nll": nll}


ERRORS = {
    "narrow": {0: 0.2, 0.2: 0.2, 0.4: 0.18, 0.6: 0.15, 0.8: 0.17, 1: 0.2},
    "wide": {0: 0.1, 0.2: 0.1, 0.4: 0.09, 0.6: 0.08, 0.8: 0.09, 1: 0.1},
}
"""By ρ: the narrow network gains 5 points at 0.6, the wide one 2."""


def build_repetition(repetition=None, single=0.0699, **changes):
    names = {"narrow, one network": repeated(0.2), "wide, one network": repeated(single)}
    for size, errors in ERRORS.items():
        names |= {f"{size}, ρ = {share:g}": repeated(error) for share, error in (errors | changes.get(size, {})).items()}
    scores_by_repetition = {1: 0.3, 2: 0.29, 4: 0.28} | (repetition or {})
    names |= {f"repetition, {times}": repeated(0.1, nll) for times, nll in scores_by_repetition.items()}
    return {f"{name}, seed {seed}": cell for name, cell in names.items() for seed in range(2)}


@pytest.mark.parametrize(
    ("found", "claim", "outcome"),
    [
        (build_repetition(), 0, REPRODUCED),
        (build_repetition(narrow={0: 0.15, 0.2: 0.15, 0.4: 0.15, 0.6: 0.15, 0.8: 0.15}), 0, NOT),
        (build_repetition(narrow={0: 0.15, 0.2: 0.15, 0.4: 0.15, 0.6: 0.15, 0.8: 0.15}, single=0.0701), 0, UNDECIDED),
        (build_repetition(), 1, REPRODUCED),
        (build_repetition(narrow={0.2: 0.14}), 1, DIRECTION),
        (build_repetition(narrow={1: 0.14}), 1, NOT),
        (build_repetition(wide={0.6: 0.0751}), 2, REPRODUCED),
        (build_repetition(wide={0.6: 0.0749}), 2, DIRECTION),
        (build_repetition(wide={0.6: 0.0499}), 2, NOT),
        (build_repetition(), 3, REPRODUCED),
        (build_repetition(repetition={2: 0.31}), 3, DIRECTION),
        (build_repetition(repetition={4: 0.31}), 3, NOT),
    ],
)
def test_repetition_helps_where_capacity_is_short(found, claim, outcome):
    assert judge("figure-6", found, claim) == outcome


# --- figures 7, 8 and 9 -------------------------------------------------------------------------------------------------


def build_path(growth, kind, single=0.9301):
    """Errors that grow by so much for M = 1, 2 and 3 from the weakest to the strongest penalty."""
    found = {}
    for count, more in zip((1, 2, 3), growth, strict=True):
        for step, strength in enumerate(STRENGTHS[kind]):
            error = 1 - single + more * step / 4
            for seed in range(2):
                found[f"M = {count}, {strength:g}, seed {seed}"] = {"accuracy": 1 - error, "error_blocks": [error] * 4}
    return found


@pytest.mark.parametrize(("artefact", "kind"), [("figure-7", "l1"), ("figure-8", "l2"), ("figure-9", "l1")])
@pytest.mark.parametrize(
    ("growth", "single", "outcomes"),
    [
        ((0.1, 0.11, 0.12), 0.9301, (REPRODUCED, REPRODUCED)),
        ((0.1, 0.12, 0.11), 0.9301, (REPRODUCED, DIRECTION)),
        ((0.1, 0.09, 0.11), 0.9301, (DIRECTION, DIRECTION)),
        ((0.1, 0.11, 0.09), 0.9301, (NOT, NOT)),
        ((0.1, 0.11, 0.09), 0.9299, (UNDECIDED, UNDECIDED)),
    ],
)
def test_errors_grow_more_with_more_members(artefact, kind, growth, single, outcomes):
    found = build_path(growth, kind, single)
    assert tuple(judge(artefact, found, claim) for claim in range(2)) == outcomes


def test_the_penalty_adds_its_gradient_to_weights_alone():
    net = torch.nn.Linear(3, 2)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, -2.0, 0.0], [3.0, 0.5, -0.1]]))
    net.weight.grad, net.bias.grad = torch.ones(2, 3), torch.ones(2)
    L1Penalty(0.25).on_before_optimizer_step(None, net, None)
    assert net.weight.grad.tolist() == [[1.25, 0.75, 1.0], [1.25, 1.25, 0.75]]
    assert net.bias.grad.tolist() == [1.0, 1.0]
