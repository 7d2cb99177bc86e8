"""Which commits a measurement was made with: that of the code, and the last one that changed the rules of its paper."""

import subprocess
from pathlib import Path

from .recipe import Json


def read_commits(folder: Path) -> Json:
    """Return `commit`, which the code is at, and `rules_commit`, the last one that changed the folder of a paper's rules.

    A commit ends in `-dirty` if files were changed since. What cannot be read, because the code is no checkout or there is no
    git, is left out.

    >>> read_commits(Path("/no/such/folder"))
    {}
    """
    found = {
        "commit": ask_git(folder, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"),
        "rules_commit": ask_git(folder, "log", "-1", "--format=%H", "--", ".")[:12],
    }
    return {name: text for name, text in found.items() if text}


def ask_git(folder: Path, *arguments: str) -> str:
    """Return what git answers in a folder, or "" if it cannot."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
