"""Idx files, the format of MNIST and of the sets that were made like it.

A file holds two zero bytes, the type of the numbers (8: bytes), the number of axes, the length of every axis as four bytes with
the highest first, and then the numbers.
"""

import math
import struct
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from .catalog_entry import CatalogEntry
from .dataset import Data, Part, take_no_rows
from .preparation import Pixels
from .unzipping import read_unzipped

CONTENT = {1: "labels", 3: "images"}


def read(entry: CatalogEntry, folder: Path) -> Data:
    """Read a set from the data folder. Raises: DataError if a file is missing or damaged."""
    found = entry.find_files(folder)
    parts = {}
    for part in ("train", "test"):
        paths = [path for file, path in found.items() if file.part == part]
        if paths:
            parts[part] = _read_part(*paths)
    test = parts["test"]
    train = parts.get("train", take_no_rows(test))
    preparation = Pixels.fit(train.x if len(train) else test.x)
    return Data(entry.name, train, test, preparation, entry.labels, str(next(iter(found.values())).parent))


def _read_part(images: Path, labels: Path) -> Part:
    x, y = parse(read_unzipped(images), images, 3), parse(read_unzipped(labels), labels, 1)
    if len(x) != len(y):
        raise DataError(f"{images} holds {len(x)} images, and {labels.name} {len(y)} labels: they do not belong together")
    return Part(x.unsqueeze(1), y.long())


def parse(data: bytes, path: Path, axes: int) -> Tensor:
    """Turn the bytes of an idx file into a tensor with this many axes. Raises: DataError if they are none; it names the path.

    >>> parse(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), Path("labels"), 1)
    tensor([7, 9], dtype=torch.uint8)
    """
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise DataError(f"{path} is no idx file of bytes: it must begin with 0, 0, 8, got {list(data[:3])}")
    if data[3] != axes:
        hint = f"it holds {CONTENT[data[3]]}; are two files swapped?" if data[3] in CONTENT else f"it has {data[3]} axes"
        raise DataError(f"{path} must hold {CONTENT[axes]}, {axes} axes, but {hint}")
    start = 4 + 4 * axes
    if len(data) < start:
        raise DataError(f"{path} is cut off within its first {start} bytes: get it again")
    shape = struct.unpack(f">{axes}I", data[4:start])
    if not math.prod(shape):
        raise DataError(f"{path} holds no rows: its axes are {' × '.join(map(str, shape))}")
    if len(data) - start != math.prod(shape):
        size = " × ".join(map(str, shape))
        raise DataError(f"{path} promises {size} bytes, but holds {len(data) - start}: it is cut off or damaged, get it again")
    return torch.from_numpy(np.frombuffer(data, np.uint8, offset=start).reshape(shape).copy())
