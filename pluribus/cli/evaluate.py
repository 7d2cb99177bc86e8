"""`pluribus evaluate` and `pluribus predict`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .app import app

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="the folder of a run", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on standard output")]
Samples = Annotated[int | None, typer.Option("--samples", min=1, help="draws of a stochastic method", show_default=False)]


PANEL: Any = {"show_default": False, "rich_help_panel": "What to judge by"}
# The flags of how to judge; `compare` has the same ones.
Corruptions = Annotated[
    str | None,
    typer.Option("--corruptions", metavar="none|standard|all", help="15 standard corruptions of images, or all 19", **PANEL),
]
Ood = Annotated[
    str | None,
    typer.Option("--ood", metavar="NAME,…", help="sets to be told from one's own; `noise` and `shuffled` are made", **PANEL),
]
Attacked = Annotated[
    str | None,
    typer.Option("--attack", metavar="linf|l2|fgsm[:KEY=VALUE,…]", help="attack test images; options of an Attack", **PANEL),
]
Temperature = Annotated[
    bool | None, typer.Option("--temperature/--no-temperature", help="report temperature scaling, apart \\[yes]", **PANEL)
]
ShiftRows = Annotated[int | None, typer.Option("--shift-rows", metavar="N", help="images to corrupt \\[1000]", **PANEL)]
AttackRows = Annotated[int | None, typer.Option("--attack-rows", metavar="N", help="images to attack \\[200]", **PANEL)]


@app.command(
    epilog="[bold]Examples[/]\n\npluribus evaluate runs/mnist-lenet5-mimo-…\n\n"
    "pluribus evaluate runs/… --ood fashion-mnist,kmnist --corruptions standard --attack linf:epsilon=0.1\n\n"
    "pluribus evaluate runs/… --split validation --json\n\npluribus evaluate runs/… --data kmnist --samples 50"
)
def evaluate(
    run: Folder,
    split: Annotated[str, typer.Option("--split", metavar="train|validation|test", help="which rows to judge by")] = "test",
    data: Annotated[str | None, typer.Option("--data", metavar="NAME|PATH", help="another set", show_default=False)] = None,
    samples: Samples = None,
    corruptions: Corruptions = None,
    ood: Ood = None,
    attack: Attacked = None,
    temperature: Temperature = None,
    shift_rows: ShiftRows = None,
    attack_rows: AttackRows = None,
    base: Annotated[
        Path | None,
        typer.Option("--base", metavar="RUN", help="whose corruption errors the mCE is relative to", show_default=False),
    ] = None,
    cost: Annotated[bool, typer.Option("--cost/--no-cost", help="measure latency and memory", show_default=False)] = True,
    as_json: AsJson = False,
) -> None:
    """Judge a run: scores with intervals, calibration, members, diversity, cost; shift and attacks if asked for.

    Leaves evaluation.json in its folder.
    """
    from rich.console import Console
    from rich.progress import Progress

    from ..core.files import format_json
    from ..core.suggestions import describe_unknown
    from ..runs.config import ConfigError, split_choices
    from ..runs.evaluation import build_evaluation_settings
    from ..runs.evaluation import evaluate_run as judge
    from ..runs.text_tables import print_evaluation

    if split not in ("train", "validation", "test"):
        raise ConfigError(describe_unknown("split", split, ("train", "validation", "test")))
    if base is not None and corruptions in (None, "none"):
        raise ConfigError("--base is whose corruption errors the mCE is relative to: it needs --corruptions")
    judging = build_evaluation_settings(
        corruptions=corruptions,
        ood=tuple(split_choices(ood)) if ood else None,
        attack=attack,
        temperature=temperature,
        shift_rows=shift_rows,
        attack_rows=attack_rows,
    )
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("judging", total=None)

        def report(rows: int, total: int | None) -> None:
            progress.update(task, total=total) if total else progress.advance(task, rows)

        done = judge(run, split, data, samples, judging, base, cost, report)
    if as_json:
        typer.echo(format_json(done, indent=None))
        return
    print_evaluation(done)
    typer.echo(f"All of it is in {run / 'evaluation.json'}")


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

    Uncertainty is the entropy of the prediction in nats, mutual information the part of it on which members disagree.
    """
    from rich.console import Console
    from rich.table import Table

    from ..runs.prediction import predict_files as answer

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
