"""Trajectories: where the members are in the space of predictions while they are trained.

Every member at every recorded step is a point: its probabilities for the same rows, one after the other. Two maps show the
points in two dimensions:

- principal components, a linear map: distances can only shrink, and the share of the variance that it shows is known;
- t-SNE keeps neighbours near each other, and says nothing about distances between groups. It draws groups of points even where
  there are none, so look at the other map, too.

Fort et al., "Deep Ensembles: A Loss Landscape Perspective", 2019; van der Maaten & Hinton, "Visualizing data using
t-SNE", 2008.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core.ensemble import Ensemble


class Trajectories:
    """The predictions of all members for the same rows at several moments of a training.

    >>> import pluribus
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 3), pluribus.DeepEnsemble(members=2))
    >>> path = Trajectories(torch.randn(10, 4))
    >>> for step in range(3):
    ...     path.record(ensemble, step)
    >>> path.predictions.shape, path.project_linearly()[0].shape
    (torch.Size([3, 2, 30]), torch.Size([3, 2, 2]))
    """

    def __init__(self, x: Any) -> None:
        """`x` are the rows to predict, `[B, …]`."""
        self.x = x
        self.steps: list[float] = []
        self._recorded: list[Tensor] = []

    def record(self, ensemble: Ensemble, step: float) -> None:
        """Add what the members answer now; `step` is the number of the step or epoch. The ensemble stays in its mode."""
        self.add(ensemble.predict(self.x).members, step)  # of a classification, probabilities

    def add(self, members: Tensor, step: float) -> None:
        """Add predictions that were made before, `[M, B, …]`, as the `members` of a `Predictive` are."""
        if self._recorded and len(members) != len(self._recorded[0]):
            raise ValueError(f"there were {len(self._recorded[0])} members before, and now there are {len(members)}")
        self.steps.append(step)
        self._recorded.append(members.flatten(1).double().cpu())

    @property
    def predictions(self) -> Tensor:
        """All points, `[T, M, B·C]`."""
        if not self._recorded:
            raise ValueError("nothing is recorded yet: call record(ensemble, step) during training")
        return torch.stack(self._recorded)

    def project_linearly(self) -> tuple[Tensor, float]:
        """The first two principal components of all points, `[T, M, 2]`, and the share of the variance that they hold."""
        points = self.predictions
        flat = points.flatten(0, 1)
        u, s, _ = torch.linalg.svd(flat - flat.mean(0), full_matrices=False)
        two = torch.zeros(len(flat), 2, dtype=flat.dtype)
        kept = min(2, len(s))
        two[:, :kept] = u[:, :kept] * s[:kept]
        total = s.square().sum()
        return two.view(*points.shape[:2], 2), (s[:2].square().sum() / total).item() if total > 0 else 1.0

    def project_by_neighbours(self, perplexity: float = 10.0, seed: int = 0) -> Tensor:
        """The points by t-SNE, `[T, M, 2]`.

        Args:
            perplexity: About how many neighbours each point is to stay near to; it must be below the number of points.
            seed: That of the optimisation, which starts from the principal components.
        """
        from sklearn.manifold import TSNE

        points = self.predictions
        flat = points.flatten(0, 1).numpy()
        if perplexity >= len(flat):
            raise ValueError(f"the perplexity must be below the number of points, {len(flat)}, got {perplexity:g}")
        # The number of jobs is that of threads, and answers do not depend on it.
        found = TSNE(2, perplexity=perplexity, init="pca", random_state=seed, method="exact").fit_transform(flat)
        return torch.from_numpy(np.asarray(found, dtype=np.float64)).view(*points.shape[:2], 2)
