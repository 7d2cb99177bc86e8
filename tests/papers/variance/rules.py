"""What the tests of the recipes' rules share."""

from pluribus.papers import load_recipes

REPRODUCED, DIRECTION, NOT, NOT_RUN = "reproduced", "direction reproduced", "not reproduced", "not run at this scale"


def judge(artefact: str, found: dict, claim: int) -> str:
    """The outcome of one claim of a recipe of the Variance paper."""
    return load_recipes()[f"variance/{artefact}"].judge(found)[claim].outcome
