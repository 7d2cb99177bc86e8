"""Mixup: a batch is mixed with its own rows in another order, inputs and targets alike.

    x̃_i = λ x_i + (1 − λ) x_π(i),    ỹ_i = λ y_i + (1 − λ) y_π(i),    λ ~ Beta(α, α)

There is one λ and one permutation π for each batch, drawn from the seed and the number of the step; all members see the same
mixed rows. Where several processes share a batch, the whole batch is mixed, and then shared.

Zhang et al., "mixup: Beyond Empirical Risk Minimization", ICLR 2018.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core import pytrees
from ..core.ensemble import Ensemble
from ..core.seeds import derive_seed


def check_mixup(ensemble: Ensemble, x: Any) -> None:
    """Raise ValueError if rows `x` `[B, …]` and their targets cannot be mixed."""
    if ensemble.task == "regression":
        raise ValueError("mixup is for a classification, and this is a regression: leave mixup out")
    if not all(leaf.is_floating_point() for leaf in pytrees.iterate_tensors(x)):
        raise ValueError("mixup mixes inputs that are real numbers, and these hold whole ones, as tokens are: leave mixup out")


def mix_rows(x: Any, y: Tensor, alpha: float, seed: int) -> tuple[Any, Tensor]:
    """Mix a batch with a permutation of its rows.

    Args: inputs `[B, …]`; probabilities of the classes `[B, C, …]`; α; the seed that λ and the permutation are drawn from.
    Returns: inputs and targets in the same shapes.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> mixed, targets = mix_rows(x, x, 1.0, seed=0)
    >>> torch.equal(mixed, targets), bool(((mixed >= 0) & (mixed <= 1)).all())
    (True, True)
    """
    share = draw_share(alpha, seed)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(derive_seed(seed, 1)))

    def mix(rows: Tensor) -> Tensor:
        return rows * share + rows[order.to(rows.device)] * (1 - share)

    return pytrees.map_tensors(mix, x), mix(y)


def draw_share(alpha: float, seed: int) -> float:
    """Draw λ ~ Beta(α, α). NumPy draws it in logarithms where α is so small that gamma draws would vanish."""
    return float(np.random.default_rng(seed).beta(alpha, alpha))
