"""NumPy archives (.npz) that hold x and y, or x_train, y_train, x_test and y_test.

Images are bytes, with the channels first or last; rows are numbers. Whole targets are labels, real ones those of a regression.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError
from ..core.texts import shorten
from .archives import list_arrays, read_arrays
from .catalog_entry import CatalogEntry
from .dataset import Data, Part, number_classes, take_no_rows
from .preparation import Pixels, Preparation, measure_targets
from .split import check_share, split_rows

OPTIONS = {
    "test": "the share of the rows held out for the test where the file has no x_test (default: 0.2)",
    "seed": "which rows those are (default: 0)",
}


def read(path: Path, *, test: float = 0.2, seed: int = 0) -> Data:
    """Read an archive; `OPTIONS` says what the options mean. Raises: DataError if the file or an option makes no sense."""
    arrays = _read_parts(path)
    if "x" in arrays:
        every = _build_part(path, arrays, "x", "y")
        if not len(every):
            raise DataError(f"{path} holds no rows")
        labels = None if every.y.is_floating_point() else every.y
        keep, held_out = split_rows(round(len(every) * check_share("test", test)), len(every), seed, labels)
        train, tested = every.take_rows(keep), every.take_rows(held_out)
    else:
        train, tested = (_build_part(path, arrays, f"x_{part}", f"y_{part}") for part in ("train", "test"))
        if train.x.shape[1:] != tested.x.shape[1:] or train.x.dtype != tested.x.dtype or train.y.dtype != tested.y.dtype:
            raise DataError(f"{path}: training and test rows must be alike, got {_describe(train)} and {_describe(tested)}")
    if not len(train):
        raise DataError(f"{path} holds no training rows")
    preparation: Preparation = Pixels.fit(train.x) if train.x.dtype == torch.uint8 else Preparation()
    classes: tuple[str, ...] = ()
    if train.y.is_floating_point():
        preparation = replace(preparation, target=measure_targets(f"{path}: the target", train.y))
    else:
        classes = tuple(number_classes(int(torch.cat([train.y, tested.y]).max()) + 1))
    return Data(path.stem, train, tested, preparation, classes, str(path))


def read_svhn(entry: CatalogEntry, folder: Path) -> Data:
    """Read SVHN: one archive for each part, named after it, with x and y. The original files label the digit 0 as 10."""
    found = entry.find_files(folder)
    parts = {}
    for file, path in found.items():
        arrays = _read_parts(path)
        if "x" not in arrays:
            raise DataError(f"{path} must hold x and y, got {', '.join(sorted(arrays))}")
        part = _build_part(path, arrays, "x", "y")
        parts[file.part] = Part(part.x, torch.where(part.y == 10, 0, part.y))
    test = parts["test"]
    train = parts.get("train", take_no_rows(test))
    return Data(entry.name, train, test, Pixels.fit(train.x if len(train) else test.x), entry.labels, str(folder / "svhn"))


def _read_parts(path: Path) -> dict[str, np.ndarray]:
    """The arrays x and y, or those of the training and the test rows."""
    names = list_arrays(path)
    for wanted in (("x", "y"), ("x_train", "y_train", "x_test", "y_test")):
        if all(name in names for name in wanted):
            return read_arrays(path, wanted)
    raise DataError(
        f"{path} must hold x and y, or x_train, y_train, x_test and y_test, got {shorten(', '.join(names)) or 'nothing'}"
    )


def _build_part(path: Path, arrays: dict[str, np.ndarray], x: str, y: str) -> Part:
    inputs, targets = _convert_inputs(path, arrays[x]), _convert_targets(path, arrays[y])
    if x != "x_test":
        _check_differences(path, arrays[x], inputs)
    if len(inputs) != len(targets):
        raise DataError(f"{path}: there must be a target for each input, got {len(inputs)} in {x} and {len(targets)} in {y}")
    return Part(inputs, targets)


def _convert_inputs(path: Path, x: np.ndarray) -> Tensor:
    """Images as bytes `[N, C, H, W]` or rows of numbers `[N, F]`, in single precision.

    Raises: DataError if the array holds neither, is empty, or has a number that single precision cannot hold.
    """
    if x.ndim and not x.size:
        raise DataError(f"{path} holds no rows: x has the shape {list(x.shape)}")
    if x.dtype == np.uint8 and x.ndim in (3, 4):
        if x.ndim == 3:
            x = x[:, None]
        elif x.shape[3] in (1, 3):
            x = x.transpose(0, 3, 1, 2)
        if x.shape[1] not in (1, 3):
            raise DataError(f"{path}: images must have 1 or 3 channels, first or last, got {list(x.shape[1:])}")
        return torch.from_numpy(np.ascontiguousarray(x))
    if x.ndim != 2 or x.dtype.kind not in "fiub":
        raise DataError(
            f"{path}: inputs must be images as bytes (uint8), [N, H, W] with or without channels, or rows of numbers, [N, F], "
            f"got {x.dtype} {list(x.shape)}"
        )
    return torch.from_numpy(to_single(path, x))


def to_single(path: Path, x: np.ndarray) -> np.ndarray:
    """Rows of numbers `[N, F]` in single precision, as the network takes them: they are not standardised.

    Raises: DataError if a number is not finite, or too large.
    """
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
    if not np.isfinite(single).all():
        row, column = np.argwhere(~np.isfinite(single))[0]
        got = float(x[row, column])
        reason = "a number beyond single precision" if np.isfinite(got) else "NaN or infinity"
        raise DataError(f"{path}: x holds {reason}, {got:g} in row {row + 1}, column {column + 1}: clean or rescale the column")
    return single


def _check_differences(path: Path, x: np.ndarray, single: Tensor) -> None:
    """Raise DataError if training rows that differ in a column are all equal there in single precision."""
    if single.is_floating_point() and x.dtype.itemsize > 4:
        lost = (single == single[:1]).all(0).numpy() & (x != x[:1]).any(0)
        if lost.any():
            column = int(lost.argmax())
            raise DataError(
                f"{path}: column {column + 1} of x differs between rows, but not in single precision (it is about "
                f"{float(x[0, column]):g}): subtract its mean"
            )


def _convert_targets(path: Path, y: np.ndarray) -> Tensor:
    """Whole numbers are labels, real ones the targets of a regression."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or y.dtype.kind not in "fiub":
        raise DataError(f"{path}: targets must be one number a row, [N], got {y.dtype} {list(y.shape)}")
    if y.dtype.kind == "f":
        return torch.from_numpy(y.astype(np.float64))
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < max(len(y), 256):
        raise DataError(f"{path}: labels must count the classes from 0, got {int(y.min())} to {int(y.max())}")
    return torch.from_numpy(y.astype(np.int64))


def _describe(part: Part) -> str:
    return f"{part.x.dtype} {list(part.x.shape[1:])} with {'real targets' if part.y.is_floating_point() else 'labels'}"


def count_rows(path: Path) -> int:
    """How many (training) rows an archive holds."""
    arrays = _read_parts(path)
    return len(arrays["y"] if "y" in arrays else arrays["y_train"])
