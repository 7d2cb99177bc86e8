"""CIFAR-10 and CIFAR-100, in the binary or the python version.

Binary: records of one label byte (CIFAR-100: the coarse, then the fine one) and 3,072 pixels, channel by channel.

Python: pickles. A pickle can run any code, so one is loaded only if its checksum is the published one, from the same bytes that
were checked; and even then by an unpickler that builds arrays and nothing else.
"""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..core.errors import DataError
from ..core.texts import quote
from .catalog_entry import CatalogEntry, DataFile
from .dataset import Data, Part, take_no_rows
from .preparation import Pixels
from .unzipping import read_unzipped

PIXELS = 3 * 32 * 32


OPTIONS = {"first": "keep so many training images, in the order of the files; the `rows` of a run are drawn by its seed"}


def read_cifar10(entry: CatalogEntry, folder: Path, *, first: int | None = None) -> Data:
    """Read CIFAR-10 from the data folder. Raises: DataError if a file is missing or damaged."""
    return _read(entry, folder, b"labels", ("labels",), first)


def read_cifar100(entry: CatalogEntry, folder: Path, *, first: int | None = None) -> Data:
    """Read CIFAR-100 with its 100 fine labels."""
    return _read(entry, folder, b"fine_labels", ("coarse", "fine"), first)


def read_cifar100_coarse(entry: CatalogEntry, folder: Path, *, first: int | None = None) -> Data:
    """Read CIFAR-100 with its 20 coarse labels."""
    return _read(entry, folder, b"coarse_labels", ("coarse", "fine"), first, 0)


def _read(entry: CatalogEntry, folder: Path, key: bytes, labels: tuple[str, ...], first: int | None, label: int = -1) -> Data:
    """`labels` come before the pixels of a binary record, `label` is the position of the one to use, `key` its pickled name."""
    if first is not None and (isinstance(first, bool) or not isinstance(first, int) or first < 1):
        raise DataError(f"first must be a number of training images of at least 1, got {quote(first)}")
    found = entry.find_files(folder)
    binary = all(path.suffix == ".bin" or path.name.endswith(".bin.gz") for path in found.values())

    def read_part(name: str) -> Part | None:
        files = {file: path for file, path in found.items() if file.part == name}
        if binary:
            parts = [_read_records(path, len(labels), label) for path in files.values()]
        else:
            parts = [_read_pickle(file, path, key) for file, path in files.items()]
        return Part(torch.cat([p.x for p in parts]), torch.cat([p.y for p in parts])) if parts else None

    test = read_part("test")
    assert test is not None  # find_files() made sure
    train = read_part("train") or take_no_rows(test)
    if first is not None:
        train = Part(train.x[:first].clone(), train.y[:first].clone())  # a view would keep all images in memory
    facts = {"format": "binary" if binary else "python"}
    where = str(next(iter(found.values())).parent)
    return Data(entry.name, train, test, Pixels.fit(train.x if len(train) else test.x), entry.labels, where, facts)


def _read_records(path: Path, labels: int, label: int) -> Part:
    data, size = read_unzipped(path), labels + PIXELS
    if not data or len(data) % size:
        raise DataError(
            f"{path} must hold records of {size} bytes, got {len(data)} bytes: it is cut off or damaged, get it again"
        )
    rows = torch.from_numpy(np.frombuffer(data, np.uint8).reshape(-1, size).copy())
    return Part(rows[:, labels:].reshape(-1, 3, 32, 32), rows[:, :labels][:, label].long())


def _read_pickle(file: DataFile, path: Path, key: bytes) -> Part:
    data = read_unzipped(path)
    if not file.is_exact(data):
        raise DataError(
            f"{path} is a pickle, and its checksum is not the published one: it was not loaded, because it could run any code; "
            "get it again, or use the binary version"
        )
    try:
        stored = _ArrayUnpickler(io.BytesIO(data), encoding="bytes").load()
        x, y = np.asarray(stored[b"data"]), np.asarray(stored[key])
    except Exception as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if x.dtype != np.uint8 or x.ndim != 2 or x.shape[1] != PIXELS or y.shape != x.shape[:1] or y.dtype.kind not in "iu":
        raise DataError(f"{path} must hold rows of {PIXELS} bytes and a label for each, got {x.shape} {x.dtype} and {y.shape}")
    return Part(torch.from_numpy(x.reshape(-1, 3, 32, 32).copy()), torch.from_numpy(y.astype(np.int64)))


class _ArrayUnpickler(pickle.Unpickler):
    """Loads dictionaries, lists, numbers, bytes and arrays, and refuses every other name."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return getattr(np, name)
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return np.empty(0).__reduce__()[0]
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no array needs")


CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

FINE = tuple(
    """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant flatfish
    forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle
    mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine
    possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
    sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree
    wolf woman worm
    """.split()  # noqa: SIM905
)

COARSE = tuple(
    """
    aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices household_furniture insects
    large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes large_omnivores_and_herbivores medium_mammals
    non-insect_invertebrates people reptiles small_mammals trees vehicles_1 vehicles_2
    """.split()  # noqa: SIM905
)
