"""How stored rows become a network's inputs, and its outputs become answers. Kept with a run, so that predicting repeats it."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..core.errors import FileError


@dataclass(frozen=True)
class Preparation:
    """Rows of numbers that are ready as they are. `target` is the mean and the spread of a regression's targets."""

    kind: ClassVar[str] = "rows"
    kinds: ClassVar[dict[str, type["Preparation"]]] = {}

    target: tuple[float, float] = field(default=(0.0, 1.0), kw_only=True)

    def __init_subclass__(cls) -> None:
        Preparation.kinds[cls.kind] = cls

    def __call__(self, rows: Tensor) -> Tensor:
        """A batch as stored → a batch for the network."""
        return rows if rows.is_floating_point() else rows.float()

    def scaled(self, y: Tensor) -> Tensor:
        """Targets as the network learns them: a regression's are centred and of unit spread."""
        return (y - self.target[0]) / self.target[1] if y.is_floating_point() else y

    def answers(self, outputs: Tensor) -> Tensor:
        """A regression's outputs in the units of its targets."""
        return outputs * self.target[1] + self.target[0]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind} | vars(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Preparation":
        options = {key: _tuples(value) for key, value in data.items() if key != "kind"}
        try:
            return Preparation.kinds[data["kind"]](**options)
        except (KeyError, TypeError) as error:
            raise FileError(f"the description of the data cannot be read: {error}") from error


Preparation.kinds[Preparation.kind] = Preparation


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Pixels(Preparation):
    """Bytes `[B, C, H, W]` → (x/255 − mean) / std, per channel."""

    kind: ClassVar[str] = "pixels"

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __call__(self, rows: Tensor) -> Tensor:
        # One multiplication and one addition: x/(255·std) − mean/std.
        scale = torch.tensor([1 / (255 * s) for s in self.std], device=rows.device).view(-1, 1, 1)
        shift = torch.tensor([-m / s for m, s in zip(self.mean, self.std, strict=True)], device=rows.device).view(-1, 1, 1)
        return torch.addcmul(shift, rows.float(), scale)

    @staticmethod
    def of(images: Tensor) -> "Pixels":
        """Each channel's mean and standard deviation over all images `[N, C, H, W]`; a constant channel is left as it is."""
        # By the histogram: exact, and without a copy of the images as real numbers.
        counts = torch.stack([torch.bincount(images[:, c].flatten(), minlength=256) for c in range(images.shape[1])]).double()
        values = torch.arange(256, dtype=torch.double) / 255
        total = counts.sum(1)
        mean = counts @ values / total
        std = (counts @ values.square() / total - mean.square()).clamp_min(0).sqrt()
        std = torch.where(std > 1e-6, std, 1.0)
        return Pixels(mean=tuple(round(v, 6) for v in mean.tolist()), std=tuple(round(v, 6) for v in std.tolist()))
