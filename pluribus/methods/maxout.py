"""Maxout: the largest of m responses.

    y = max_i (w_i x + b_i)

Unlike the mean, the maximum of m layers is no layer, so nothing folds. Nor can a trained network be kept: with m equal
copies the maximum is the old response, but equal copies share one gradient and never part. The copies are drawn anew at the
scale of the layer they replace.

Goodfellow et al., "Maxout Networks", 2013; here as in Mohamed et al., 2020, eq. 15, where it replaces convolutions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..core.affine import AFFINE, Affine, get_weight_and_bias, prefer_convolutions
from ..core.ensemble import Ensemble
from ..core.errors import Unsupported
from ..core.initialization import draw_copies
from ..core.members import Converted
from ..core.spec import Keeps, Spec, require_count
from ..core.surgery import Patterns, Subject


@dataclass(frozen=True)
class Maxout(Spec):
    """Replace each layer by the maximum of `copies` of it. Without `include`: convolutions, or all where there are none."""

    name: ClassVar[str] = "maxout"
    keeps: ClassVar[Keeps] = "other layers"
    size_option: ClassVar[str | None] = "copies"
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {"copies": (2, 4)}

    copies: int = 4
    include: Patterns = None
    exclude: Patterns = None

    def check(self) -> None:
        require_count("copies", self.copies, 2, "one copy is the base network")

    def convert(self, subject: Subject) -> Ensemble:
        layers = subject.select(AFFINE, self.include, self.exclude, prefer_convolutions)
        return Ensemble(subject, self, 1, {name: Largest(layer, self.copies) for name, layer in layers.items()})


class Largest(Converted):
    """m copies of a layer; each output is the largest of theirs. `weights` `[m, …]`, `biases` `[m, C]` or None."""

    matrices: ClassVar[Mapping[str, int]] = {"weights": 1}

    def __init__(self, layer: nn.Module, copies: int) -> None:
        super().__init__()
        self.affine = Affine(layer)
        weight, bias = get_weight_and_bias(layer)
        with torch.no_grad():
            self.weights = nn.Parameter(draw_copies(weight, copies))
            self.biases = None if bias is None else nn.Parameter(draw_copies(bias, copies))

    def forward(self, x: Tensor) -> Tensor:
        # max, not amax: where responses tie, one copy gets the whole gradient, and the copies part.
        return self.affine.run_each(x.unsqueeze(0), self.weights, self.biases).max(0).values

    def to_plain(self, index: int) -> nn.Module:
        raise Unsupported("Maxout has no plain form: the maximum of several layers is no layer")
