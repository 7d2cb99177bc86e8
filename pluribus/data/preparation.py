"""How stored rows become a network's inputs, and outputs become predictions. It is saved with a run."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..core.errors import DataError, FileError


@dataclass(frozen=True)
class Preparation:
    """Rows of numbers that are used as they are. `target` is the mean and the standard deviation of a regression's targets.

    >>> Preparation(target=(10.0, 2.0)).scale_targets(torch.tensor([14.0]))
    tensor([2.])
    """

    kind: ClassVar[str] = "rows"
    kinds: ClassVar[dict[str, type["Preparation"]]] = {}

    target: tuple[float, float] = field(default=(0.0, 1.0), kw_only=True)

    def __init_subclass__(cls) -> None:
        Preparation.kinds[cls.kind] = cls

    @property
    def column_widths(self) -> tuple[int, ...] | None:
        """The columns that the numbers of a row belong to, where that is known (see `Columns.column_widths`)."""
        return None

    def __call__(self, rows: Tensor) -> Tensor:
        """Turn stored rows `[B, …]` into inputs of the network `[B, …]`."""
        return rows if rows.is_floating_point() else rows.float()

    def scale_targets(self, y: Tensor) -> Tensor:
        """Standardise a regression's targets `[B]`, as the network learns them; labels stay as they are.

        The mean is subtracted in double precision, because single precision holds about seven digits: 1,700,000,001 would be
        1,700,000,000. The result is in torch's default precision. Without a mean and a spread nothing changes.
        """
        if not y.is_floating_point() or self.target == (0.0, 1.0):
            return y
        return ((y.double() - self.target[0]) / self.target[1]).to(torch.get_default_dtype())

    def unscale_targets(self, outputs: Tensor) -> Tensor:
        """Bring a regression's outputs, or scaled targets, back to the units of its targets, in double precision."""
        return outputs.double() * self.target[1] + self.target[0]

    def to_json(self) -> dict[str, Any]:
        """The preparation as JSON, from which `from_json` builds it again."""
        return {"kind": self.kind} | vars(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Preparation":
        """Build the preparation of any kind from JSON. Raises: FileError if it is not one."""
        options = {key: _to_tuples(value) for key, value in data.items() if key != "kind"}
        try:
            return Preparation.kinds[data["kind"]](**options)
        except (KeyError, TypeError) as error:
            raise FileError(f"the description of the data cannot be read: {error}") from error


Preparation.kinds[Preparation.kind] = Preparation


def measure_targets(name: str, y: Tensor) -> tuple[float, float]:
    """Measure the mean and the standard deviation of a regression's training targets `[N]`, in double precision.

    Args: a `name` for messages. Raises: DataError if a target is not finite, if all are equal, or they cannot be standardised.

    >>> measure_targets("y", torch.tensor([1.0, 3.0]))
    (2.0, 1.0)
    """
    values = y.double()
    if not bool(torch.isfinite(values).all()):
        raise DataError(f"{name} holds NaN or infinity: leave these rows out")
    if bool(values.min() == values.max()):
        raise DataError(f"{name} is {float(values[0]):.15g} in every training row: there is nothing to learn")
    mean, std = measure_spread(values.numpy(force=True))
    if not bool(torch.isfinite(((values - mean) / std).float()).all()):
        raise DataError(
            f"{name} cannot be standardised, from {float(values.min()):.6g} to {float(values.max()):.6g}: rescale it"
        )
    return mean, std


def measure_weighted_spread(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The mean and the standard deviation of finite doubles `[N]` with weights `[N]`, of which some are positive.

    Equal values are merged first, so that a weight of 2 gives exactly what the value twice would give.

    >>> measure_weighted_spread(np.array([1.0, 3.0]), np.array([2.0, 0.0]))
    (1.0, 0.0)
    """
    known, place = np.unique(values, return_inverse=True)
    share = np.bincount(place, weights) / weights.sum()
    size = float(np.abs(known).max()) or 1.0
    part = known / size
    mean = float(share @ part)
    mean += float(share @ (part - mean))
    return mean * size, float(share @ np.square(part - mean)) ** 0.5 * size


def measure_spread(values: np.ndarray) -> tuple[float, float]:
    """The mean and the standard deviation of finite doubles `[N]`; dividing by the largest keeps squares from overflowing.

    The mean is corrected by that of the differences: of 25 numbers about 1.7e9 that differ by 0.001, the mean of a plain sum is
    off by up to 5e-7.
    """
    largest = float(np.abs(values).max()) or 1.0
    size = 1.0 if 1e-100 < largest < 1e100 else largest  # dividing would change the last digits of ordinary numbers
    part = values / size
    mean = float(part.mean())
    mean += float((part - mean).mean())
    return mean * size, float(part.std()) * size


def _to_tuples(value: Any) -> Any:
    return tuple(_to_tuples(item) for item in value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Pixels(Preparation):
    """Images as bytes `[B, C, H, W]` → (x/255 − mean) / std, per channel.

    >>> Pixels(mean=(0.5,), std=(0.5,))(torch.tensor([[[[0, 255]]]], dtype=torch.uint8)).flatten().round()
    tensor([-1.,  1.])
    """

    kind: ClassVar[str] = "pixels"

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __call__(self, rows: Tensor) -> Tensor:
        # One multiplication and one addition: x/(255·std) − mean/std.
        scale = torch.tensor([1 / (255 * s) for s in self.std], device=rows.device).view(-1, 1, 1)
        shift = torch.tensor([-m / s for m, s in zip(self.mean, self.std, strict=True)], device=rows.device).view(-1, 1, 1)
        return torch.addcmul(shift, rows.float(), scale)

    @staticmethod
    def fit(images: Tensor) -> "Pixels":
        """Measure each channel's mean and standard deviation over images `[N, C, H, W]`; a constant channel is not scaled."""
        # The histogram gives exact sums without a copy of the images as real numbers.
        counts = torch.stack([torch.bincount(images[:, c].flatten(), minlength=256) for c in range(images.shape[1])]).double()
        values = torch.arange(256, dtype=torch.double) / 255
        total = counts.sum(1)
        mean = counts @ values / total
        std = (counts @ values.square() / total - mean.square()).clamp_min(0).sqrt()
        std = torch.where(std > 1e-6, std, 1.0)
        return Pixels(mean=tuple(round(v, 6) for v in mean.tolist()), std=tuple(round(v, 6) for v in std.tolist()))
