"""The command line: arguments only. Each command is one file; what it does lies in the other rooms."""

from .app import main

__all__ = ["main"]
