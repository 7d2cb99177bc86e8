"""The comparison as one HTML file that opens from disk, without a network."""

import functools
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..core.files import replace_non_finite
from .columns import COSTS, SHARE, Column, columns, is_regression, marks
from .figures import Figure, figures
from .palette import PATHS, style, themes
from .reading import Value, counted, finite, read, spread, written

if TYPE_CHECKING:
    from jinja2 import Environment

IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp|bmp);base64,[A-Za-z0-9+/=\s]+")


def page(results: dict[str, Any]) -> str:
    """The whole report: recommendation, table, figures, images, configuration."""
    try:
        from markupsafe import Markup
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError("the report needs jinja2 and plotly: pip install jinja2 plotly") from error

    results = replace_non_finite(results)
    shown, drawn = columns(results), figures(results)
    rows = _rows(results, shown)
    by_name = {row["name"]: row for row in rows}
    # A string in a script ends it at "</script", wherever that stands.
    plotly = get_plotlyjs().replace("</script", "<\\/script") if drawn else ""
    code = {"css": _part("page.css"), "js": _part("page.js"), "plotly": plotly}
    return _template().render(
        title=results.get("title") or "Comparison",
        compared=_compared(results),
        recommendation=[entry | {"entry": by_name.get(entry.get("method"))} for entry in results.get("recommendation") or []],
        notes=results.get("notes") or [],
        themes=themes(),
        columns=[_head(column, place, shown) for place, column in enumerate(shown)],
        rows=rows,
        reading=_reading(results, shown),
        about=_about(results),
        figures=drawn,
        reliable=[row for row, method in zip(rows, results["methods"], strict=True) if method.get("reliability")],
        unsure=_unsure(results, rows),
        command=results.get("command"),
        setup=_setup(results),
        drawn=Markup(_script(drawn)),
        **{name: Markup(text) for name, text in code.items()},
    )


@functools.cache
def _environment() -> "Environment":
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


def _template() -> Any:
    return _environment().from_string(_part("page.html.jinja"))


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _script(drawn: list[Figure]) -> str:
    """The figures as JSON inside a script element: no `<` in it, so nothing in a name ends the script."""
    panels = {
        f"{figure.name}-{place}": {
            "figure": figure.name,
            "labels": panel.labels,
            "views": [{"alt": view.alt, "data": view.data, "layout": view.layout} for view in panel.views],
        }
        for figure in drawn
        for place, panel in enumerate(figure.panels)
    }
    text = json.dumps(replace_non_finite({"themes": themes(), "panels": panels}), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _compared(results: dict[str, Any]) -> str:
    """One line: data, network, budget, seeds, rows."""
    data = results.get("data") or {}
    seeds = results.get("seeds") or []
    outputs = "regression" if is_regression(results) else f"{len(data['classes'])} classes" if data.get("classes") else ""
    sizes = [f"{data[part]:,} {word} rows" for part, word in (("train", "training"), ("test", "test")) if data.get(part)]
    told = [
        f"{counted(len(results['methods']), 'method')} on {data.get('name') or 'the data'}",
        *([f"{results['model']} as the network"] if results.get("model") else []),
        *([outputs] if outputs else []),
        *([" and ".join(sizes)] if sizes else []),
        *([f"held equal: {results['budget']['text']}"] if (results.get("budget") or {}).get("text") else []),
        *([counted(len(seeds), "seed") + f" ({', '.join(map(str, seeds))})"] if seeds else []),
    ]
    return " · ".join(told)


def _head(column: Column, place: int, shown: list[Column]) -> dict[str, Any]:
    first = "descending" if column.better == "high" else "ascending"
    return {"title": column.title, "unit": column.unit, "about": column.about, "first": first, "group": _group(place, shown)}


def _group(place: int, shown: list[Column]) -> str:
    """A rule stands where scores end and costs begin, and where those end."""
    costs = [column.key in {SHARE.key, *(cost.key for cost in COSTS)} for column in shown]
    return "new" if place and costs[place] != costs[place - 1] else ""


def _rows(results: dict[str, Any], shown: list[Column]) -> list[dict[str, Any]]:
    marked = [marks(column, [column.of(method) for method in results["methods"]]) for column in shown]
    rows = []
    for index, method in enumerate(results["methods"]):
        look, members = style(index), method.get("members")
        rows.append(
            {
                "name": method["name"],
                "parts": re.findall(r"[^:,]+[:,]?|[:,]", str(method["name"])),
                "look": look._asdict() | {"path": PATHS[look.shape]},
                "members": counted(members, "member") if members else "",
                "cells": [
                    _cell(column, column.of(method), marked[place][index], _group(place, shown))
                    for place, column in enumerate(shown)
                ],
            }
        )
    return rows


def _cell(column: Column, v: Value | None, mark: str, group: str) -> dict[str, Any]:
    if v is None:
        return {"text": "–", "spread": "", "value": None, "mark": "", "group": group}
    text = written(v.value, column.kind, unit=False)
    return {"text": text, "spread": spread(v, column.kind), "value": repr(v.value), "mark": mark, "group": group}


def _reading(results: dict[str, Any], shown: list[Column]) -> str:
    several = len(results.get("seeds") or []) > 1
    text = ""
    if len(results["methods"]) > 1:
        text += "★ is the best mean of a column, ≈ a method whose interval (or spread over seeds) overlaps that of the best: "
        text += "the table does not tell them apart. "
    if several:
        text += "Small beside a mean: ± one standard deviation over seeds, or the 95 % interval. "
    else:
        scores = [
            v for column in shown if column.path[0] == "scores" for method in results["methods"] if (v := column.of(method))
        ]
        drawn = any(v.low is not None for v in scores)
        text += (
            "One seed: what stands small is a 95 % interval over rows alone (of the latency, over repeats). "
            if drawn
            else "One seed: no spread. "
        )
    if any(column in COSTS for column in shown):
        text += "Costs are of the deployed form, as ratios to one network."
    return text.strip()


def _about(results: dict[str, Any]) -> dict[str, Any]:
    head = ["method", "what it is", "spec", "members", "epochs", "training", "form", "passes", "runs"]
    rows = []
    for method in results["methods"]:
        cost, seconds = method.get("cost") or {}, read(method, "seconds")
        rest = [method.get("members"), method.get("epochs"), f"{seconds.value:,.1f} s" if seconds else None]
        rest += [cost.get("form"), _number(cost.get("passes")), ", ".join(map(str, method.get("runs") or []))]
        cells = [method["name"], method.get("about"), method.get("spec"), *rest]
        rows.append([str(cell) if cell not in (None, "") else "–" for cell in cells])
    kept = [0, *(i for i in range(1, len(head)) if any(row[i] != "–" for row in rows))]
    return {"caption": "", "head": [head[i] for i in kept], "rows": [[row[i] for i in kept] for row in rows]}


def _number(x: Any) -> str | None:
    found = finite(x)
    return None if found is None else f"{found:.3g}"


def _unsure(results: dict[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for row, method in zip(rows, results["methods"], strict=True):
        cases = [_case(case) for case in method.get("unsure") or []]
        if cases:
            found.append({"entry": row, "cases": cases})
    return found


def _case(case: dict[str, Any]) -> dict[str, Any]:
    truth, answer, confidence = (case.get(key) for key in ("truth", "answer", "confidence"))
    sure = finite(confidence)
    image = case.get("image")
    # Only pixels that are in the file already: an address would be fetched.
    image = image if isinstance(image, str) and IMAGE.fullmatch(image) else None
    said = [f"truth {truth}"] if truth is not None else []
    said += [f"answer {answer}"] if answer is not None else []
    said += [f"confidence {100 * sure:.0f} %"] if sure is not None else []
    return {
        "image": image,
        "alt": ", ".join(said) or "a test row",
        "truth": truth,
        "answer": "–" if answer is None else answer,
        "right": None if truth is None or answer is None else str(truth) == str(answer),
        "confidence": f"{100 * sure:.0f} % sure" if sure is not None else "",
    }


def _setup(results: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    parts = (("Settings", results.get("settings")), ("Versions", results.get("versions")), ("Machine", results.get("machine")))
    made = [(heading, _facts(part)) for heading, part in parts if part]
    data = {name: found for name, found in (results.get("data") or {}).items() if name != "classes"}
    made.insert(0, ("Data", _facts(data)))
    seconds = read(results, "seconds")
    if seconds:
        made.append(("Time", [("training, summed over the runs", f"{seconds.value:,.0f} s")]))
    return [(heading, facts) for heading, facts in made if facts]


def _facts(x: Any) -> list[tuple[str, str]]:
    if not isinstance(x, dict):
        return [("", str(x))]
    return [(str(name), _fact(entry)) for name, entry in x.items() if entry is not None and entry != {}]


def _fact(x: Any) -> str:
    if isinstance(x, dict):
        return ", ".join(f"{name} {_fact(entry)}" for name, entry in x.items())
    if isinstance(x, list):
        return (
            " × ".join(map(str, x)) if all(isinstance(entry, int) for entry in x) and len(x) < 5 else ", ".join(map(_fact, x))
        )
    return f"{x:g}" if isinstance(x, float) else str(x)
