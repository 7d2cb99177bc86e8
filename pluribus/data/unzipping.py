"""Files that may be gzipped: they are recognised by their content and never unfold beyond the limit."""

import gzip
import io
import zlib
from pathlib import Path

from ..core.errors import DataError
from .limits import BYTES

GZIP = b"\x1f\x8b"
RATIO = 1032  # deflate never packs more bytes into one
CHUNK = 1 << 20


def read_unzipped(path: Path) -> bytes:
    """Read a file and unzip it if its content is gzipped, whatever its name.

    Raises: DataError if that fails, or if the content is larger than the limit.
    """
    try:
        BYTES.check(path.stat().st_size, f"{path} holds")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    return unzip(data, path) if data.startswith(GZIP) else data


def unzip(data: bytes, path: Path) -> bytes:
    """Unzip gzipped bytes. Raises: DataError, with the path, if they are damaged or unfold to more than the limit."""
    limit = BYTES.read()
    try:
        if RATIO * len(data) > limit:  # count first, and keep nothing: the limit itself may be too much for the memory
            count = 0
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                while chunk := stream.read(CHUNK):
                    count += len(chunk)
                    if count > limit:
                        raise DataError(
                            f"{path} unfolds to more than the limit of {limit:,} bytes: set {BYTES.variable} to allow more"
                        )
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is damaged, it cannot be unzipped ({error}): get it again") from error


def is_gzipped(path: Path) -> bool:
    """Whether a file's content is gzipped."""
    with open(path, "rb") as file:
        return file.read(len(GZIP)) == GZIP
