"""How a run does when the world is not as in training: corrupted images, and rows that belong to none of its classes."""

import zlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..analysis.scores import ClassificationScores, create_scores
from ..core.seeds import derive_seed
from ..data import Columns, Data, load
from ..data.corruptions import EXTRA, SEVERITIES, STANDARD, corrupt
from ..data.dataset import Part
from ..data.table import SUFFIXES, read_table
from ..metrics.ood_detection import auroc, fpr95
from .answers import Case
from .choice import parse
from .config import ConfigError

DRAWN = ("noise", "shuffled")
"""Strangers that are made of the data itself: uniform noise, and its own images with their pixels shuffled."""
CACHE = 2**29  # bytes of corrupted images to keep for the next run


def shift(case: Case, rows: int, extra: bool = False) -> dict[str, Any]:
    """Accuracy, NLL and ECE by kind and severity, and their means over the standard kinds: cAcc, cNLL, cECE."""
    clean = case.sample(rows)
    found: dict[str, dict[str, list[float]]] = {}
    for kind in STANDARD + EXTRA if extra else STANDARD:
        scores = [case.on(Part(corrupted_once(clean.x, kind, level), clean.y)).scores() for level in SEVERITIES]
        found[kind] = {name: [score[name] for score in scores] for name in scores[0]}

    def mean(name: str) -> float:
        return sum(sum(found[kind][name]) for kind in STANDARD) / (len(STANDARD) * len(SEVERITIES))

    means = {"cacc": mean("accuracy"), "cnll": mean("nll"), "cece": mean("ece")}
    return means | {"rows": len(clean), "clean": case.on(clean).scores(), "kinds": found}


_made: dict[tuple[int, str, int], Tensor] = {}


def corrupted_once(images: Tensor, kind: str, severity: int) -> Tensor:
    """Corrupted images are the same for every run of a comparison: made once in a process, while they are few."""
    key = (zlib.crc32(images.numpy().tobytes()), kind, severity)
    if key not in _made:
        if sum(kept.numel() for kept in _made.values()) + images.numel() > CACHE:
            _made.clear()
        _made[key] = corrupt(images, kind, severity)
    return _made[key]


def mce(own: dict[str, Any], base: dict[str, Any]) -> float:
    """Each standard kind's errors over those of the base network, averaged over the kinds.

    Hendrycks & Dietterich, 2019, section 4.1, as a ratio; their base network is AlexNet, ours the one that was converted.

    >>> kinds = {kind: {"accuracy": [0.5] * 5} for kind in STANDARD}
    >>> mce({"kinds": kinds}, {"kinds": {kind: {"accuracy": [0.0] * 5} for kind in STANDARD}})
    0.5
    """
    ratios = []
    for kind in STANDARD:
        errors, theirs = (sum(1 - a for a in each["kinds"][kind]["accuracy"]) for each in (own, base))
        ratios.append(errors / theirs if theirs > 0 else 1.0 if errors == 0 else float("inf"))
    return sum(ratios) / len(ratios)


def strangers(case: Case, own: ClassificationScores, name: str, folder: str | None) -> dict[str, Any]:
    """How well another set's rows are told from one's own, by each score of uncertainty."""
    others, how = stranger_rows(case, name, folder)
    seen = create_scores("classification")
    for p, y in case.answers(Part(others, torch.zeros(len(others), dtype=torch.long))):
        seen.add(p, y)
    pairs = {
        "confidence": (-own["confidence"], -seen["confidence"]),
        "entropy": (own["entropy"], seen["entropy"]),
        "mutual-information": (own["mutual_information"], seen["mutual_information"]),
    }
    if case.members == 1:  # there is nobody to differ
        del pairs["mutual-information"]
    return {
        "rows": len(others),
        "how": how,
        "auroc": {score: auroc(*pair) for score, pair in pairs.items()},
        "fpr95": {score: fpr95(*pair) for score, pair in pairs.items()},
    }


def stranger_rows(case: Case, name: str, folder: str | None) -> tuple[Tensor, str]:
    """The rows of a set by name, in the shape of one's own, and what was done to them."""
    data, x = case.data, case.part.x
    generator = torch.Generator().manual_seed(derive_seed(0, zlib.crc32(name.encode())))
    if name == "noise":
        return torch.randint(256, tuple(x.shape), generator=generator).byte(), "drawn"
    if name == "shuffled":
        order = torch.stack([torch.randperm(x[0, 0].numel(), generator=generator) for _ in range(len(x))])
        flat = x.flatten(2)
        return flat.gather(2, order.unsqueeze(1).expand(-1, flat.shape[1], -1)).view_as(x), "drawn"
    return other_rows(data, name, folder)


def other_rows(data: Data, name: str, folder: str | None) -> tuple[Tensor, str]:
    """The rows of a known set or a file; of a table, encoded as the one that was learnt from."""
    choice = parse(name)
    if isinstance(data.preparation, Columns):
        path = Path(choice["name"]).expanduser()
        if not path.name.lower().endswith(SUFFIXES):
            raise ConfigError(f"{data.name} is a table: ood must be one, with the same columns, got {name}")
        return data.preparation.encode(read_table(path)), "encoded alike"
    other = load(choice["name"], folder, **{key: value for key, value in choice.items() if key != "name"})
    rows = (other.test if len(other.test) else other.train).x
    if other.shape == data.shape and other.has_images == data.has_images:
        return rows, "as it is"
    if not (other.has_images and data.has_images):
        raise ConfigError(f"ood {name} has other inputs than {data.name}: choose a set of the same kind")
    channels, *side = data.shape
    pixels = rows.float().mean(1, keepdim=True) if channels == 1 else rows.float().expand(-1, channels, -1, -1)
    pixels = torch.nn.functional.interpolate(pixels, size=tuple(side), mode="bilinear", antialias=True)
    return pixels.round().clamp(0, 255).byte(), f"resized from {'×'.join(map(str, other.shape))}"
