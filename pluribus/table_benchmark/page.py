"""The page of the table benchmark: ranks with intervals, leads, scores of every table, costs. A function of the JSON alone."""

import statistics
from collections.abc import Sequence
from typing import Any

import torch

from ..core.files import restore_number
from ..metrics.intervals import quantile
from .ranking import RANKED
from .scores import COVERAGE

Json = dict[str, Any]
TITLES = {"rmse": "RMSE", "crps": "CRPS", "nll": "NLL"}


def format_page(results: Json) -> str:
    """The page as Markdown."""
    parts = [
        "# Tables",
        describe_benchmark(results),
        *(format_ranks(results, score) for score in RANKED if score in results["ranks"]),
        format_costs(results),
        *(format_table(results, table) for table in list_tables(results)),
        format_skipped(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def describe_benchmark(results: Json) -> str:
    """What was done, in words."""
    settings, cells = results["settings"], results["cells"]
    tables = list_tables(results)
    places = {(cell["table"], cell["split"]) for cell in cells}
    rows = "" if settings["rows"] is None else f" {settings['rows']:,} rows of each for training and validation."
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    return (
        f"Tables: {len(tables)}; splits of all: {len(places)}.{rows} Every contender had {settings['trials']} trials on the "
        "same validation rows; the one with the smallest RMSE there is judged on the test rows. Networks trained for at most "
        f"{settings['epochs']} epochs, {settings['patience']} without a better validation score; trees were at most "
        f"{settings['trees']:,}, {settings['tree_patience']} without one. The noise of all predictions is estimated from the "
        f"validation rows. {versions}."
    )


def list_tables(results: Json) -> list[str]:
    return sorted({cell["table"] for cell in results["cells"]})


def format_ranks(results: Json, score: str) -> str:
    """Mean ranks, best first, and whom each contender leads beyond the noise."""
    ranks, leads = results["ranks"][score], results["leads"][score]
    titles = {taker["name"]: taker["title"] for taker in results["contenders"]}
    tables = list_tables(results)
    lines = format_head("contender", "mean rank", "95 % interval", *tables, "leads beyond the noise")
    for name in sorted(ranks, key=lambda each: (ranks[each]["rank"], each)):
        rank = ranks[name]
        own = [f"{rank['tables'][table]:.1f}" for table in tables]
        led = ", ".join(titles[other] for other in leads["pairs"][name]) or "nobody"
        interval = f"{rank['low']:.1f} to {rank['high']:.1f}"
        lines.append(format_row(titles[name], f"{rank['rank']:.2f}", interval, *own, led))
    leader = leads["leader"]
    said = (
        "Nobody leads all others beyond the noise."
        if leader is None
        else f"{titles[leader]} leads all others beyond the noise."
    )
    return "\n".join([f"## {TITLES[score]}", "", said, "", *lines])


def format_costs(results: Json) -> str:
    """Training and prediction time as ratios to one network of ours: medians over splits and their middle half."""
    lines = format_head(
        "contender", *(f"{table}, {what}" for table in list_tables(results) for what in ("training", "prediction"))
    )
    for taker in results["contenders"]:
        own = [cell for cell in results["cells"] if cell["contender"] == taker["name"]]
        if own:
            entries = []
            for table in list_tables(results):
                cells = [cell for cell in own if cell["table"] == table]
                entries += [
                    format_ratios([cell["train_seconds"] / cell["base_train_seconds"] for cell in cells]),
                    format_ratios([cell["predict"]["median"] for cell in cells]),
                ]
            lines.append(format_row(taker["title"], *entries))
    if not results["cells"]:
        return ""
    return "\n".join(
        [
            *("## Time", "", "As ratios to one network of ours with default options, which each cell trains on its own rows;"),
            *("training in CPU seconds, of the chosen trial; the middle half of the splits in brackets.", "", *lines),
        ]
    )


def format_table(results: Json, table: str) -> str:
    """Mean scores of one table and their standard deviations over its splits."""
    cells = [cell for cell in results["cells"] if cell["table"] == table]
    rows, splits = cells[0]["rows"], len({cell["split"] for cell in cells})
    kinds = [*TITLES, "coverage"]
    lines = format_head("contender", *(TITLES.get(kind, f"coverage of {COVERAGE:.0%}") for kind in kinds))
    for taker in results["contenders"]:
        own = [cell["scores"] for cell in cells if cell["contender"] == taker["name"]]
        if own:
            lines.append(format_row(taker["title"], *(format_spread([each[kind] for each in own], kind) for kind in kinds)))
    size = f"{rows['train']:,} training, {rows['validation']:,} validation and {rows['test']:,} test rows, {splits} splits"
    return "\n".join([f"## {table}", "", f"{size}.", "", *lines])


def format_skipped(results: Json) -> str:
    """The contenders without a rank, and why."""
    without = [taker for taker in results["contenders"] if taker["reason"]]
    if not without:
        return ""
    return "\n".join(
        ["## Without a rank", "", *format_head("contender", "why"), *(format_row(t["title"], t["reason"]) for t in without)]
    )


def format_spread(values: Sequence[float | None], kind: str) -> str:
    """A mean and a standard deviation.

    >>> format_spread([1.0, 2.0], "rmse"), format_spread([0.9], "coverage"), format_spread([None], "nll")
    ('1.500 ± 0.707', '90.0 %', 'not finite')
    """
    numbers = [restore_number(value) for value in values]
    if any(number != number for number in numbers):
        return "not finite"
    middle = statistics.fmean(numbers)
    if kind == "coverage":
        return f"{100 * middle:.1f} %"
    spread = f" ± {statistics.stdev(numbers):.3f}" if len(numbers) > 1 else ""
    return f"{middle:.3f}{spread}"


def format_ratios(values: Sequence[float]) -> str:
    """The median of ratios and their middle half.

    >>> format_ratios([1.0, 2.0, 4.0]), format_ratios([])
    ('2.00× (1.50 to 3.00)', '')
    """
    if not values:
        return ""
    found = torch.tensor(values, dtype=torch.double)
    low, middle, high = (quantile(found, share) for share in (0.25, 0.5, 0.75))
    return f"{middle:.2f}× ({low:.2f} to {high:.2f})"


def format_head(*cells: str) -> list[str]:
    return [format_row(*cells), format_row("---", *("---:" for _ in cells[1:]))]


def format_row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
