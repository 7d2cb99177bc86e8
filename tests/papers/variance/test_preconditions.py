"""Conditions: numbers just inside and just outside each threshold, and what was not measured."""

import pytest

from pluribus.papers import load_recipes
from pluribus.papers.variance.preconditions import (
    find_last_tenth,
    judge_under,
    measure_bound_move,
    require_accuracy,
    require_base,
    require_bound,
    require_log_alpha,
    require_same_end,
    require_seeds,
)
from pluribus.papers.variance.table_1 import FASTER
from pluribus.papers.verdicts import Precondition, judge_claim, skip_claim

from .rules import NOT_DECIDED, NOT_RUN, judge_all, over_seeds, track
from .test_rules_of_figures import figure_4, figure_9, pruned
from .test_rules_of_figures import kappa as tracked_kappa
from .test_rules_of_phases import figure_3, figure_8
from .test_rules_of_tables import absolute, noises, table_1, table_2, table_3


@pytest.mark.parametrize(("count", "met"), [(3, True), (2, False)])
def test_every_row_needs_three_seeds(count, met):
    found = over_seeds({"a": {}, "b": {}})
    del found["b, seed 1"]
    assert not require_seeds(found).met
    assert require_seeds(over_seeds({"a": {}}, range(count))).met == met


@pytest.mark.parametrize(("base", "met"), [(0.9641, True), (0.9639, False), (None, False)])
def test_the_worst_network_with_dropout_is_within_three_points_of_the_papers(base, met):
    assert require_base(over_seeds({"a": {}}) | {"b, seed 1": {"base": base}}, 0.994).met == met


@pytest.mark.parametrize(("value", "met"), [(0.85, True), (0.8499, False), (None, False)])
def test_an_accuracy_is_reached(value, met):
    assert require_accuracy("networks are", 0.85, {"a": 0.9, "b": value}).met == met


@pytest.mark.parametrize(("moved", "met"), [(0.0099, True), (0.0101, False), (-0.0099, True), (-0.0101, False)])
def test_the_last_tenth_of_training_moves_a_bound_by_one_percent_at_most(moved, met):
    good, other = {"bounds": track()}, {"bounds": track(moved)}
    assert require_bound({"a": [good], "b": [good, other]}).met == met


@pytest.mark.parametrize(("moved", "met"), [(0.499, True), (0.501, False), (-0.499, True), (-0.501, False)])
@pytest.mark.parametrize("key", ["bounds", "phases"])
def test_the_last_tenth_of_training_moves_log_alpha_by_half_at_most(key, moved, met):
    assert require_log_alpha({"a": [{key: track()}, {key: track(log_alpha_moved=moved)}]}).met == met


@pytest.mark.parametrize(("end", "met"), [(5.99, True), (6.01, False), (4.01, True), (3.99, False)])
def test_log_alpha_ends_within_one_of_the_control(end, met):
    ours = {1: {"bounds": track()}, 2: {"bounds": track(end=99.0)}}  # the control has the first seed alone
    assert require_same_end({"a": (ours, {1: {"bounds": track(end=end)}})}).met == met


@pytest.mark.parametrize(
    "condition",
    [
        require_bound({"a": [{"bounds": track()}, {}]}),
        require_bound({"a": [{"bounds": []}]}),
        require_bound({"a": [{"bounds": track()[1:]}]}),
        require_bound({}),
        require_log_alpha({"a": [{"bounds": None}]}),
        require_log_alpha({"a": [{"bounds": [row | {"log_alpha": {}} for row in track()]}]}),
        require_same_end({"a": ({1: {"bounds": track()}}, {})}),
        require_same_end({"a": ({1: {"bounds": track()}}, {2: {"bounds": track()}})}),
        require_same_end({"a": ({1: {}, 2: {"bounds": track()}}, {1: {"bounds": track()}, 2: {"bounds": track()}})}),
        require_base({"a": {}}, 0.994),
    ],
)
def test_what_was_not_measured_meets_no_condition_and_says_so(condition):
    assert not condition.met
    assert "was not measured when this was recorded" in condition.evidence


def test_the_last_tenth_begins_at_the_latest_epoch_that_is_so_far_back():
    rows = [{"epoch": epoch} for epoch in (0, 12, 17, 18, 19, 20)]
    assert find_last_tenth(rows) == ({"epoch": 20}, {"epoch": 18})
    assert find_last_tenth([{"epoch": 0}, {"epoch": 1}]) == ({"epoch": 1}, None)
    assert measure_bound_move({"bounds": track(0.5)}) == pytest.approx(0.5)


# --- every artefact ---------------------------------------------------------------------------------------------------

TRAINED = {
    "table-1": table_1,
    "table-2": lambda **own: table_2("LeNet-5, MNIST", **own),
    "table-3": table_3,
    "noises": noises,
    "absolute": absolute,
    "figure-3": figure_3,
    "figure-4": figure_4,
    "figure-5": lambda **own: over_seeds({"pruning": pruned((0.97, 0.99))}, **own),
    "figure-8": lambda **own: figure_8((5, 9, 8), **own),
    "figure-9": figure_9,
    "kappa": tracked_kappa,
}
"""Numbers of every artefact whose networks are trained with several seeds, which are judged."""


@pytest.mark.parametrize("artefact", TRAINED)
def test_networks_that_meet_all_conditions_are_judged(artefact):
    assert NOT_DECIDED not in judge_all(artefact, TRAINED[artefact]())


@pytest.mark.parametrize("artefact", TRAINED)
@pytest.mark.parametrize("change", [{"seeds": (1, 2)}, {"base": 0.8}, {"base": None}])
def test_no_claim_is_judged_on_two_seeds_or_without_a_network_that_is_near_the_papers(artefact, change):
    outcomes = judge_all(artefact, TRAINED[artefact](**change))
    assert set(outcomes) - {NOT_RUN} == {NOT_DECIDED}


NEEDED = {
    "moved": {
        "table-1": [0],
        "table-3": [1, 2],
        "noises": [0, 1],
        "absolute": [0, 1],
        "figure-4": [0, 1],
        "figure-5": [0],
        "figure-9": [0, 1],
    },
    "log_alpha_moved": {"table-1": [0, 1, 2, 3], "table-2": [0, 1, 2, 3, 4, 5]},
}
"""Which claims need that the bound or log α has converged; what tracks phases is tested by them."""


@pytest.mark.parametrize(("what", "artefact"), [(what, artefact) for what in NEEDED for artefact in NEEDED[what]])
def test_claims_are_not_judged_before_the_training_has_converged(what, artefact):
    outcomes = judge_all(artefact, TRAINED[artefact](**{what: 0.6}))
    assert [place for place, outcome in enumerate(outcomes) if outcome == NOT_DECIDED] == NEEDED[what][artefact]


@pytest.mark.parametrize(
    ("artefact", "control"),
    [
        ("table-1", f"layer, {FASTER}"),
        ("table-1", f"weight, {FASTER}"),
        ("table-2", f"LeNet-5, MNIST, variance, {FASTER}"),
        ("figure-3", f"LeNet-5, {FASTER}"),
        ("kappa", f"curvature, {FASTER}"),
    ],
)
def test_claims_are_not_judged_where_log_alpha_depends_on_its_rate_or_there_is_no_control(artefact, control):
    found = TRAINED[artefact]()
    names = [name for name in found if name.startswith(f"{control}, seed")]
    assert len(names) == 3  # at scale cpu the first of them
    elsewhere = {name: found[name] | {"phases": None, "bounds": track(end=99.0)} for name in names}
    if artefact in ("figure-3", "kappa"):  # these track phases
        moved = [row | {"log_alpha": dict.fromkeys(row["log_alpha"], 99.0)} for row in found[names[0]]["phases"]]
        elsewhere = {name: found[name] | {"phases": moved} for name in names}
    for changed in (found | elsewhere, {name: cell for name, cell in found.items() if name not in names}):
        assert judge_all(artefact, changed)[0] == NOT_DECIDED


def test_a_verdict_names_every_condition_in_its_rule_and_those_that_fail_in_its_evidence():
    conditions = [Precondition("a holds", "a is 1", True), Precondition("b holds", "b is 2", False)]
    met, failed = (judge_under([judge_claim("c", "rule", "seen", met=True)], *each)[0] for each in (conditions[:1], conditions))
    assert (met.outcome, met.rule, met.evidence) == ("reproduced", "rule; judged only if a holds", "seen")
    assert (failed.outcome, failed.evidence) == (NOT_DECIDED, "seen; but b is 2")
    assert failed.rule == "rule; judged only if a holds, and b holds"
    assert judge_under([skip_claim("c", "why")], *conditions) == [skip_claim("c", "why")]


def test_the_verdict_on_the_elbos_shows_their_trend():
    verdict = load_recipes()["variance/table-1"].judge(table_1(moved=0.5))[0]
    assert verdict.outcome == NOT_DECIDED
    assert "in the last tenth of training zero-mean -150 to -100" in verdict.evidence
    assert "move of the ELBO in the last tenth: zero-mean 50.00 %" in verdict.evidence
