"""`pluribus export`."""

from pathlib import Path
from typing import Annotated

import typer

from ..core.terminal import create_console
from .app import app
from .consent_options import Factories, Trust, consent_to_repeated
from .run_options import RunFolder, Samples


@app.command(
    epilog="[bold]Examples[/]\n\npluribus export runs/…\n\npluribus export runs/… --out classifier.onnx\n\n"
    "pluribus export runs/… --format torch --samples 50"
)
def export(
    run: RunFolder,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="where to write: .onnx or .pt2 [model.onnx]", show_default=False),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="onnx|torch", help="the format, where the file's ending does not say it", show_default=False),
    ] = None,
    samples: Samples = None,
    model: Factories = None,
    trust: Trust = False,
) -> None:
    """Write a run as one file that answers without pluribus: for ONNX Runtime, or for `torch.export.load`.

    Preparation, and the rules of `pluribus calibrate`, become a part of it. Draws are fixed. The file is run on rows of the
    data and kept only if it gives the run's answers. A model card is written beside it.
    """
    from ..runs.export import export_run

    console = create_console()
    with consent_to_repeated(model, trust), console.status("exporting, and comparing the answers …"):
        written = export_run(run, out, format, samples)
    size = written.path.stat().st_size / 2**20
    console.print(f"{written.path}: {size:.2f} MB, answers as the run does to {written.difference:.1g}", highlight=False)
    console.print(f"answers: {', '.join(written.outputs)}", highlight=False)
    console.print(f"how to call it: {written.card}", highlight=False)
