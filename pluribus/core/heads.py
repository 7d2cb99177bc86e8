"""Layers with weights of each member's own, and last layers among them, which fold to one wide plain layer."""

from typing import TYPE_CHECKING, Literal

from torch import Tensor, nn

from .affine import AFFINE, Affine
from .errors import ConversionError, Unsupported
from .members import Converted, MemberLayer
from .passes import Pass
from .surgery import carry_hooks, clear_hooks

if TYPE_CHECKING:
    from .ensemble import Ensemble


class OwnWeights(MemberLayer):
    """A layer with weights of its own for every member: `weights` `[M, …]`, `biases` `[M, C]` or None."""

    def __init__(self, layer: nn.Module, weights: Tensor, biases: Tensor | None, trains: bool = True) -> None:
        super().__init__()
        self.affine = Affine(layer)
        self.weights = nn.Parameter(weights, trains)
        self.biases = None if biases is None else nn.Parameter(biases, trains)

    def respond(self, x: Tensor) -> Tensor:
        return self.affine.run_each(x, self.pick(self.weights), None if self.biases is None else self.pick(self.biases))

    def to_plain(self, index: int) -> nn.Module:
        return self.affine.make_layer(self.weights[index], None if self.biases is None else self.biases[index])


class Heads(OwnWeights):
    """The last layer, one for each member."""

    def gets_shared_rows(self, current: Pass) -> bool:
        # Also of a batch that was dealt: by then the network's first layer has merged it.
        return self.is_branch(current)

    def fold(self) -> nn.Module:
        """All heads as one wide plain layer."""
        if self.affine.groups > 1 or self.affine.transposed is not None:
            raise Unsupported("heads that are grouped or transposed convolutions have no wide form: use member(i)")
        wide = self.affine.make_layer(self.weights.flatten(0, 1), None if self.biases is None else self.biases.flatten())
        setattr(wide, "out_features" if self.affine.linear else "out_channels", self.weights.shape[:2].numel())
        heads = WideHeads(wide, self.weights.shape[0], -1 if self.affine.linear else 1)
        carry_hooks(wide, heads)  # a hook expects the outputs of one head in a row
        clear_hooks(wide)
        return heads


class WideHeads(nn.Module):
    """One plain layer with M·C outputs, answered member by member: `[B, …]` → `[M·B, …]`."""

    def __init__(self, layer: nn.Module, count: int, axis: int) -> None:
        super().__init__()
        self.layer, self.count, self.axis = layer, count, axis

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        axis = self.axis % y.dim()
        return y.unflatten(axis, (self.count, -1)).movedim(axis, 0).flatten(0, 1)


def check_end(ensemble: "Ensemble", order: list[str], which: Literal["first", "last"], kind: type[Converted]) -> None:
    """Raise if the first or last layer with weights that runs is not the one that was converted to `kind`.

    `which` is also the name of the spec's option that chooses this layer.
    """
    modules = dict(ensemble.net.named_modules())
    weighted = (*AFFINE, nn.Embedding, nn.MultiheadAttention, nn.RNNBase, Converted)
    meant = ensemble.conversion.order  # without layers that have no part in the output that is meant
    ran = [name for name in order if isinstance(modules[name], weighted) and (meant is None or name in meant)]
    found = ran[0 if which == "first" else -1]
    if isinstance(modules[found], kind):
        return
    method, left = type(ensemble.spec).__name__, ensemble.conversion.left
    chosen = next(name for name, module in modules.items() if isinstance(module, kind))
    cure = f"name it, {method}({which}={found!r}), or pass an example input, pluribus.ensemble(net, spec, example=x)"
    if found in left:
        cure = f"that one cannot be converted ({left[found]})"
    if getattr(ensemble.spec, which) is None:
        raise ConversionError(f"{method} took {chosen} for the {which} layer, but {found} runs {which}: {cure}")
