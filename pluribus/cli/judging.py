"""`pluribus evaluate` and `pluribus predict`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from .app import app

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="the folder of a run", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on standard output")]
Samples = Annotated[int | None, typer.Option("--samples", min=1, help="draws of a stochastic method", show_default=False)]


@app.command(
    epilog="[bold]Examples[/]\n\npluribus evaluate runs/mnist-lenet5-mimo-…\n\n"
    "pluribus evaluate runs/… --split validation --json\n\npluribus evaluate runs/… --data kmnist --samples 50"
)
def evaluate(
    run: Folder,
    split: Annotated[str, typer.Option("--split", metavar="train|validation|test", help="which rows to judge by")] = "test",
    data: Annotated[str | None, typer.Option("--data", metavar="NAME|PATH", help="another set", show_default=False)] = None,
    samples: Samples = None,
    as_json: AsJson = False,
) -> None:
    """Judge a run: accuracy, NLL and ECE, or RMSE. Leaves evaluation.json in its folder."""
    from rich.console import Console
    from rich.progress import Progress

    from ..core.names import unknown
    from ..runs.config import ConfigError
    from ..runs.evaluate import evaluate as judge
    from .show import scores

    if split not in ("train", "validation", "test"):
        raise ConfigError(unknown("split", split, ("train", "validation", "test")))
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("judging", total=None)

        def report(rows: int, total: int | None) -> None:
            progress.update(task, total=total) if total else progress.advance(task, rows)

        done = judge(run, split, data, samples, report)
    if as_json:
        typer.echo(json.dumps(done, ensure_ascii=False))
        return
    console = Console()
    console.print(f"[bold]{done['title']}[/] on {done['data']}, {done['split']}, {done['rows']:,} rows", highlight=False)
    console.print(scores(done["scores"]))


@app.command(
    epilog="[bold]Examples[/]\n\npluribus predict runs/… digit.png\n\n"
    "pluribus predict runs/… photos/*.jpg --json > answers.jsonl\n\npluribus predict runs/… houses.csv"
)
def predict(
    run: Folder,
    files: Annotated[list[Path], typer.Argument(metavar="FILES…", help="images, tables, or .npz with x", show_default=False)],
    samples: Samples = None,
    as_json: AsJson = False,
) -> None:
    """Label new images or table rows, with confidence and uncertainty; of a regression, value and spread.

    Uncertainty is the entropy of the answer in nats, disagreement the part of it that the members differ about.
    """
    from rich.console import Console
    from rich.table import Table

    from ..runs.predict import predict as answer

    table = None
    for row in answer(run, files, samples):
        if as_json:
            typer.echo(json.dumps(row, ensure_ascii=False))
            continue
        shown = {key: value for key, value in row.items() if key != "probabilities"}
        if table is None:
            table = Table(*shown)
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in shown.values()))
    if table is not None:
        Console().print(table)
