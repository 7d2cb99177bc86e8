"""A trained run on new files: images, tables or .npz → label, confidence and uncertainty of every row."""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.errors import DataError
from ..core.predictive import Predictive
from ..core.seeds import derive_seed, set_seed
from ..data import Columns, Pixels, Preparation
from ..data.image_folder import decode
from ..data.table import SUFFIXES, read_table
from .answers import JUDGE
from .folder import opened
from .opening import draw, trained


def predict(path: Path, files: Sequence[Path], samples: int | None = None) -> Iterator[dict[str, Any]]:
    """An answer for every row of every file, in order."""
    made, config, about, preparation = trained(opened(path))
    if samples is not None:
        draw(made, samples)
    for number, file in enumerate(files):
        rows = read(file, preparation, tuple(about["shape"]), config.data.get("header"))
        set_seed(derive_seed(config.seed, JUDGE, number))
        like = next(made.parameters())
        p = made.predict(preparation(rows).to(like.device, like.dtype))
        for row, answer in enumerate(answers(made, p, about["classes"], preparation)):
            yield {"file": str(file), "row": row} | answer


def answers(ensemble: Ensemble, p: Predictive, classes: Sequence[str], preparation: Preparation) -> Iterator[dict[str, Any]]:
    if ensemble.task == "regression":
        p = Predictive(preparation.unscale_targets(p.outputs), "regression")
        for mean, std in zip(p.mean.flatten().tolist(), p.std.flatten().tolist(), strict=True):
            yield {"value": mean, "spread": std}
        return
    columns = (p.labels, p.confidence, p.entropy, p.mutual_information)
    for label, confidence, entropy, information, probs in zip(*(c.tolist() for c in columns), p.probs.tolist(), strict=True):
        yield {
            "label": classes[label],
            "confidence": confidence,
            "uncertainty": entropy,
            "disagreement": information,
            "probabilities": dict(zip(classes, probs, strict=True)),
        }


def read(file: Path, preparation: Preparation, shape: tuple[int, ...], header: bool | None = None) -> Tensor:
    """The rows of a file, as the run's data are stored; `header` as for the table that it learnt from."""
    if file.is_dir():
        raise DataError(f"{file} is a folder: name files, as in {file}/*")
    if not file.is_file():
        raise DataError(f"there is no file {file}")
    if isinstance(preparation, Columns):
        if not file.name.lower().endswith(SUFFIXES):
            raise DataError(f"the run learnt from a table, and {file.name} is none: it must end in {', '.join(SUFFIXES)}")
        try:
            return preparation.encode(read_table(file, header))
        except DataError as error:
            raise DataError(str(error) if str(file) in str(error) else f"{file}: {error}") from error
    if file.suffix == ".npz":
        return arrays(file, shape, isinstance(preparation, Pixels))
    if isinstance(preparation, Pixels):
        if file.name.lower().endswith(SUFFIXES):
            raise DataError(f"the run learnt from images, and {file.name} is a table: give images, or x in an .npz file")
        channels, height, width = shape
        return decode([file], height, width, channels)
    raise DataError(f"the run learnt from rows of {shape[0]} numbers: give them as x in an .npz file, got {file.name}")


def arrays(file: Path, shape: tuple[int, ...], pixels: bool) -> Tensor:
    try:
        with np.load(file, allow_pickle=False) as content:
            x = content["x"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, AttributeError, TypeError) as error:
        raise DataError(f"{file} must be an .npz file with a plain array x, as numpy.savez writes it") from error
    if x.dtype != np.uint8 if pixels else x.dtype.kind not in "fiub":
        raise DataError(f"x of {file} must hold {'bytes (uint8), as pixels are' if pixels else 'numbers'}, got {x.dtype}")
    if x.ndim == len(shape) + 1 and x.shape[1:] != shape and len(shape) == 3 and x.shape[1:] == (*shape[1:], shape[0]):
        x = x.transpose(0, 3, 1, 2)
    if x.ndim == 3 and len(shape) == 3 and shape[0] == 1:
        x = x[:, None]
    if x.shape[1:] != shape:
        wanted = "×".join(map(str, shape))
        raise DataError(f"the rows of {file} must be of {wanted}, got {'×'.join(map(str, x.shape[1:]))}")
    return torch.from_numpy(np.ascontiguousarray(x))
