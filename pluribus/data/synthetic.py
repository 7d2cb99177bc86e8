"""Synthetic data sets of the papers, drawn with a seed: the same on every machine.

Four Gaussians: the classes' means are (3, 3), (3, 10), (10, 3), (10, 10), the covariance is the identity. Neklyudov et al.,
"Variance Networks: When Expectation Does Not Meet Your Expectations", ICLR 2019, section 3.2. The paper does not say how many
points were drawn.

Blundell's noisy function:

    y = x + 0.3 sin(2π(x + ε)) + 0.3 sin(4π(x + ε)) + ε,    ε ~ N(0, 0.02)

Blundell et al., "Weight Uncertainty in Neural Networks", ICML 2015, section 5.2; with 64 training and 3,000 test points in
Havasi et al., "Training independent subnetworks for robust prediction", ICLR 2021, section 2.1, which says neither how x was
drawn nor whether 0.02 is a variance. Here x is uniform in [0, 0.5], as is usual for this function, and 0.02 is the standard
deviation; `noise` sets another.
"""

import itertools
import math
from pathlib import Path

import numpy as np
import torch

from ..core.errors import DataError
from .catalog_entry import CatalogEntry
from .dataset import Data, Part
from .preparation import Preparation

MEANS = tuple(itertools.product((3.0, 10.0), repeat=2))


def draw_four_gaussians(entry: CatalogEntry, folder: Path, *, rows: int = 1000, test: int = 1000, seed: int = 0) -> Data:
    """Draw `rows` training and `test` test points `[N, 2]` of four classes. Raises: DataError if there are too few."""
    _check_count("rows", rows, len(MEANS))
    _check_count("test", test, 0)
    random = np.random.RandomState(seed)

    def part(count: int) -> Part:
        y = np.arange(count) % len(MEANS)
        x = np.array(MEANS)[y] + random.standard_normal((count, 2))
        return Part(torch.from_numpy(x).float(), torch.from_numpy(y))

    return Data(entry.name, part(rows), part(test), Preparation(), entry.labels, f"drawn, seed {seed}")


def draw_blundell(
    entry: CatalogEntry, folder: Path, *, rows: int = 64, test: int = 3000, seed: int = 0, noise: float = 0.02
) -> Data:
    """Draw `rows` training and `test` test points of Blundell's function, x `[N, 1]` and y `[N]`. Raises: DataError."""
    _check_count("rows", rows, 2)
    _check_count("test", test, 0)
    if noise < 0:
        raise DataError(f"noise must not be negative, got {noise}: it is a standard deviation")
    random = np.random.RandomState(seed)

    def part(count: int) -> Part:
        x = random.uniform(0, 0.5, (count, 1))
        y = compute_blundell(x, noise * random.standard_normal((count, 1)))
        return Part(torch.from_numpy(x).float(), torch.from_numpy(y[:, 0]).float())

    # The papers learn the function as it is, so the targets are not scaled.
    return Data(entry.name, part(rows), part(test), Preparation(), (), f"drawn, seed {seed}")


def compute_blundell(x: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Blundell's function at `x` with noise ε, both of any one shape."""
    return x + 0.3 * np.sin(2 * math.pi * (x + noise)) + 0.3 * np.sin(4 * math.pi * (x + noise)) + noise


def _check_count(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise DataError(f"{name} must be a whole number of at least {least}, got {value!r}")
