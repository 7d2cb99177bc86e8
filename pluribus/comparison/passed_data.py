"""Data that users pass from Python: tensors, arrays, a Dataset or a DataLoader become rows in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from ..core.errors import DataError
from ..data import Data, Pixels, Preparation
from ..data.dataset import Part, check_data, number_classes, take_no_rows
from ..data.preparation import measure_targets

KINDS = "a pair of tensors (x, y), a Dataset or a DataLoader of such pairs"


def build_data(train: Any, test: Any = None, classes: Sequence[str] | None = None, name: str = "data") -> Data:
    """Build `Data` from training rows and, if there are some, test rows.

    Both are pairs (x, y) of tensors or arrays, a Dataset, or a DataLoader. Inputs `[N, …]` of bytes with four axes are images,
    and are normalized by the mean and standard deviation of the training images; other inputs are used as they are. Whole
    targets `[N]` are labels, real ones belong to a regression. A loader is read once, so what it draws at random is drawn once.
    Raises DataError.

    >>> data = build_data((torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])))
    >>> data.task, data.classes, len(data.train), len(data.test)
    ('classification', ('0', '1'), 4, 0)
    """
    rows = gather_rows(train, "training")
    if not len(rows):
        raise DataError("there must be training rows, got none")
    held = take_no_rows(rows) if test is None else gather_rows(test, "test")
    if held.x.shape[1:] != rows.x.shape[1:] or held.y.is_floating_point() != rows.y.is_floating_point():
        raise DataError(f"training and test rows must be alike, got {_describe(rows)} and {_describe(held)}")
    is_image = rows.x.dtype == torch.uint8 and rows.x.dim() == 4
    preparation: Preparation = Pixels.fit(rows.x) if is_image else Preparation()
    if rows.y.is_floating_point():
        preparation = replace(preparation, target=measure_targets("the target", rows.y))
        return check_data(Data(name, rows, held, preparation))
    names = tuple(classes) if classes else number_classes(int(torch.cat([rows.y, held.y]).max()) + 1)
    return check_data(Data(name, rows, held, preparation, names))


def gather_rows(source: Any, what: str) -> Part:
    """Read all rows into memory: inputs `[N, …]` and targets `[N]`. Raises DataError if `source` holds no such rows."""
    if isinstance(source, Part):
        return source
    if isinstance(source, TensorDataset) and len(source.tensors) == 2:
        source = source.tensors
    if (
        isinstance(source, (tuple, list))
        and len(source) == 2
        and all(isinstance(each, (Tensor, np.ndarray)) for each in source)
    ):
        x, y = (torch.as_tensor(each) for each in source)
        return Part(x, _check_targets(y, what))
    if isinstance(source, Dataset) and not isinstance(source, TensorDataset):
        source = DataLoader(source, batch_size=256)
    if not isinstance(source, Iterable) or isinstance(source, (str, bytes, Tensor, np.ndarray)):
        raise DataError(f"{what} rows must be {KINDS}, got {type(source).__name__}")
    inputs, targets = [], []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for batch in source:
            if not isinstance(batch, (tuple, list)) or len(batch) != 2 or not isinstance(batch[0], Tensor):
                raise DataError(f"{what} rows must be {KINDS}, got batches of {type(batch).__name__}")
            inputs.append(batch[0])
            targets.append(torch.as_tensor(batch[1]))
    if not inputs:
        raise DataError(f"the {what} loader has no batches")
    return Part(torch.cat(inputs), _check_targets(torch.cat(targets), what))


def _check_targets(y: Tensor, what: str) -> Tensor:
    """Labels as int64 and real targets in double precision, `[N]`."""
    if y.dim() == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.dim() != 1:
        raise DataError(f"{what} targets must be one number a row, [N], got {list(y.shape)}")
    return y.double() if y.is_floating_point() else y.long()


def _describe(part: Part) -> str:
    return f"{list(part.x.shape[1:])} with {'real targets' if part.y.is_floating_point() else 'labels'}"
