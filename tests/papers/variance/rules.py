"""What the tests of the recipes' rules share."""

from pluribus.papers import load_recipes

REPRODUCED, DIRECTION, NOT, NOT_RUN = "reproduced", "direction reproduced", "not reproduced", "not run at this scale"
NOT_DECIDED = "not decided at this scale"
SPREAD = (-1, 0, 1)
"""Three seeds with mean 0 and standard deviation 1."""
HALF = 4.30265 / 3**0.5
"""Half of the interval of a mean of three values with standard deviation 1, by Student's t."""


def judge(artefact: str, found: dict, claim: int) -> str:
    """The outcome of one claim of a recipe of the Variance paper."""
    return judge_all(artefact, found)[claim]


def judge_all(artefact: str, found: dict) -> list[str]:
    """The outcomes of all claims of a recipe."""
    return [verdict.outcome for verdict in load_recipes()[f"variance/{artefact}"].judge(found)]


def track(moved=0.0, log_alpha_moved=0.0, end=5.0):
    """What is tracked of a training: the last tenth of it moves the bound by a share, and log α, which ends at `end`."""
    return [
        {"epoch": 9, "data": -90 * (1 + moved), "kl": 10 * (1 + moved), "log_alpha": {"dense1": end - log_alpha_moved}},
        {"epoch": 10, "data": -90, "kl": 10, "log_alpha": {"dense1": end}},
    ]


def over_seeds(found, seeds=(1, 2, 3), base=0.99, **tracked):
    """Every cell with each of some seeds, of networks that can be judged unless something else is asked for."""
    own = {"base": base, "bounds": track(**tracked)}
    return {f"{name}, seed {seed}": own | cell for name, cell in found.items() for seed in seeds}


def vary(found, row, key, spread):
    """The same with a value of a row that differs between seeds by `spread`, its mean kept."""
    return found | {
        name: found[name] | {key: found[name][key] + spread * step}
        for name, step in zip([f"{row}, seed {seed}" for seed in (1, 2, 3)], SPREAD, strict=True)
    }
