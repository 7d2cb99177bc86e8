"""What a recipe leaves: <out>/<paper>/results/<artefact>.<scale>.json, its figure, and the paper's page.

    format     1
    id, title, question, source, scale, about, untold, departures     what was asked, and at which size
    complete   whether every cell is finished; else `rows` has those that are, and there are no verdicts
    seeds      those of the cells
    seconds    of all cells together
    columns    headings by key;  rows: ours;  paper: the paper's, with the same keys
    verdicts   claim, outcome, rule, evidence
    cells      name → options, seconds, about (versions and machine), found

Everything that people read is made from this file.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path

from ..core.errors import FileError
from ..core.files import format_json, write_file
from .recipe import SCALES, Json, Recipe


def path(out: Path, recipe: Recipe, scale: str) -> Path:
    return out / recipe.of / "results" / f"{recipe.name}.{scale}.json"


def read(file: Path) -> Json:
    """What was recorded, or nothing; a file that is something else is not overwritten."""
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["format"] != 1:
            raise KeyError("format")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{file} does not hold what `pluribus reproduce` leaves: move it away, or name another --out"
        ) from error
    return found


def save(out: Path, recipe: Recipe, scale: str, cells: dict[str, Json]) -> Json:
    """The result so far; figure and page with it once it is complete."""
    from .page import write_page

    result = made(recipe, scale, cells)
    file = path(out, recipe, scale)
    write_file(file, format_json(result) + "\n")
    if result["complete"]:
        if recipe.draw is not None:
            from ..reports.svg import draw_svg

            draw = recipe.draw
            write_file(file.with_suffix(".svg"), draw_svg(lambda figure: draw(figure, result)))
        write_page(out, recipe.of)
    return result


def made(recipe: Recipe, scale: str, cells: dict[str, Json]) -> Json:
    size = recipe.scales[scale]
    cells = {name: cells[name] for name in size.cells if name in cells}
    found = {name: cell["found"] for name, cell in cells.items()}
    complete = len(cells) == len(size.cells)
    verdicts = recipe.judge(found) if complete else []
    if scale == "smoke":  # it shows that everything runs, and nothing else
        verdicts = [replace(verdict, outcome="not run at this scale") for verdict in verdicts]
    asked = [cell["options"] for cell in cells.values()]
    seeds = {seed for options in asked for seed in options.get("seeds", [options["seed"]] if "seed" in options else [])}
    return {
        "format": 1,
        **{key: getattr(recipe, key) for key in ("id", "title", "question", "source")},
        "scale": scale,
        "about": size.about,
        "untold": dict(size.untold),
        "departures": list(recipe.departures),
        "complete": complete,
        "seeds": sorted(seeds),
        "seconds": round(sum(cell["seconds"] for cell in cells.values()), 1),
        "columns": dict(recipe.columns),
        "rows": recipe.rows(found),
        "paper": list(recipe.paper),
        "verdicts": [asdict(verdict) for verdict in verdicts],
        "figure": recipe.draw is not None,
        "cells": cells,
    }


def best(out: Path, recipe: Recipe) -> Json:
    """The complete result at the largest scale, or nothing."""
    for scale in reversed(SCALES):
        result = read(path(out, recipe, scale))
        if result.get("complete"):
            return result
    return {}


def of_paper(out: Path, paper: str) -> dict[str, Json]:
    """The best result of every recipe of a paper, by id."""
    from . import recipes

    return {key: result for key, recipe in recipes().items() if recipe.of == paper and (result := best(out, recipe))}
