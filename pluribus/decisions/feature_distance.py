"""How far rows are from the training rows in the features of a network, which are what its last layer with weights gets.

    d(x)² = min_c (f − μ_c)ᵀ Σ⁻¹ (f − μ_c)        f the features of x, μ_c the mean of class c, Σ the covariance within classes

Features of a convolution, and of a sequence, are averaged over their places. Σ is shrunk towards a multiple of the identity, by
a part `SHRINKAGE` of its mean variance, because features may be constant or depend on one another.

An ensemble has the features of its first member: one more pass of a plain network. Noise is drawn once and kept.

Lee et al., "A simple unified framework for detecting out-of-distribution samples and adversarial attacks", NeurIPS 2018. We add
no noise to inputs, and use one layer.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..core import pytrees
from ..core.affine import AFFINE
from ..core.ensemble import Ensemble
from ..core.errors import Unsupported
from ..core.seeds import set_seed

SHRINKAGE = 0.01
CHUNK = 512
"""Rows that run at once."""


class FeatureNetwork:
    """The first member of an ensemble as a plain network, and the place of its last layer.

    Raises: Unsupported if the method has no plain members, or if no layer with weights gets the features of each row.
    """

    def __init__(self, ensemble: Ensemble, x: Any) -> None:
        if ensemble.sampled:
            ensemble.predict(pytrees.take_rows(x, 2))  # finds the shapes of what is drawn
            with torch.random.fork_rng(devices=[]):
                set_seed(0)
                ensemble = ensemble.freeze(1)
        self.network = ensemble.member(0).eval()
        order: list[nn.Module] = []
        hooks = [
            layer.register_forward_pre_hook(lambda layer, _: order.append(layer))
            for layer in self.network.modules()
            if isinstance(layer, AFFINE)
        ]
        try:
            with torch.no_grad():
                pytrees.call_network(self.network, pytrees.take_rows(x, 2))
        finally:
            for hook in hooks:
                hook.remove()
        if not order:
            raise Unsupported("the network has no linear or convolutional layer whose inputs could be its features")
        self.last = order[-1]

    @torch.no_grad()
    def extract(self, x: Any) -> Tensor:
        """The features of a batch `[B, …]`, in double precision: `[B, D]`."""
        found: list[Tensor] = []
        hook = self.last.register_forward_pre_hook(lambda _, args: found.append(average_places(self.last, args[0])))
        try:
            for start in range(0, pytrees.count_rows(x), CHUNK):
                before = len(found)
                pytrees.call_network(self.network, pytrees.slice_rows(x, start, CHUNK))
                del found[before:-1]  # a layer that runs several times: its last inputs
        finally:
            hook.remove()
        features = torch.cat(found)
        if len(features) != (rows := pytrees.count_rows(x)):
            raise Unsupported(f"the last layer gets {len(features)} rows for {rows} inputs: there are no features of each row")
        return features


def average_places(layer: nn.Module, x: Tensor) -> Tensor:
    """The inputs of a layer, averaged over places: of a linear layer `[B, …, D]`, of a convolution `[B, D, …]`, → `[B, D]`."""
    x = x.double()
    channels = x.flatten(1, -2).mean(1) if isinstance(layer, nn.Linear) and x.dim() > 2 else x
    return channels.flatten(2).mean(2) if channels.dim() > 2 else channels


@dataclass(frozen=True, eq=False)
class TrainingDistance:
    """Measures how far rows are from training rows: by a `network` whose features are `known`."""

    network: FeatureNetwork
    known: "FeatureDistance"

    def measure(self, x: Any) -> Tensor:
        """The distance of each row of a batch, or of all batches of a loader: `[B]`, in double precision."""
        batches = map(pytrees.leave_targets_out, x) if pytrees.is_loader(x) else [x]
        return torch.cat([self.known.measure(self.network.extract(batch)) for batch in batches])


def learn_training_distance(ensemble: Ensemble, x: Any, y: Tensor) -> TrainingDistance:
    """Learn the distance to training rows, a batch `[B, …]` and their classes `[B]`. Raises as FeatureNetwork does."""
    network = FeatureNetwork(ensemble, x)
    return TrainingDistance(network, fit_feature_distance(network.extract(x), y))


@dataclass(frozen=True, eq=False)
class FeatureDistance:
    """What is known of the training rows' features: `means` `[C, D]` of the classes, and a `whitening` `[D, D]` matrix, which
    makes their covariance within classes the identity."""

    means: Tensor
    whitening: Tensor = field(repr=False)

    def measure(self, features: Tensor) -> Tensor:
        """The distance of each row to the nearest mean of a class: `[B, D]` → `[B]`.

        >>> known = FeatureDistance(torch.tensor([[0.0, 0.0], [9.0, 0.0]]), torch.eye(2))
        >>> known.measure(torch.tensor([[3.0, 4.0], [9.0, 1.0]]))
        tensor([5., 1.])
        """
        whitening = self.whitening.to(features)
        return torch.cdist(features @ whitening, self.means.to(features) @ whitening).amin(1)


def fit_feature_distance(features: Tensor, labels: Tensor) -> FeatureDistance:
    """Learn the distance from the features `[B, D]` of training rows and their classes `[B]`. Empty classes are left out.

    >>> x = torch.tensor([[0.0, 0.0], [2.0, 0.0], [9.0, 1.0], [9.0, -1.0]], dtype=torch.double)
    >>> fit_feature_distance(x, torch.tensor([0, 0, 1, 1])).means
    tensor([[1., 0.],
            [9., 0.]], dtype=torch.float64)
    """
    if features.dim() != 2 or len(features) != len(labels) or not len(labels):
        shape = list(features.shape)
        raise ValueError(f"there must be features [B, D] and a class for each training row, got {shape} and {len(labels)}")
    if not bool(features.isfinite().all()):
        raise ValueError("the network's features of some training rows are not finite")
    features = features.double().cpu()
    _, own = labels.flatten().cpu().unique(return_inverse=True)
    counts = torch.bincount(own).unsqueeze(1)
    means = torch.zeros(len(counts), features.shape[1], dtype=torch.double).index_add_(0, own, features) / counts
    rest = features - means[own]
    covariance = rest.mT @ rest / len(rest)
    least = SHRINKAGE * (covariance.diagonal().mean().item() or 1.0)  # features that are all constant are compared as they are
    values, vectors = torch.linalg.eigh(covariance)
    return FeatureDistance(means, (vectors * (values.clamp_min(0) + least).rsqrt()).contiguous())
