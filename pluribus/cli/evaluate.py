"""`pluribus evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from ..core.terminal import create_console
from .app import app
from .consent_options import Factories, Trust, consent_to_repeated
from .evaluation_options import Attack, AttackRows, Corruptions, Ood, ShiftRows, Temperature
from .run_options import AsJson, RunFolder, Samples
from .streams import print_json


@app.command(
    epilog="[bold]Examples[/]\n\npluribus evaluate runs/mnist-lenet5-mimo-…\n\n"
    "pluribus evaluate runs/… --ood fashion-mnist,kmnist --corruptions standard --attack linf:epsilon=0.1\n\n"
    "pluribus evaluate runs/… --split validation --json\n\npluribus evaluate runs/… --data kmnist --samples 50"
)
def evaluate(
    run: RunFolder,
    split: Annotated[str, typer.Option("--split", metavar="train|validation|test", help="which rows to evaluate on")] = "test",
    data: Annotated[
        str | None, typer.Option("--data", metavar="NAME|PATH", help="another data set", show_default=False)
    ] = None,
    samples: Samples = None,
    corruptions: Corruptions = None,
    ood: Ood = None,
    attack: Attack = None,
    temperature: Temperature = None,
    shift_rows: ShiftRows = None,
    attack_rows: AttackRows = None,
    base: Annotated[
        Path | None,
        typer.Option(
            "--base", metavar="RUN", help="the run whose corruption errors the mCE is relative to", show_default=False
        ),
    ] = None,
    cost: Annotated[bool, typer.Option("--cost/--no-cost", help="measure latency and memory", show_default=False)] = True,
    model: Factories = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a run: scores with intervals, calibration, members, diversity and cost; shift and attacks on request.

    The result is written to evaluation.json in the folder of the run, or beside it to a file named after the options. If an
    answer is NaN or infinite, so are the scores over its row; the exit code is then 2.
    """
    from rich.progress import Progress

    from ..comparison.terminal_tables import print_evaluation
    from ..core.suggestions import describe_unknown
    from ..runs.choices import split_choices
    from ..runs.config import ConfigError
    from ..runs.evaluation import build_evaluation_settings, evaluate_run, name_record
    from ..runs.prediction import NotFiniteError

    if split not in ("train", "validation", "test"):
        raise ConfigError(describe_unknown("split", split, ("train", "validation", "test")))
    if base is not None and corruptions in (None, "none"):
        raise ConfigError("--base names the run whose corruption errors the mCE is relative to: it needs --corruptions")
    settings = build_evaluation_settings(
        corruptions=corruptions,
        ood=tuple(split_choices(ood)) if ood else None,
        attack=attack,
        temperature=temperature,
        shift_rows=shift_rows,
        attack_rows=attack_rows,
    )
    console = create_console(stderr=True)
    progress_bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    with consent_to_repeated(model, trust), progress_bar as progress:
        task = progress.add_task("evaluating", total=None)

        def report(rows: int, total: int | None) -> None:
            progress.update(task, total=total) if total else progress.advance(task, rows)

        result = evaluate_run(run, split, data, samples, settings, base, cost, report)
    if as_json:
        print_json(result)
    else:
        print_evaluation(result)
        typer.echo(f"All results are in {run / name_record(split, data, samples, settings, base)}")
    if result["not_finite"]:
        raise NotFiniteError(f"the run has no finite answer to {result['not_finite']:,} of {result['rows']:,} rows")
