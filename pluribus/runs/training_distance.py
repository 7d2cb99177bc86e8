"""The distance of rows to a run's training rows, for its alarm: learned by `pluribus calibrate`, kept beside its rules."""

from pathlib import Path

import torch
from torch import Tensor

from ..core.ensemble import Ensemble
from ..core.errors import FileError
from ..core.files import write_file
from ..core.tensor_files import read_described_tensors, serialize_tensors
from ..data.batches import TensorBatches
from ..data.dataset import Part
from ..data.preparation import Preparation
from ..decisions.feature_distance import FeatureDistance, FeatureNetwork, TrainingDistance, fit_feature_distance
from ..file_formats.digests import digest_file
from .run_folder import Run

FILE = "calibration.safetensors"
PLACE, FORMAT = "pluribus", "pluribus-features-1"
MOST_ROWS, BATCH = 5000, 512
"""The distance is learned from at most so many training rows."""


def learn_distance(ensemble: Ensemble, part: Part, preparation: Preparation, seed: int) -> TrainingDistance:
    """Learn the distance from training rows as they were read. Raises: Unsupported where there are no features."""
    if len(part) > MOST_ROWS:
        order = torch.randperm(len(part), generator=torch.Generator().manual_seed(seed))
        part = part.take_rows(order[:MOST_ROWS].sort().values)
    network = FeatureNetwork(ensemble, prepare_rows(ensemble, part.x[:2], preparation))
    return TrainingDistance(network, fit_feature_distance(extract_features(network, ensemble, part, preparation), part.y))


def measure_distance(distance: TrainingDistance, ensemble: Ensemble, part: Part, preparation: Preparation) -> Tensor:
    """The distance of each row, as it was read: `[B]`."""
    return distance.known.measure(extract_features(distance.network, ensemble, part, preparation))


def extract_features(network: FeatureNetwork, ensemble: Ensemble, part: Part, preparation: Preparation) -> Tensor:
    like = next(ensemble.parameters())
    return torch.cat([network.extract(x.to(like.device, like.dtype)) for x, _, _ in TensorBatches(part, BATCH, preparation)])


def prepare_rows(ensemble: Ensemble, x: Tensor, preparation: Preparation) -> Tensor:
    like = next(ensemble.parameters())
    return preparation(x).to(like.device, like.dtype)


def write_distance(run: Run, known: FeatureDistance) -> str:
    """Write what is known of the training rows' features into the folder of the run, and return the digest of the file."""
    target = run.path / FILE
    write_file(target, serialize_tensors({"means": known.means, "whitening": known.whitening}, {"format": FORMAT}, PLACE))
    return digest_file(target)


def read_distance(run: Run, ensemble: Ensemble, digest: str, example: Tensor) -> TrainingDistance:
    """Return the distance that the file of a run has; `example` are some rows as the network gets them.

    Raises: FileError if the file is damaged, or does not belong to the rules, whose record has the `digest`.
    """
    target: Path = run.path / FILE
    cure = f"fit the rules again with `pluribus calibrate {run.path}`"
    if not target.is_file():
        raise FileError(f"{target} is missing, which the alarm of this run needs: {cure}")
    if digest_file(target) != digest:
        raise FileError(f"{target} belongs to other rules: {cure}")
    _, tensors = read_described_tensors(target, PLACE, (FORMAT,), f"not one that `pluribus calibrate` wrote: {cure}")
    means, whitening = tensors.get("means"), tensors.get("whitening")
    network = FeatureNetwork(ensemble, example)
    count = network.extract(example).shape[1]
    if means is None or whitening is None or means.shape[1:] != (count,) or whitening.shape != (count, count):
        raise FileError(f"{target} does not fit the network, whose rows have {count} features: {cure}")
    return TrainingDistance(network, FeatureDistance(means, whitening))
