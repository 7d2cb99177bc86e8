"""`pluribus bench`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.terminal import create_console
from .app import app

bench = typer.Typer(help="Measure what methods cost, and how good they are on tables.")
app.add_typer(bench, name="bench")

EPILOG = """[bold]Examples[/]

pluribus bench

pluribus bench --part targets --repeats 15

pluribus bench --part table,growth --networks lenet5 --methods mimo,mixture

pluribus bench --part none --out benchmarks/results --docs docs/performance.md"""


def _split_names(text: str | None) -> list[str] | None:
    return None if text in (None, "all") else [name.strip() for name in str(text).split(",") if name.strip()]


@bench.callback(epilog=EPILOG, invoke_without_command=True)
def measure_costs(
    context: typer.Context,
    part: Annotated[
        str | None,
        typer.Option(
            "--part",
            metavar="all|none|NAME,…",
            help="targets, table or growth; none writes page and figures again from earlier results \\[all]",
            show_default=False,
        ),
    ] = None,
    networks: Annotated[
        str | None,
        typer.Option(
            "--networks",
            metavar="all|NAME,…",
            help="mlp, lenet5, resnet20, wrn-16-2 or vit \\[all; growth: lenet5]",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="all|NAME,…", help="the methods to measure \\[all]", show_default=False),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", help="how often each workload is timed \\[9]", show_default=False)
    ] = 9,
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="rows in a batch \\[128]", show_default=False)] = 128,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", help="threads of torch \\[2, or the only core]", show_default=False)
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="the folder of the results \\[runs/bench]", show_default=False)
    ] = Path("runs/bench"),
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="FILE", help="a Markdown file to put the tables into", show_default=False),
    ] = None,
) -> None:
    """Measure what methods cost, as ratios to the base network: time, memory and FLOPs of training and prediction.

    Every ratio is of the same batch in the same interleaved run. Results that are in the folder already are kept, unless they
    are measured again. `pluribus bench tables` judges methods on regression tables, beside other libraries.
    """
    if context.invoked_subcommand is not None:
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from ..bench.page import split_document, update_document
    from ..bench.run import Settings, plan_benchmark, run_benchmark
    from ..runs.run_folder import describe_machine
    from .show_bench import print_bench

    settings = Settings(repeats, batch) if threads is None else Settings(repeats, batch, threads)
    plan = {} if part == "none" else plan_benchmark(_split_names(part), _split_names(networks), _split_names(methods))
    if docs is not None:
        split_document(docs)
    if plan:
        console = create_console(stderr=True)
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task, last = progress.add_task("", total=None), ""

            def report(what: str, done: int, total: int) -> None:
                nonlocal last
                progress.update(task, description=what, completed=done, total=total)
                if not console.is_terminal and what != last:
                    print(what, file=sys.stderr, flush=True)
                last = what

            found = run_benchmark(plan, out, settings, describe_machine(), report)
    else:
        found = load_results(out)
    if docs is not None:
        update_document(docs, found, out)
    print_bench(found, out)


def load_results(folder: Path) -> dict[str, Any]:
    """Write page and figures again, and return the results that were measured before."""
    from ..bench import results
    from ..core.errors import FileError

    if not (folder / results.NAME).is_file():
        raise FileError(f"there are no results in {folder}: leave --part none out, or name their folder with --out")
    found = results.read_results(folder)
    results.save_results(folder, found)
    return found
