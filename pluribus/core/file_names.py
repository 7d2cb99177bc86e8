"""Names that a file gives to other files and folders: they never leave the folder that they belong to."""

from pathlib import Path

from .errors import FileError

LONGEST = 200
"""A name in the usual file systems has at most 255 bytes; temporary files beside it have longer names."""


def check_file_name(name: object, source: object) -> str:
    """Return the name of a file or folder that was read from a file, if it is a plain name.

    Args: the name; where it was read, for the message.
    Raises: FileError if it is no text, empty, too long, begins with a dot, or has more than letters, digits and -_.+=,@ in it.

    >>> check_file_name("mimo-members-3-seed0", "grid.yaml")
    'mimo-members-3-seed0'
    >>> check_file_name("../../elsewhere", "grid.yaml")
    Traceback (most recent call last):
    pluribus.core.errors.FileError: a name in grid.yaml must have at most 200 letters, digits and - _ . and begin with no \
dot, got '../../elsewhere'
    """
    is_plain = isinstance(name, str) and name and all(letter.isalnum() or letter in "-_.+=,@" for letter in name)
    if not is_plain or str(name).startswith(".") or len(str(name).encode(errors="replace")) > LONGEST:
        shown = repr(name) if len(repr(name)) <= LONGEST else f"{repr(name)[:40]}…"
        raise FileError(
            f"a name in {source} must have at most {LONGEST} letters, digits and - _ . and begin with no dot, got {shown}"
        )
    return str(name)


def check_inside(path: Path, folder: Path) -> Path:
    """Return a path that is to be written, if no link leads it out of the folder. Raises FileError if one does."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise FileError(f"{path} must lie in {folder}, and a link leads to {path.resolve()}: copy the files into the folder")
    return path
