"""The options that name a trained run; `evaluate` and `predict` share them."""

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="the folder of a run", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON on standard output")]
Samples = Annotated[
    int | None, typer.Option("--samples", min=1, help="number of draws of a stochastic method", show_default=False)
]
