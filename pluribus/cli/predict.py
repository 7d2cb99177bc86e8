"""`pluribus predict`."""

from pathlib import Path
from typing import Annotated

import typer

from ..core.terminal import create_console
from .app import app
from .consent_options import Factories, Trust, consent_to_repeated
from .run_options import AsJson, RunFolder, Samples
from .streams import print_json


@app.command(
    epilog="[bold]Examples[/]\n\npluribus predict runs/… digit.png\n\n"
    "pluribus predict runs/… photos/ --json > answers.jsonl\n\npluribus predict runs/… houses.csv\n\n"
    "pluribus predict runs/… photos/*.jpg --until 0.95"
)
def predict(
    run: RunFolder,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES…", help="images, tables, .npz with x, or folders of them", show_default=False)
    ],
    samples: Samples = None,
    members: Annotated[
        str | None,
        typer.Option(
            metavar="K|I,J,…", help="ask the first K members alone, or those of these numbers (from 0)", show_default=False
        ),
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="ask one member after the other until a class has this probability, row by row, and say what that saved",
            show_default=False,
        ),
    ] = None,
    model: Factories = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Predict labels of new images or table rows, with confidence and uncertainty; for a regression, value and interval.

    Uncertainty is the entropy of the prediction in nats, mutual information the part of it on which members disagree.
    If `pluribus calibrate` has fitted rules, it obeys them: sets of classes, no answer, an alarm, intervals.
    A row whose answer is NaN or infinite has no label and is flagged; the exit code is then 2.
    """
    from rich.table import Table

    from ..runs.prediction import NotFiniteError, predict_files

    table, failure, notes = None, None, list[str]()
    try:
        with consent_to_repeated(model, trust):
            asked = None if members is None else parse_members(members)
            for row in predict_files(run, files, samples, as_text=not as_json, members=asked, until=until, report=notes.append):
                if as_json:
                    print_json(row)
                    continue
                if table is None:
                    table = Table(*row)
                table.add_row(*row.values())
    except NotFiniteError as error:  # raised after the last row: the others are worth showing
        failure = error
    if table is not None:
        create_console().print(table)
    for note in notes:
        create_console(stderr=as_json).print(note)
    if failure is not None:
        raise failure


def parse_members(text: str) -> int | tuple[int, ...]:
    """A number of members, or the numbers of some: a comma makes a list, also after a single one.

    >>> parse_members("2"), parse_members("0,3"), parse_members("3,")
    (2, (0, 3), (3,))
    """
    words = text.split(",")
    try:
        if len(words) == 1:
            return int(text)
        return tuple(int(word) for word in words[: len(words) - (not words[-1].strip())])
    except ValueError:
        raise typer.BadParameter(
            f"must be a number of members (2), or their numbers (0,3), got {text}", param_hint="--members"
        ) from None
