"""`pluribus calibrate`."""

from typing import Annotated, Any, Literal

import typer

from ..core.terminal import create_console
from ..core.texts import format_amount
from .app import app
from .consent_options import Factories, Trust, consent_to_repeated
from .run_options import AsJson, RunFolder
from .streams import print_json


@app.command(
    epilog="[bold]Examples[/]\n\npluribus calibrate runs/… --coverage 0.9\n\n"
    "pluribus calibrate runs/… --risk 0.01 --coverage 0.95 --false-alarms 0.05 --ood fashion-mnist\n\n"
    "pluribus calibrate runs/… --false-alarms 0.01 --alarm distance\n\n"
    "pluribus calibrate runs/… --data other-rows.csv --coverage 0.8"
)
def calibrate(
    run: RunFolder,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="the probability with which sets of classes, or intervals, hold the truth [0.9, or what the quantiles span]",
            show_default=False,
        ),
    ] = None,
    risk: Annotated[
        float | None,
        typer.Option(help="the share of answers that may be wrong: other rows are not answered", show_default=False),
    ] = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(help="the share of rows like the training data that may raise the alarm", show_default=False),
    ] = None,
    ood: Annotated[
        str | None,
        typer.Option(metavar="NAME|PATH", help="foreign rows, by which the score of the alarm is chosen", show_default=False),
    ] = None,
    alarm: Annotated[
        Literal["confidence", "entropy", "mutual-information", "energy", "distance"] | None,
        typer.Option(help="the score of the alarm [the best by --ood, else entropy]", show_default=False),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="NAME|PATH", help="other rows to fit on than validation rows", show_default=False),
    ] = None,
    split: Annotated[str, typer.Option(metavar="validation|test", help="which rows to fit on")] = "validation",
    sets: Annotated[Literal["lac", "aps", "raps"], typer.Option(help="how sets score classes")] = "raps",
    scale: Annotated[
        Literal["normalised", "absolute"] | None,
        typer.Option(
            help="intervals as wide as noise and spread say, or equally wide; quantiles moved by their distance, or equally",
            show_default=False,
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="the probability that the risk is not kept")] = 0.1,
    model: Factories = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Fit when to answer, with which set or interval, and when to raise an alarm; `predict` then obeys.

    The rules are fitted on held-out rows and hold for rows like those: under shift they do not. They are written to
    calibration.json in the folder of the run, and checked on its test rows.
    """
    from rich.progress import Progress

    from ..runs.calibration import CALIBRATION, calibrate_run, read_rules
    from ..runs.run_folder import open_run

    console = create_console(stderr=True)
    with (
        consent_to_repeated(model, trust),
        Progress(console=console, transient=True, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task("predicting held-out rows", total=None)
        record = calibrate_run(
            *(run, coverage, risk, false_alarms, ood, data, split, sets, scale, delta),
            report=lambda rows: progress.advance(task, rows),
            alarm=alarm,
        )
    if as_json:
        print_json(record)
        return
    rules = read_rules(open_run(run))
    assert rules is not None
    typer.echo(f"Fitted on {record['rows']:,} {record['split']} rows of {record['data']}:")
    for sentence in rules.explain():
        typer.echo(f"- {sentence}")
    if record["checked"]:
        typer.echo(f"On {record['checked']['rows']:,} test rows: {describe_check(record['checked'])}")
    typer.echo(f"`pluribus predict {run} FILES` obeys these rules. They are in {run / CALIBRATION}")


def describe_check(checked: dict[str, Any]) -> str:
    """What the rules did on the test rows.

    >>> describe_check({"rows": 100, "coverage": 0.91, "set_size": 1.2})
    'sets of 1.20 classes hold 91.0 %'
    """
    said = []
    if "set_size" in checked:
        said.append(f"sets of {checked['set_size']:.2f} classes hold {100 * checked['coverage']:.1f} %")
    if "width" in checked:
        width = "an infinite width" if checked["width"] is None else f"a width of {format_amount(checked['width'])}"
        said.append(f"intervals with {width} on average hold {100 * checked['coverage']:.1f} %")
    if "answered" in checked:
        wrong = "" if checked["risk"] is None else f", {100 * checked['risk']:.2f} % of them wrong"
        said.append(f"{100 * checked['answered']:.1f} % answered{wrong} ({100 * checked['risk_of_all']:.2f} % would be of all)")
    if "false_alarms" in checked:
        caught = f", {100 * checked['caught']:.1f} % of the foreign rows caught" if "caught" in checked else ""
        said.append(f"{100 * checked['false_alarms']:.1f} % false alarms{caught}")
    return "; ".join(said)
