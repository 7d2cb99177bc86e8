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
    "pluribus predict runs/… photos/*.jpg --json > answers.jsonl\n\npluribus predict runs/… houses.csv"
)
def predict(
    run: RunFolder,
    files: Annotated[list[Path], typer.Argument(metavar="FILES…", help="images, tables, or .npz with x", show_default=False)],
    samples: Samples = None,
    model: Factories = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Predict labels of new images or table rows, with confidence and uncertainty; for a regression, value and spread.

    Uncertainty is the entropy of the prediction in nats, mutual information the part of it on which members disagree.
    A row whose answer is NaN or infinite has no label and is flagged; the exit code is then 2.
    """
    from rich.table import Table

    from ..runs.prediction import NotFiniteError, predict_files

    table, failure = None, None
    try:
        with consent_to_repeated(model, trust):
            for row in predict_files(run, files, samples, as_text=not as_json):
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
    if failure is not None:
        raise failure
