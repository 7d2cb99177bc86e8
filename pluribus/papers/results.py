"""The results of a recipe: <out>/<paper>/results/<artefact>.<scale>.json, its figure, and the paper's page.

    format     1
    id, title, question, source, scale, about, departures     what was asked, and at which size
    untold     what the paper has and this scale does not run, with the reason
    complete   whether every cell is finished; if not, `rows` has the finished ones and there are no verdicts
    seeds      the seeds of the cells
    seconds    the time of all cells together
    columns    headings by key;  rows: our rows;  paper: the paper's rows, with the same keys
    verdicts   claim, outcome, rule, evidence
    cells      name → options, seconds, about (versions, machine, and commits where the code is a checkout), found (what the
               cell measured)
    earlier    true where the cells have other options than the scale has now: the result then keeps the description of its own
               setting, and its verdicts follow the present rules

Tables, figures and pages are made from this file alone.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path

from ..core.files import format_json, write_file
from ..file_formats.paper_files import build_result_schema
from ..file_formats.reading import read_json, write_json
from .recipe import SCALES, Json, Recipe


def locate_result(out: Path, recipe: Recipe, scale: str) -> Path:
    """Return the file of a recipe's result at a scale, below the folder `out`."""
    return out / recipe.paper_name / "results" / f"{recipe.name}.{scale}.json"


def read_result(out: Path, recipe: Recipe, scale: str) -> Json:
    """Return the recorded result of a recipe at a scale, or {} if there is none below the folder `out`.

    Raises:
        FileError: if the file holds something else, or cells that measured something else; it must not be overwritten then.
    """
    file = locate_result(out, recipe, scale)
    return read_json(file, build_result_schema(recipe.measured)) if file.exists() else {}


def save_result(out: Path, recipe: Recipe, scale: str, cells: dict[str, Json]) -> Json:
    """Write the result of the finished cells, and also figure and page once all cells are finished.

    Args:
        out: the folder of all papers.
        cells: finished cells by name, with `options`, `seconds`, `about` and `found`.

    Returns:
        The result, as the docstring of this module describes it.
    """
    from .page import write_page

    result = build_result(recipe, scale, cells)
    file = locate_result(out, recipe, scale)
    write_json(file, result)
    if result["complete"]:
        if recipe.draw is not None:
            from ..reports.svg import draw_svg

            draw = recipe.draw
            write_file(file.with_suffix(".svg"), draw_svg(lambda figure: draw(figure, result)))
        write_page(out, recipe.paper_name)
    return result


def build_result(recipe: Recipe, scale: str, cells: dict[str, Json]) -> Json:
    """Return the result of the finished cells: once they are all there, rows and verdicts follow by the recipe's rules."""
    size = recipe.scales[scale]
    cells = {name: cells[name] for name in size.cells if name in cells}
    found = {name: cell["found"] for name, cell in cells.items()}
    complete = len(cells) == len(size.cells)
    verdicts = recipe.judge(found) if complete else []
    if scale == "smoke":  # this scale shows that everything runs; its numbers mean nothing
        verdicts = [replace(verdict, outcome="not run at this scale") for verdict in verdicts]
    asked = [cell["options"] for cell in cells.values()]
    seeds = {seed for options in asked for seed in options.get("seeds", [options["seed"]] if "seed" in options else [])}
    return {
        "format": 1,
        **{key: getattr(recipe, key) for key in ("id", "title", "question", "source")},
        "scale": scale,
        "about": size.about,
        "untold": dict(size.not_run),
        "departures": list(recipe.departures),
        "complete": complete,
        "seeds": sorted(seeds),
        "seconds": round(sum(cell["seconds"] for cell in cells.values()), 1),
        "columns": dict(recipe.columns),
        "rows": recipe.tabulate(found) if complete else [],
        "paper": list(recipe.published),
        "verdicts": [asdict(verdict) for verdict in verdicts],
        "figure": recipe.draw is not None,
        "cells": cells,
    }


def rebuild_result(recipe: Recipe, recorded: Json) -> Json:
    """Return a complete recorded result as the present rules make it of its cells.

    Cells that were measured with other options than the scale has now stay, with the description of their own setting, until
    the recipe is run again: a rule that needs what they did not measure must say "not decided at this scale".
    """
    options = {name: cell["options"] for name, cell in recorded["cells"].items()}
    if options == json.loads(format_json(dict(recipe.scales[recorded["scale"]].cells))):
        return build_result(recipe, recorded["scale"], recorded["cells"])
    found = {name: cell["found"] for name, cell in recorded["cells"].items()}
    verdicts = [asdict(verdict) for verdict in recipe.judge(found)]
    own = {
        "columns": dict(recipe.columns),
        "rows": recipe.tabulate(found),
        "paper": list(recipe.published),
        "verdicts": verdicts,
    }
    return recorded | {"title": recipe.title, "question": recipe.question, "earlier": True} | own


def refresh_results(out: Path, paper: str) -> None:
    """Write all complete results of a paper, and its page, as the present rules make them of the recorded cells."""
    from . import load_recipes
    from .page import write_page

    for recipe in load_recipes().values():
        for scale in SCALES if recipe.paper_name == paper else ():
            recorded = read_result(out, recipe, scale)
            if recorded.get("complete"):
                write_json(locate_result(out, recipe, scale), rebuild_result(recipe, recorded))
    write_page(out, paper)


def find_best_result(out: Path, recipe: Recipe) -> Json:
    """Return the complete result at the largest scale, or {}."""
    for scale in reversed(SCALES):
        result = read_result(out, recipe, scale)
        if result.get("complete"):
            return result
    return {}


def read_paper_results(out: Path, paper: str) -> dict[str, Json]:
    """Return the best result of every recipe of a paper, by id."""
    from . import load_recipes

    return {
        key: result
        for key, recipe in load_recipes().items()
        if recipe.paper_name == paper and (result := find_best_result(out, recipe))
    }
