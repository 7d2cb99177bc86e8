"""`pluribus bench tables`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.terminal import create_console
from .bench import bench

EPILOG = """[bold]Examples[/]

pluribus bench tables --smoke

pluribus bench tables --tables uci-energy,uci-yacht --trials 10 --workers 2

pluribus bench tables --tables prices.csv:target=price --contenders single,batch-ensemble-32,tabm,lightgbm"""


@bench.command("tables", epilog=EPILOG)
def tables(
    names: Annotated[
        str | None,
        typer.Option("--tables", metavar="NAME,…", help="sets uci-… and paths of tables \\[all uci-…]", show_default=False),
    ] = None,
    contenders: Annotated[
        str | None,
        typer.Option(
            "--contenders",
            metavar="NAME,…",
            help="single, mlp, tabm, lightgbm and so on, or any method with its options \\[all]",
            show_default=False,
        ),
    ] = None,
    splits: Annotated[
        int | None, typer.Option("--splits", metavar="N", help="of each table \\[10]", show_default=False)
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", metavar="N", help="of each contender on each split \\[20]", show_default=False)
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", metavar="N", help="the most that a network trains \\[200]", show_default=False)
    ] = None,
    trees: Annotated[
        int | None, typer.Option("--trees", metavar="N", help="the most that are boosted \\[2000]", show_default=False)
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", help="train and validate on so many rows only \\[all]", show_default=False),
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="small: a drawn table, two trials, two epochs")] = False,
    workers: Annotated[
        str, typer.Option("--workers", metavar="N|URL", help="processes, dask://host:port or ray \\[1]", show_default=False)
    ] = "1",
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="the folder of the results \\[runs/tables]", show_default=False),
    ] = Path("runs/tables"),
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="FOLDER", help="where the data lie \\[PLURIBUS_DATA]", show_default=False),
    ] = None,
) -> None:
    """Judge our networks and methods on regression tables, beside TabM, scikit-learn, LightGBM, XGBoost and CatBoost.

    All are tuned with as many trials on the same validation rows. Cells that the folder has are not run again, so that a
    benchmark that was stopped goes on, and tables and contenders can be added. A library that is not installed is a row that
    says so.
    """
    from rich.progress import BarColumn, Progress, TextColumn

    from ..runs.choices import split_choices
    from ..runs.run_folder import describe_machine
    from ..table_benchmark.run import NAME, PAGE, SMOKE, Benchmark, run_cells

    asked: dict[str, Any] = {"splits": splits, "trials": trials, "epochs": epochs, "trees": trees, "rows": rows}
    for name, text in (("tables", names), ("contenders", contenders)):
        asked[name] = None if text in (None, "all") else tuple(filter(None, split_choices(str(text))))
    asked = {name: value for name, value in asked.items() if value is not None}
    folder = None if data_dir is None else str(data_dir.expanduser().resolve())
    benchmark = Benchmark(**(dict(SMOKE if smoke else {}) | asked), data_dir=folder)
    console = create_console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task, last = progress.add_task("", total=None), ""

        def report(state: dict[str, Any]) -> None:
            nonlocal last
            running = "; ".join(f"{cell}, {count} of {benchmark.trials} trials" for cell, count in state["running"].items())
            progress.update(task, description=running, completed=state["done"], total=state["total"])
            text = f"{state['done']} of {state['total']} cells"
            if not console.is_terminal and text != last:
                print(text, file=sys.stderr, flush=True)
            last = text

        results = run_cells(benchmark, out, describe_machine(), workers, report)
    print_ranks(results)
    typer.echo(f"{NAME} and {PAGE} are in {out}")


def print_ranks(results: dict[str, Any]) -> None:
    """Print the mean ranks, and the contenders that have none."""
    from rich.table import Table

    from ..table_benchmark.page import TITLES

    ranks = results["ranks"]
    table = Table("contender", *([f"rank by {TITLES[score]}" for score in ranks] or ["rank"]))
    order = {name: rank["rank"] for name, rank in next(iter(ranks.values()), {}).items()}
    for taker in sorted(results["contenders"], key=lambda each: order.get(each["name"], float("inf"))):
        name = taker["name"]
        if taker["reason"]:
            table.add_row(taker["title"], taker["reason"])
        else:
            own = [found[name] for found in ranks.values()]
            table.add_row(taker["title"], *(f"{r['rank']:.2f} ({r['low']:.1f} to {r['high']:.1f})" for r in own))
    create_console().print(table)
