"""Idx files, the format of MNIST and of the sets made in its image.

Two zero bytes, the type of the numbers (8: bytes), how many axes; the length of every axis as four bytes, the highest first;
then the numbers.
"""

import math
import struct
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from .catalog_entry import CatalogEntry, read_unzipped
from .dataset import Data, Part, take_no_rows
from .preparation import Pixels

WHAT = {1: "labels", 3: "images"}


def read(known: CatalogEntry, folder: Path) -> Data:
    found = known.find_files(folder)
    parts = {}
    for part in ("train", "test"):
        paths = [path for file, path in found.items() if file.part == part]
        if paths:
            parts[part] = _part(*paths)
    test = parts["test"]
    train = parts.get("train", take_no_rows(test))
    preparation = Pixels.fit(train.x if len(train) else test.x)
    return Data(known.name, train, test, preparation, known.labels, str(next(iter(found.values())).parent))


def _part(images: Path, labels: Path) -> Part:
    x, y = parse(read_unzipped(images), images, 3), parse(read_unzipped(labels), labels, 1)
    if len(x) != len(y):
        raise DataError(f"{images} holds {len(x)} images, and {labels.name} {len(y)} labels: they do not belong together")
    return Part(x.unsqueeze(1), y.long())


def parse(data: bytes, path: Path, axes: int) -> Tensor:
    """Bytes of an idx file → a tensor with so many axes.

    >>> parse(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), Path("labels"), 1)
    tensor([7, 9], dtype=torch.uint8)
    """
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise DataError(f"{path} is no idx file of bytes: it must begin with 0, 0, 8, got {list(data[:3])}")
    if data[3] != axes:
        hint = f"it holds {WHAT[data[3]]}; are two files swapped?" if data[3] in WHAT else f"it has {data[3]} axes"
        raise DataError(f"{path} must hold {WHAT[axes]}, {axes} axes, but {hint}")
    start = 4 + 4 * axes
    if len(data) < start:
        raise DataError(f"{path} is cut off within its first {start} bytes: get it again")
    shape = struct.unpack(f">{axes}I", data[4:start])
    if len(data) - start != math.prod(shape):
        size = " × ".join(map(str, shape))
        raise DataError(f"{path} promises {size} bytes, but holds {len(data) - start}: it is cut off or damaged, get it again")
    return torch.from_numpy(np.frombuffer(data, np.uint8, offset=start).reshape(shape).copy())
