"""The rules of figures 6 and 7: numbers just inside and just outside each threshold give the outcome that the rule states."""

import numpy as np
import pytest

from .rules import DIRECTION, NOT, NOT_DECIDED, NOT_RUN, REPRODUCED, judge, judge_all

# --- figure 6 ---------------------------------------------------------------------------------------------------------

STEP = (11 / 12) ** 0.5
SPREAD = STEP * np.array([-1, 1] * 6)  # mean 0; the standard deviation over twelve seeds is 1
HALF = 2.20099 / 12**0.5
"""Half of the interval of a mean of twelve differences with standard deviation 1, by Student's t."""
WORLDS = ("CartPole", "CartPole-v1", "Acrobot")


def figure_6(world="CartPole", policy="deterministic", early=-100.0, late=100.0, others=0.0, seeds=12, **chosen):
    """Scores of twenty episodes: differences of the variance policy from one other have these means and standard deviation 1.

    The episodes beside the first six and the last two have scores that would turn the outcome round.
    """
    found = {}
    for each in WORLDS:
        for own in ("deterministic", "parameter noise", "variance"):
            found[f"{each}, {own}"] = np.full((12, 20), others)
        found[f"{each}, variance"][:, :6] += -100 + SPREAD[:, None]
        found[f"{each}, variance"][:, 6:18] = np.linspace(1e4, -1e4, 12)
        found[f"{each}, variance"][:, 18:] += 100 + SPREAD[:, None]
    found[f"{world}, {policy}"][:, :6] -= early + 100
    found[f"{world}, {policy}"][:, 18:] -= late - 100
    usual = {"rate": 1e-3, "pilots": {"0.01": 0.0, "0.001": 1.0, "0.0001": 0.0}, "pilot_seeds": 4, "pilot_episodes": 20}
    cells = {name: usual | {"scores": scores[:seeds].tolist()} for name, scores in found.items()}
    return cells | {f"{world}, {policy}": cells[f"{world}, {policy}"] | chosen}


@pytest.mark.parametrize(("seeds", "outcome"), [(12, REPRODUCED), (11, NOT_DECIDED)])
def test_policies_are_judged_on_twelve_seeds(seeds, outcome):
    assert judge_all("figure-6", figure_6(seeds=seeds)) == [outcome] * 6


@pytest.mark.parametrize(
    ("chosen", "outcome"),
    [
        ({"rate": 1e-3}, REPRODUCED),
        ({"rate": 1e-2}, NOT_DECIDED),
        ({"rate": 1e-4}, NOT_DECIDED),
        ({"rate": 1e-2, "pilots": {"0.01": 1.0, "0.001": 0.0, "0.03, σ times 3": 0.0}}, NOT_DECIDED),
        ({"pilot_seeds": 3}, NOT_DECIDED),
        ({"pilot_seeds": None}, NOT_DECIDED),
        ({"pilot_episodes": 19}, NOT_DECIDED),
    ],
)
def test_a_world_is_judged_only_if_every_rate_was_chosen_inside_the_grid_by_whole_pilots(chosen, outcome):
    assert judge_all("figure-6", figure_6("CartPole-v1", "parameter noise", **chosen))[2:4] == [outcome] * 2


@pytest.mark.parametrize(("others", "outcomes"), [(190.0, REPRODUCED), (190.1, NOT_DECIDED)])
def test_a_score_can_be_higher_only_below_the_highest(others, outcomes):
    found = judge_all("figure-6", figure_6(others=others))
    assert found == [outcomes, *[REPRODUCED] * 5]


def test_a_world_without_cells_is_not_run():
    found = {name: cell for name, cell in figure_6().items() if "v1" not in name}
    assert judge_all("figure-6", found)[2:4] == [NOT_RUN] * 2


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("policy", ["deterministic", "parameter noise"])
@pytest.mark.parametrize(
    ("late", "outcome"), [(HALF + 1e-3, REPRODUCED), (HALF - 1e-3, DIRECTION), (1e-3, DIRECTION), (-1e-3, NOT)]
)
def test_the_variance_policy_ends_higher_than_both_others(world, policy, late, outcome):
    claim = 2 * WORLDS.index(world)
    assert judge("figure-6", figure_6(world, policy, late=late), claim) == outcome
    assert judge("figure-6", figure_6(world, policy, late=late), (claim + 2) % 6) == REPRODUCED


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("policy", ["deterministic", "parameter noise"])
@pytest.mark.parametrize(
    ("early", "outcome"), [(-HALF - 1e-3, REPRODUCED), (-HALF + 1e-3, DIRECTION), (-1e-3, DIRECTION), (1e-3, NOT)]
)
def test_the_variance_policy_is_slower_than_both_others(world, policy, early, outcome):
    claim = 2 * WORLDS.index(world) + 1
    assert judge("figure-6", figure_6(world, policy, early=early), claim) == outcome


# --- figure 7 ---------------------------------------------------------------------------------------------------------

WAYS = ("one draw", "average", "100 draws", "transfer")
NOISY = ("dropout", "variance", "variance ensemble")


def figure_7(through="one draw", entropies=None, networks=5, images=1000, accuracies=None, spread=0.0, **success):
    """Areas of ten blocks of images, those of the variance network spread; entropies are gains over that of clean images."""
    own = {"deterministic": 0.6, "dropout": 0.5, "deep_ensemble": 0.5, "variance": 0.4, "variance_ensemble": 0.3} | success
    gains = {"variance": 0.1, "variance ensemble": 0.1} | (entropies or {})
    found = {}
    for key, value in own.items():
        method = key.replace("_", " ")
        for way in WAYS if method in NOISY else ("average", "transfer"):
            is_asked = way == through or (way == "average" and method not in NOISY and through != "transfer")
            mean = value if is_asked else {"deterministic": 0.6}.get(method, 0.45)
            steps = spread * np.array([-1, 1] * 5) if method == "variance" else np.zeros(10)
            cell = {
                "areas": (mean + steps).tolist(),
                "success": [mean, mean],
                "entropy": [1.0, 5.0, 1.0 + gains.get(method, 0.0)],
            }
            cell |= {"accuracy": (accuracies or {}).get(method, 0.9), "images": images}
            found |= {f"{method}, {way}, seed {i}": cell for i in range(1, 2 if "ensemble" in method else networks + 1)}
    return found


CLAIMS = {"one draw": 0, "average": 1, "100 draws": 3, "transfer": 4}


@pytest.mark.parametrize("through", WAYS)
@pytest.mark.parametrize(
    ("success", "outcome"),
    [
        ({}, REPRODUCED),
        ({"variance_ensemble": 0.3999}, REPRODUCED),
        ({"variance_ensemble": 0.4001}, NOT),  # not the lowest
        ({"variance": 0.4999}, REPRODUCED),
        ({"variance": 0.5001}, DIRECTION),
        ({"deterministic": 0.3999}, DIRECTION),
        ({"dropout": 0.3999}, DIRECTION),
        ({"deep_ensemble": 0.3999}, DIRECTION),
        ({"dropout": 0.3001}, DIRECTION),
        ({"dropout": 0.2999}, NOT),
    ],
)
def test_variance_networks_are_attacked_least(through, success, outcome):
    assert judge("figure-7", figure_7(through, **success), CLAIMS[through]) == outcome


BLOCK_HALF = 2.26216 / 10**0.5 * (10 / 9) ** 0.5
"""Half of the interval of a mean of ten blocks that are half of them 1 above and half of them 1 below it, by Student's t."""


@pytest.mark.parametrize(("spread", "outcome"), [(0.0999 / BLOCK_HALF, REPRODUCED), (0.1001 / BLOCK_HALF, DIRECTION)])
def test_a_variance_network_is_attacked_less_beyond_the_interval_over_blocks(spread, outcome):
    assert judge("figure-7", figure_7(spread=spread), 0) == outcome


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, REPRODUCED),
        ({"images": 999}, NOT_DECIDED),
        ({"networks": 4}, NOT_DECIDED),
        ({"accuracies": {"deterministic": 0.85}}, REPRODUCED),
        ({"accuracies": {"deterministic": 0.8499}}, NOT_DECIDED),
        ({"accuracies": {"variance": 0.8701}}, REPRODUCED),
        ({"accuracies": {"variance": 0.8699}}, NOT_DECIDED),
    ],
)
def test_attacks_are_judged_on_enough_images_and_networks_that_are_about_as_accurate(change, outcome):
    assert judge("figure-7", figure_7(**change), 0) == outcome


def test_an_attack_without_cells_is_not_run():
    found = {name: cell for name, cell in figure_7().items() if "transfer" not in name and "100" not in name}
    assert judge_all("figure-7", found)[3:] == [NOT_RUN] * 2


@pytest.mark.parametrize(
    ("gains", "outcome"),
    [
        ({"variance": 1e-3}, REPRODUCED),
        ({"variance": -1e-3}, NOT),
        ({"variance ensemble": 1e-3}, REPRODUCED),
        ({"variance ensemble": 0.0}, NOT),
        ({"dropout": -1e-3}, REPRODUCED),
        ({"dropout": 1e-3}, DIRECTION),
        ({"deterministic": 1e-3}, DIRECTION),
        ({"deep ensemble": 1e-3}, DIRECTION),
    ],
)
def test_only_variance_networks_are_less_sure_of_attacked_images(gains, outcome):
    assert judge("figure-7", figure_7(entropies=gains), 2) == outcome
