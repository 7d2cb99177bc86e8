"""`python -m pluribus` is `pluribus`."""

import sys
from pathlib import Path

# `python -m` looks for modules in the working folder first, which may be the folder of a run: that holds data, never code.
if not sys.flags.safe_path and Path(sys.path[0]).resolve() != Path(__file__).resolve().parents[1]:
    del sys.path[0]

from .cli import main

main()
