"""`pluribus` in a process that is forked from this one: it need not import torch and Lightning again, which takes seconds."""

import importlib.util
import multiprocessing
import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path

import sklearn.datasets  # noqa: F401  imported here, once, for all forked processes
import torch

import pluribus.runs.training  # noqa: F401  with Lightning, which takes seconds
from pluribus.cli import main


def fork_pluribus(
    words: list[str],
    folder: Path,
    *,
    output: int,
    environment: dict[str, str] | None = None,
    prepare: Callable[[], object] = int,
) -> multiprocessing.Process:
    """Start `pluribus WORDS…` in a folder, with standard output and standard error on the file descriptor `output`.

    `prepare` is called in the new process before anything else.
    """

    def run() -> None:
        os.setpgid(0, 0)  # a signal to the group of the child does not reach the tests
        os.chdir(folder)
        os.environ.update({"OMP_NUM_THREADS": "1", "COLUMNS": "200"} | (environment or {}))
        os.environ.pop("PLURIBUS_RUN", None)
        torch.set_num_threads(1)  # a thread pool does not survive a fork
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.stdout, sys.stderr = (os.fdopen(os.dup(stream), "w", buffering=1) for stream in (1, 2))
        sys.argv = ["pluribus", *words]
        sys.modules["__main__"] = types.ModuleType("__main__")  # as `python -m pluribus` has it: Lightning starts it again
        sys.modules["__main__"].__spec__ = importlib.util.find_spec("pluribus.__main__")
        prepare()
        try:
            main()
        finally:
            threading._shutdown()  # ends the workers of joblib, as the end of an interpreter does: they would be waited for

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    return process
