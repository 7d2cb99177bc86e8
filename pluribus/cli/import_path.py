"""Where worker processes look for modules."""

import os
from pathlib import Path


def hide_working_folder() -> None:
    """Let the Python processes that are started from here on not look for modules in the working folder by themselves.

    Python looks there first, also for joblib, when it starts a worker, and the working folder may hold somebody else's files.
    Only in a checkout of pluribus nothing is changed, because pluribus itself is found there.
    """
    if Path(os.path.realpath(".")) != Path(__file__).resolve().parents[2]:
        os.environ.setdefault("PYTHONSAFEPATH", "1")
