"""How a run does on inputs that differ from its training data: corrupted images, out-of-distribution rows, attacked images.

Attacks are written as people write them, with sizes in pixels from 0 to 1.
"""

import zlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..analysis.attacks import Attack, attack
from ..analysis.scores import ClassificationScores, create_scores
from ..core.files import restore_number
from ..core.seeds import derive_seed
from ..core.spec import require_number
from ..data import Columns, Data, Pixels, load
from ..data.corruptions import EXTRA, SEVERITIES, STANDARD, corrupt
from ..data.dataset import Part
from ..data.table_files import SUFFIXES, read_table
from ..metrics.ood_detection import auroc, fpr95
from .choices import parse_choice
from .config import ConfigError
from .evaluation_case import EvaluationCase

GENERATED_SETS = ("noise", "shuffled")
"""Out-of-distribution sets made from the data: uniform noise, and the test images with their pixels shuffled."""
CACHE = 2**29  # bytes of corrupted images that are kept for the next run
ATTACKS = {"linf": "PGD, L∞", "l2": "PGD, L2", "fgsm": "fast sign, one step"}

# --- corruptions ------------------------------------------------------------------------------------------------------


def measure_shift(case: EvaluationCase, rows: int, extra: bool = False) -> dict[str, Any]:
    """Accuracy, NLL and ECE by kind and severity, and their means over the standard kinds: cAcc, cNLL, cECE."""
    clean = case.sample_rows(rows)
    found: dict[str, dict[str, list[float]]] = {}
    for kind in STANDARD + EXTRA if extra else STANDARD:
        scores = [case.tally_scores(Part(corrupt_once(clean.x, kind, level), clean.y)).scores() for level in SEVERITIES]
        found[kind] = {name: [score[name] for score in scores] for name in scores[0]}

    def mean(name: str) -> float:
        return sum(sum(found[kind][name]) for kind in STANDARD) / (len(STANDARD) * len(SEVERITIES))

    means = {"cacc": mean("accuracy"), "cnll": mean("nll"), "cece": mean("ece")}
    return means | {"rows": len(clean), "clean": case.tally_scores(clean).scores(), "kinds": found}


_corrupted: dict[tuple[int, str, int], Tensor] = {}


def corrupt_once(images: Tensor, kind: str, severity: int) -> Tensor:
    """Corrupt images, or take the corrupted ones from the cache: they are the same for every run of a comparison."""
    key = (zlib.crc32(images.numpy().tobytes()), kind, severity)
    if key not in _corrupted:
        if sum(kept.numel() for kept in _corrupted.values()) + images.numel() > CACHE:
            _corrupted.clear()
        _corrupted[key] = corrupt(images, kind, severity)
    return _corrupted[key]


def mce(own: dict[str, Any], base: dict[str, Any]) -> float:
    """Each standard kind's errors over those of the base network, averaged over the kinds.

    Hendrycks & Dietterich, 2019, section 4.1, as a ratio; their base network is AlexNet, ours the one that was converted.

    >>> kinds = {kind: {"accuracy": [0.5] * 5} for kind in STANDARD}
    >>> mce({"kinds": kinds}, {"kinds": {kind: {"accuracy": [0.0] * 5} for kind in STANDARD}})
    0.5
    """
    ratios = []
    for kind in STANDARD:
        errors, theirs = (sum(1 - restore_number(a) for a in each["kinds"][kind]["accuracy"]) for each in (own, base))
        ratios.append(errors / theirs if theirs != 0 else 1.0 if errors == 0 else float("inf"))
    return sum(ratios) / len(ratios)


# --- out-of-distribution detection ------------------------------------------------------------------------------------


def detect_out_of_distribution(
    case: EvaluationCase, own: ClassificationScores, name: str, folder: str | None
) -> dict[str, Any]:
    """How well each score of uncertainty separates the rows of another set from the test rows."""
    others, how = load_out_of_distribution(case, name, folder)
    seen = create_scores("classification", with_calibrated=False)
    for p, y in case.predict_batches(Part(others, torch.zeros(len(others), dtype=torch.long))):
        seen.add(p, y)
    pairs = {
        "confidence": (-own["confidence"], -seen["confidence"]),
        "entropy": (own["entropy"], seen["entropy"]),
        "mutual-information": (own["mutual_information"], seen["mutual_information"]),
    }
    if case.members == 1:  # one member has no mutual information
        del pairs["mutual-information"]
    return {
        "rows": len(others),
        "how": how,
        "auroc": {score: auroc(*pair) for score, pair in pairs.items()},
        "fpr95": {score: fpr95(*pair) for score, pair in pairs.items()},
    }


def load_out_of_distribution(case: EvaluationCase, name: str, folder: str | None) -> tuple[Tensor, str]:
    """The rows of a set by name, in the shape of the test rows, and what was done to them."""
    data, x = case.data, case.part.x
    generator = torch.Generator().manual_seed(derive_seed(0, zlib.crc32(name.encode())))
    if name == "noise":
        return torch.randint(256, tuple(x.shape), generator=generator).byte(), "drawn"
    if name == "shuffled":
        order = torch.stack([torch.randperm(x[0, 0].numel(), generator=generator) for _ in range(len(x))])
        flat = x.flatten(2)
        return flat.gather(2, order.unsqueeze(1).expand(-1, flat.shape[1], -1)).view_as(x), "drawn"
    return load_other_set(data, name, folder)


def load_other_set(data: Data, name: str, folder: str | None) -> tuple[Tensor, str]:
    """The rows of a known set or a file. A table is encoded as the training table was."""
    choice = parse_choice(name)
    if isinstance(data.preparation, Columns):
        path = Path(choice["name"]).expanduser()
        if not path.name.lower().endswith(SUFFIXES):
            raise ConfigError(f"{data.name} is a table: ood must be one, with the same columns, got {name}")
        return data.preparation.encode(read_table(path, infer=False)), "encoded alike"
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


# --- attacks ----------------------------------------------------------------------------------------------------------


def parse_attack(choice: dict[str, Any], data: Data) -> tuple[Attack, str]:
    """The attack and its title. The default epsilon is 0.1 on grey images and 8/255 on colour images; 1.5 and 0.5 in L2."""
    kind, options = choice["name"], {key: value for key, value in choice.items() if key != "name"}
    known = [field.name for field in fields(Attack) if field.name != "norm"]
    for option in options:
        if option not in known:
            raise ConfigError(f"attack {kind} has no option {option!r}; it has: {', '.join(known)}")
    grey = data.shape[0] == 1
    usual = (1.5 if grey else 0.5) if kind == "l2" else (0.1 if grey else 8 / 255)
    epsilon = options.get("epsilon", usual)
    try:
        require_number("epsilon", epsilon, positive=True)
        steps = {"step": epsilon, "iterations": 1} if kind == "fgsm" else {"step": epsilon / 4}
        made = Attack(**{"epsilon": epsilon, "norm": "l2" if kind == "l2" else "linf"} | steps | options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"attack {kind}: {error}") from None
    restarts = f", {made.restarts} restarts" if made.restarts else ""
    length = f", {made.iterations} steps" if made.iterations != 1 else ""
    return made, f"{ATTACKS[kind]}, ε = {epsilon:.3g}{length}{restarts}{', targeted' if made.targeted else ''}"


def measure_attack(case: EvaluationCase, choice: dict[str, Any], rows: int) -> dict[str, Any]:
    """The success of an attack by iteration; a method that draws noise is also attacked through one draw."""
    assert isinstance(case.data.preparation, Pixels)
    spec, title = parse_attack(choice, case.data)
    chosen, like = case.sample_rows(rows), next(case.ensemble.parameters())
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (case.data.preparation.mean, case.data.preparation.std))
    low, high = -mean / std, (1 - mean) / std
    x = torch.minimum(torch.maximum(case.data.preparation(chosen.x), low), high)  # rounding may exceed the bounds slightly
    y, classes = chosen.y, case.data.outputs
    if spec.targeted:
        y = (y + torch.randint(1, classes, (len(y),), generator=torch.Generator().manual_seed(0))) % classes
    x, low, high, scale = (tensor.to(like.device, like.dtype) for tensor in (x, low, high, 1 / std))

    def run(samples: int | None) -> dict[str, Any]:
        made = replace(spec, samples=samples)
        found = attack(case.ensemble, x, y.to(like.device), made, low=low, high=high, scale=scale, seed=case.seed)
        curves = {"success": found.success.tolist(), "entropy": found.entropy.tolist()}
        return curves | {"final": found.final_success, "final_entropy": found.final_entropy}

    whole = run(spec.samples)
    return {"title": title, "rows": len(chosen)} | whole | {"one_sample": run(1) if case.is_sampled else None}
