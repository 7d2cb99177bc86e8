"""A run as one file that answers without pluribus: the network with its preparation and rules."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.errors import DataError, FileError
from ..core.seeds import derive_seed, set_seed
from ..data import Columns, Pixels, Preparation
from ..exporting import Exported, export
from .calibration import read_rules
from .config import Config, ConfigError, format_choice
from .consent import Trust
from .evaluation_case import EVALUATION_SEED
from .loading import load_rows, load_run
from .run_folder import open_run

ENDINGS = {"onnx": ".onnx", "torch": ".pt2"}
CHECKED = 64


def export_run(
    path: Path, out: Path | None = None, format: str | None = None, samples: int | None = None, trust: Trust = False
) -> Exported:
    """Write the run in the folder `path` as one file, by default model.onnx in the working folder.

    The file takes rows as they are stored (bytes of images, numbers of a table's columns), and obeys the rules of `pluribus
    calibrate`. It is checked on rows of the run's data, where these are here. Draws of a stochastic method are fixed by the
    run's seed. Raises: ConfigError if a choice makes no sense, ExportError if the file would not give the run's answers.
    """
    run = open_run(path)
    made, config, about, preparation = load_run(run, trust)
    if format is not None and format not in ENDINGS:
        raise ConfigError(f"the format must be onnx or torch, got {format}")
    out = out or Path(f"model{ENDINGS[format or 'onnx']}")
    rules = read_rules(run)
    rows, source = find_rows(config, about, preparation)
    notes = [f"These were {source}."]
    if isinstance(preparation, Columns):
        notes.append("Rows are the numbers that pluribus encodes a table's columns as: the file reads no texts.")
    if made.sampled and rules is not None:
        notes.append("The rules were fitted with new draws for every batch: with fixed ones they hold about, not exactly.")
    set_seed(derive_seed(config.seed, EVALUATION_SEED))
    try:
        return export(
            made,
            out,
            format=format,
            example=rows,
            samples=samples,
            preparation=preparation,
            rules=rules,
            classes=about["classes"],
            title=f"{format_choice(config.data)}: {format_choice(config.model or {'name': 'network'})}, {config.spec.name}",
            notes=notes,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def find_rows(config: Config, about: dict[str, Any], preparation: Preparation) -> tuple[Tensor, str]:
    """Stored rows to check the file on, and what they are: the first test or validation rows, or random numbers."""
    for split in ("test", "validation"):
        try:
            part = load_rows(config, about, preparation, split, None)[1]
        except (ConfigError, DataError, FileError):
            continue
        return part.x[:CHECKED], f"{split} rows of {format_choice(config.data)}"
    generator = torch.Generator().manual_seed(0)
    shape = (CHECKED, *about["shape"])
    if isinstance(preparation, Pixels):
        return torch.randint(
            0, 256, shape, generator=generator, dtype=torch.uint8
        ), "random pixels, because the data are not here"
    return torch.randn(shape, generator=generator), "random numbers, because the data are not here"
