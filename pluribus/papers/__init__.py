"""The papers' tables and figures as recipes: `pluribus reproduce variance/table-1 --scale cpu`.

<paper>/<artefact>.py is one recipe and holds a `RECIPE`; <paper>/__init__.py describes the paper. recipe.py defines a recipe,
reproduction.py runs one, verdicts.py has the rules for verdicts, results.py the JSON that a run leaves, and page.py the page
that shows our numbers beside the paper's. trained_runs.py trains networks that several recipes need once, tuned_settings.py
chooses their settings, classification_scores.py scores them; image_folders.py finds or generates folders of images.
"""

import importlib
import pkgutil
from functools import cache

from ..core.errors import PluribusError
from ..core.suggestions import describe_unknown
from .recipe import SCALES, Found, Json, Recipe, Scale, Workspace
from .verdicts import OUTCOMES, Verdict

__all__ = [
    "OUTCOMES",
    "PAPERS",
    "SCALES",
    "Found",
    "Json",
    "Recipe",
    "Scale",
    "Verdict",
    "Workspace",
    "load_recipes",
    "select_recipes",
]

PAPERS = ("variance", "mimo", "mixture", "inner")
"""The folders beside this file that hold recipes."""


class RecipeError(PluribusError, ValueError):
    """No recipe has this name."""


@cache
def load_recipes() -> dict[str, Recipe]:
    """Return every recipe by its id, in the order that its paper's `ORDER` gives.

    >>> list(load_recipes())[0]
    'variance/figure-1'
    """
    found: dict[str, Recipe] = {}
    for paper in PAPERS:
        package = importlib.import_module(f"{__name__}.{paper}")
        names = [module.name for module in pkgutil.iter_modules(package.__path__)]
        modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
        own = {module.RECIPE.id: module.RECIPE for module in modules if hasattr(module, "RECIPE")}
        found |= dict(sorted(own.items(), key=lambda pair: package.ORDER.index(pair[1].name)))
    return found


def select_recipes(names: list[str]) -> list[Recipe]:
    """Return the recipes that the names mean, each once.

    Args:
        names: ids of recipes, as `variance/table-1`; `variance/ALL` means all of a paper, `ALL` all of every paper.

    Raises:
        RecipeError: if a name means no recipe.

    >>> [recipe.id for recipe in select_recipes(["variance/table-1"])]
    ['variance/table-1']
    """
    every = load_recipes()
    wanted: dict[str, Recipe] = {}
    for name in names:
        paper, _, artefact = name.partition("/")
        if name.upper() == "ALL":
            wanted |= every
        elif artefact.upper() == "ALL" and paper in PAPERS:
            wanted |= {key: recipe for key, recipe in every.items() if recipe.paper_name == paper}
        elif name in every:
            wanted[name] = every[name]
        elif not artefact and paper in PAPERS:
            raise RecipeError(f"{name} is a paper: {name}/ALL runs all of it, `pluribus reproduce --list` shows its parts")
        else:
            raise RecipeError(f"{describe_unknown('recipe', name, every)} `pluribus reproduce --list` shows all")
    return list(wanted.values())
