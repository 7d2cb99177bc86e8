"""The 1,797 handwritten digits, 8×8, that are part of scikit-learn: they need no file and no network."""

from functools import cache
from pathlib import Path

import torch

from .catalog_entry import CatalogEntry
from .dataset import Data, Part
from .preparation import Pixels
from .split import split_rows


def read(entry: CatalogEntry, folder: Path) -> Data:
    """Read the digits. Raises: ImportError if scikit-learn is not installed."""
    every = read_every()
    keep, test = split_rows(entry.test, len(every), seed=0, labels=every.y)
    train = every.take_rows(keep)
    return Data(entry.name, train, every.take_rows(test), Pixels.fit(train.x), entry.labels, "scikit-learn")


@cache
def read_every() -> Part:
    """All digits. They are read once in a process, because scikit-learn parses them from text."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("the digits come with scikit-learn: pip install scikit-learn") from error
    stored = load_digits()
    # scikit-learn stores the pixels as 0 to 16.
    x = (torch.from_numpy(stored.images) * 255 / 16).round().to(torch.uint8).unsqueeze(1)
    return Part(x, torch.from_numpy(stored.target).long())
