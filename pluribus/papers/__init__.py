"""The papers' tables and figures as recipes: `pluribus reproduce variance/table-1 --scale cpu`.

<paper>/<artefact>.py is one recipe, and holds a `RECIPE`; <paper>/__init__.py says what the paper is. recipe.py is what a
recipe is, run.py runs one, verdicts.py has the rules for verdicts, page.py writes the page that shows ours beside the paper's.
"""

import importlib
import pkgutil
from functools import cache

from ..core.errors import PluribusError
from ..core.suggestions import describe_unknown
from .recipe import SCALES, Found, Json, Place, Recipe, Scale
from .verdicts import OUTCOMES, Verdict

__all__ = ["OUTCOMES", "PAPERS", "SCALES", "Found", "Json", "Place", "Recipe", "Scale", "Verdict", "chosen", "recipes"]

PAPERS = ("variance",)
"""The folders beside this file that hold recipes."""


class RecipeError(PluribusError, ValueError):
    """There is no such recipe, or it cannot be run so."""


@cache
def recipes() -> dict[str, Recipe]:
    """All of them, by id, in the order that their paper's `ORDER` gives."""
    found: dict[str, Recipe] = {}
    for paper in PAPERS:
        package = importlib.import_module(f"{__name__}.{paper}")
        names = [module.name for module in pkgutil.iter_modules(package.__path__)]
        modules = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
        own = {module.RECIPE.id: module.RECIPE for module in modules if hasattr(module, "RECIPE")}
        found |= dict(sorted(own.items(), key=lambda pair: package.ORDER.index(pair[1].name)))
    return found


def chosen(names: list[str]) -> list[Recipe]:
    """By id; `variance/ALL` is all of a paper, `ALL` all of all papers."""
    every = recipes()
    wanted: dict[str, Recipe] = {}
    for name in names:
        paper, _, artefact = name.partition("/")
        if name.upper() == "ALL":
            wanted |= every
        elif artefact.upper() == "ALL" and paper in PAPERS:
            wanted |= {key: recipe for key, recipe in every.items() if recipe.of == paper}
        elif name in every:
            wanted[name] = every[name]
        elif not artefact and paper in PAPERS:
            raise RecipeError(f"{name} is a paper: {name}/ALL runs all of it, `pluribus reproduce --list` shows its parts")
        else:
            raise RecipeError(f"{describe_unknown('recipe', name, every)} `pluribus reproduce --list` shows all")
    return list(wanted.values())
