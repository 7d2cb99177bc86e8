"""The comparison as one HTML file that needs no other file and no network."""

import json
import re
from typing import Any

from ..core.files import replace_non_finite
from .figures import Figure, make_figures
from .html_table import describe_comparison, explain_table, make_heading, make_rows
from .palette import list_themes
from .table_columns import select_columns
from .templates import load_template, read_asset
from .tuning_table import explain_tuning, make_tuning_table
from .values import read_value, to_finite

IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp|bmp);base64,[A-Za-z0-9+/=\s]+")


def render_page(results: dict[str, Any]) -> str:
    """Return the HTML page of a comparison: recommendation, table, figures, images and configuration.

    Args:
        results: what `results.json` holds; the schema is in `pluribus.reports`.

    Raises:
        ImportError: jinja2 or plotly is not installed.
    """
    try:
        from markupsafe import Markup
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError("the report needs jinja2 and plotly: pip install jinja2 plotly") from error

    results = replace_non_finite(results)
    shown, drawn = select_columns(results), make_figures(results)
    rows = make_rows(results, shown)
    by_name = {row["name"]: row for row in rows}
    # "</script" ends a script even inside a string.
    plotly = get_plotlyjs().replace("</script", "<\\/script") if drawn else ""
    code = {"css": read_asset("page.css"), "js": read_asset("page.js"), "plotly": plotly}
    return load_template("page.html.jinja").render(
        title=results.get("title") or "Comparison",
        compared=describe_comparison(results),
        recommendation=[entry | {"entry": by_name.get(entry.get("method"))} for entry in results.get("recommendation") or []],
        notes=results.get("notes") or [],
        themes=list_themes(),
        columns=[make_heading(column, place, shown) for place, column in enumerate(shown)],
        rows=rows,
        reading=explain_table(results, shown),
        about=_describe_methods(results),
        figures=drawn,
        lead=next((figure for figure in drawn if figure.name == "equivalents"), None),
        reliable=[row for row, method in zip(rows, results["methods"], strict=True) if method.get("reliability")],
        tuning=_describe_tuning(results),
        unsure=_list_uncertain_rows(results, rows),
        command=results.get("command"),
        setup=_describe_setup(results),
        drawn=Markup(_serialize_figures(drawn)),
        **{name: Markup(text) for name, text in code.items()},
    )


def _serialize_figures(drawn: list[Figure]) -> str:
    """Return the figures as JSON without `<`, so that no name in it can end the script element."""
    panels = {
        f"{figure.name}-{place}": {
            "figure": figure.name,
            "labels": panel.labels,
            "views": [{"alt": view.alt, "data": view.data, "layout": view.layout} for view in panel.views],
        }
        for figure in drawn
        for place, panel in enumerate(figure.panels)
    }
    text = json.dumps(replace_non_finite({"themes": list_themes(), "panels": panels}), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _describe_tuning(results: dict[str, Any]) -> dict[str, Any] | None:
    table = make_tuning_table(results)
    return None if table is None else {"reading": explain_tuning(results), "table": table}


def _describe_methods(results: dict[str, Any]) -> dict[str, Any]:
    head = ["method", "what it is", "spec", "members", "epochs", "training", "form", "passes", "runs"]
    rows = []
    for method in results["methods"]:
        cost, seconds = method.get("cost") or {}, read_value(method, "seconds")
        rest = [method.get("members"), method.get("epochs"), f"{seconds.value:,.1f} s" if seconds else None]
        rest += [cost.get("form"), _format_number(cost.get("passes")), ", ".join(map(str, method.get("runs") or []))]
        about = " ".join(filter(None, [method.get("about"), _end_sentence(method.get("equivalence"))]))
        cells = [method["name"], about, method.get("spec"), *rest]
        rows.append([str(cell) if cell not in (None, "") else "–" for cell in cells])
    kept = [0, *(i for i in range(1, len(head)) if any(row[i] != "–" for row in rows))]
    return {"caption": "", "head": [head[i] for i in kept], "rows": [[row[i] for i in kept] for row in rows]}


def _end_sentence(text: str | None) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _format_number(x: Any) -> str | None:
    found = to_finite(x)
    return None if found is None else f"{found:.3g}"


def _list_uncertain_rows(results: dict[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for row, method in zip(rows, results["methods"], strict=True):
        cases = [_describe_row(case) for case in method.get("unsure") or []]
        if cases:
            found.append({"entry": row, "cases": cases})
    return found


def _describe_row(case: dict[str, Any]) -> dict[str, Any]:
    truth, answer, confidence = (case.get(key) for key in ("truth", "answer", "confidence"))
    sure = to_finite(confidence)
    image = case.get("image")
    # Only images inside the file are shown: the browser would fetch an address.
    image = image if isinstance(image, str) and IMAGE.fullmatch(image) else None
    facts = [f"truth {truth}"] if truth is not None else []
    facts += [f"answer {answer}"] if answer is not None else []
    facts += [f"confidence {100 * sure:.0f} %"] if sure is not None else []
    return {
        "image": image,
        "alt": ", ".join(facts) or "a test row",
        "truth": truth,
        "answer": "–" if answer is None else answer,
        "right": None if truth is None or answer is None else str(truth) == str(answer),
        "confidence": f"{100 * sure:.0f} % sure" if sure is not None else "",
    }


def _describe_setup(results: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    parts = (("Settings", results.get("settings")), ("Versions", results.get("versions")), ("Machine", results.get("machine")))
    made = [(heading, _list_facts(part)) for heading, part in parts if part]
    data = {name: found for name, found in (results.get("data") or {}).items() if name != "classes"}
    made.insert(0, ("Data", _list_facts(data)))
    seconds = read_value(results, "seconds")
    if seconds:
        made.append(("Time", [("training, summed over the runs", f"{seconds.value:,.0f} s")]))
    return [(heading, facts) for heading, facts in made if facts]


def _list_facts(x: Any) -> list[tuple[str, str]]:
    if not isinstance(x, dict):
        return [("", str(x))]
    return [(str(name), _format_fact(entry)) for name, entry in x.items() if entry is not None and entry != {}]


def _format_fact(x: Any) -> str:
    if isinstance(x, dict):
        return ", ".join(f"{name} {_format_fact(entry)}" for name, entry in x.items())
    if isinstance(x, list):
        return (
            " × ".join(map(str, x))
            if all(isinstance(entry, int) for entry in x) and len(x) < 5
            else ", ".join(map(_format_fact, x))
        )
    return f"{x:g}" if isinstance(x, float) else str(x)
