"""NumPy archives (.npz) of plain arrays. What an archive says about itself is checked before memory is spent on it.

An archive is a zip file. Its directory says how large each array is after decompression, and each array begins with a header
that says its type and shape; both must agree and be within the limit. Python objects are refused, because unpickling runs code.
"""

import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from ..core.errors import DataError
from ..core.texts import shorten
from .limits import BYTES

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How numpy.savez and numpy.savez_compressed write. Others can unfold to gigabytes before anybody counts."""


def list_arrays(path: Path) -> list[str]:
    """The names of the arrays of an archive. Raises: DataError if it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sorted(name.removesuffix(".npy") for name in archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        raise _describe_damaged(path) from error


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Read these arrays of an archive; others are left alone.

    Raises: DataError if one is missing or damaged, holds Python objects, or if together they are larger than the limit.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.getinfo(f"{name}.npy") for name in names}
            BYTES.check(sum(member.file_size for member in members.values()), f"{path} unfolds to")
            if not all(member.compress_type in METHODS for member in members.values()):
                raise _describe_damaged(path)
            found = {}
            for name, member in members.items():
                with archive.open(member) as file:
                    _check_header(path, name, file, member.file_size)
                with archive.open(member) as file:
                    found[name] = npy.read_array(file, allow_pickle=False)
            return found
    except KeyError as error:
        raise DataError(f"{path} must hold {' and '.join(names)}, got {', '.join(list_arrays(path)) or 'nothing'}") from error
    except DataError:
        raise
    except MemoryError as error:
        raise DataError(f"{path} cannot be read: it needs more memory than there is") from error
    # A wrong password or an unknown compression is a RuntimeError, a damaged header any of the others.
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, SyntaxError, TypeError) as error:
        raise _describe_damaged(path) from error


def _check_header(path: Path, name: str, file: IO[bytes], size: int) -> None:
    """Raise DataError unless the header is that of a plain array with as many bytes as there are."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise _describe_damaged(path)
    shape, _, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    if dtype.hasobject:
        raise DataError(
            f"{path} is no archive of plain arrays: {name} holds Python objects, which are never loaded because they could run "
            "any code"
        )
    wanted, found = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or not dtype.itemsize or wanted != found:
        raise DataError(f"{path} is damaged: {name} should have {shorten(str(wanted))} bytes, and has {found}")


def _describe_damaged(path: Path) -> DataError:
    return DataError(f"{path} is no archive of plain arrays, as numpy.savez writes it")
