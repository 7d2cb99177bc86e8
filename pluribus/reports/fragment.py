"""The comparison as a piece of HTML for a notebook: recommendation, table and figures, with no script and no other file."""

import functools
import hashlib
import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from ..core.files import replace_non_finite
from .figures import make_attack_figure, make_risk_figure, make_shift_figure, read_reliability_bins
from .figures.traces import View
from .html_table import describe_comparison, explain_table, make_heading, make_rows
from .palette import list_themes
from .summary_figure import draw_gain_against_cost
from .svg import MUTED, draw_svg, marker_style, style_axes
from .table_columns import EQUIVALENTS, select_columns
from .templates import load_template, read_asset
from .values import format_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True)
class _StaticFigure:
    caption: str
    svg: str
    is_wide: bool = False


def render_fragment(results: dict[str, Any]) -> str:
    """Return the comparison as one HTML element that shows itself inside any page, for example below a notebook cell.

    Args:
        results: what `results.json` holds; the schema is in `pluribus.reports`.

    Returns:
        A `<div>` with its own style, which touches nothing outside of it. The figures are static SVG. The same results give the
        same text, and nothing in it is fetched or run.

    Raises:
        ImportError: jinja2 or matplotlib is not installed.
    """
    try:
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError("the report needs jinja2: pip install jinja2") from error

    results = replace_non_finite(results)
    shown = select_columns(results)
    rows = make_rows(results, shown)
    by_name = {row["name"]: row for row in rows}
    figures = [{"caption": f.caption, "svg": Markup(f.svg), "is_wide": f.is_wide} for f in _draw_figures(results)]
    return load_template("fragment.html.jinja").render(
        title=results.get("title") or "Comparison",
        compared=describe_comparison(results),
        recommendation=[entry | {"entry": by_name.get(entry.get("method"))} for entry in results.get("recommendation") or []],
        notes=results.get("notes") or [],
        theme=list_themes()["light"],  # the figures are drawn on white
        columns=[make_heading(column, place, shown) for place, column in enumerate(shown)],
        rows=rows,
        explanation=explain_table(results, shown),
        figures=figures,
        css=Markup(read_asset("fragment.css").strip()),
    )


def _draw_figures(results: dict[str, Any]) -> list[_StaticFigure]:
    drawn = []
    if len(results["methods"]) > 1:
        what = "equivalents" if EQUIVALENTS in select_columns(results) else "gain"
        count = format_count(len(results["methods"]), "method")
        alt = f"Scatter plot of {count}: {what} against cost; the table has the numbers."
        figure = _embed(draw_svg(lambda canvas: draw_gain_against_cost(canvas, results, title="")), alt)
        drawn.append(_StaticFigure(f"{what.capitalize()} against cost", figure, is_wide=True))
    if any(read_reliability_bins(method) for method in results["methods"]):
        alt = "Reliability diagram: accuracy by confidence, in bins; on the diagonal a method is right as often as it claims."
        figure = _embed(draw_svg(lambda canvas: _draw_reliability(canvas, results)), alt)
        drawn.append(_StaticFigure("Reliability", figure))
    for make in (make_shift_figure, make_risk_figure, make_attack_figure):
        found = make(results)
        if found is not None:
            view = found.panels[0].views[0]
            figure = _embed(draw_svg(functools.partial(_draw_lines, view=view)), view.alt)
            drawn.append(_StaticFigure(found.heading, figure))
    return drawn


def _draw_reliability(canvas: "Canvas", results: dict[str, Any]) -> None:
    canvas.set_size_inches(4.4, 3.4)
    axes = canvas.add_subplot()
    axes.plot([0, 100], [0, 100], color=MUTED, linestyle="--", linewidth=1)
    for index, method in enumerate(results["methods"]):
        bins = read_reliability_bins(method)
        axes.plot(
            [100 * c for c, _, _ in bins], [100 * a for _, a, _ in bins], markersize=5, linewidth=1.4, **marker_style(index)
        )
    axes.set(xlabel="confidence, %", ylabel="accuracy, %")
    style_axes(axes)


def _draw_lines(canvas: "Canvas", view: View) -> None:
    """Draw the lines of one view of the page."""
    canvas.set_size_inches(4.4, 3.4)
    axes = canvas.add_subplot()
    for trace in view.data:
        every = max(1, len(trace["x"]) // 8)
        dashed = "--" if trace["line"]["dash"] == "dash" else "-"
        style: dict[str, Any] = {"markersize": 5, "linewidth": 1.4, "markevery": every, "linestyle": dashed}
        axes.plot(
            trace["x"], [float("nan") if y is None else y for y in trace["y"]], **style, **marker_style(trace["meta"]["method"])
        )
    axes.set(xlabel=view.layout["xaxis"]["title"]["text"], ylabel=view.layout["title"]["text"])
    style_axes(axes)


def _embed(image: bytes, alt: str) -> str:
    """Return the SVG as an element of a page, with a text for screen readers and names that no other figure has.

    Matplotlib counts its names from one in every figure; in one page the second figure would refer to parts of the first.
    """
    text = image.decode()
    text = text[text.index("<svg ") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    prefix = "p" + hashlib.sha256(image).hexdigest()[:8]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(alt)}" ', 1)
