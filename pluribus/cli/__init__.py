"""The command line: one file for each command, which reads the arguments and calls the other packages."""

from .app import main

__all__ = ["main"]
