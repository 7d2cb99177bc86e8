"""What folding leaves: plain modules. And heads, which fold to a wide plain layer."""

from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from .affine import AFFINE, Affine
from .errors import ConversionError, Unsupported
from .members import Converted, MemberLayer, Members

if TYPE_CHECKING:
    from .ensemble import Ensemble


class Stack(nn.Module):
    """Plain networks side by side: `[B, …]` → `[M, B, C]`.

    `output` is the key of the output that is meant, for networks that return several.
    """

    def __init__(self, nets: list[nn.Module], output: int | str | None = None) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)
        self.output = output

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return torch.stack([select_output(net(*args, **kwargs), self.output) for net in self.nets])


class Chain(nn.Module):
    """Folded ensembles one after the other: each answers `[M_i, B, C]`, together `[Σ M_i, B, C]`."""

    def __init__(self, nets: list[nn.Module]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nets)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return torch.cat([net(*args, **kwargs) for net in self.nets])


class Opened(nn.Module):
    """A plain network whose last layer answers for M members: `[M·B, C]` → `[M, B, C]`."""

    def __init__(self, net: nn.Module, count: int, output: int | str | None = None) -> None:
        super().__init__()
        self.net, self.count, self.output = net, count, output

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return select_output(self.net(*args, **kwargs), self.output).unflatten(0, (self.count, -1))


def select_output(answer: Any, output: int | str | None) -> Tensor:
    """The output that is meant, of a network that returns several (perhaps only in training: a lone tensor is meant)."""
    if isinstance(answer, Tensor):
        return answer
    if isinstance(answer, dict):
        names: list[Any] = list(answer)
    else:
        fields = getattr(answer, "_fields", None) or getattr(answer, "__dataclass_fields__", {})
        names = [*fields, *(range(len(answer)) if hasattr(answer, "__len__") else ())]
    if output is None:
        raise ConversionError(
            f"the network returns a {type(answer).__name__} with {', '.join(map(repr, names))}: say which output is meant, "
            f"as in pluribus.ensemble(net, spec, output={names[0] if names else 0!r})"
        )
    if output not in names:
        raise ConversionError(f"the network returns no output {output!r}; it has {', '.join(map(repr, names))}")
    return getattr(answer, output) if isinstance(output, str) and not isinstance(answer, dict) else answer[output]


class Owned(MemberLayer):
    """A layer with weights of its own for every member: `weights` `[M, …]`, `biases` `[M, C]` or None."""

    def __init__(self, layer: nn.Module, members: Members, weights: Tensor, biases: Tensor | None, trains: bool = True) -> None:
        super().__init__(members)
        self.affine = Affine(layer)
        self.weights = nn.Parameter(weights, trains)
        self.biases = None if biases is None else nn.Parameter(biases, trains)

    def respond(self, x: Tensor) -> Tensor:
        return self.affine.each(x, self.pick(self.weights), None if self.biases is None else self.pick(self.biases))

    def plain(self, index: int) -> nn.Module:
        return self.affine.plain(self.weights[index], None if self.biases is None else self.biases[index])


class Heads(Owned):
    """The last layer, one for each member."""

    @property
    def shares(self) -> bool:
        # Also of a batch that was dealt: by then the network's first layer has merged it.
        return self.branches

    def folded(self) -> nn.Module:
        """All heads as one wide plain layer."""
        if self.affine.groups > 1 or self.affine.transposed is not None:
            raise Unsupported("heads that are grouped or transposed convolutions have no wide form: use member(i)")
        wide = self.affine.plain(self.weights.flatten(0, 1), None if self.biases is None else self.biases.flatten())
        setattr(wide, "out_features" if self.affine.linear else "out_channels", self.weights.shape[:2].numel())
        return WideHeads(wide, self.weights.shape[0], -1 if self.affine.linear else 1)


def check_ends(ensemble: "Ensemble", order: list[str], which: Literal["first", "last"], kind: type[Converted]) -> None:
    """Raise if the first or last layer with weights that runs is not the one that was converted to `kind`."""
    modules = dict(ensemble.net.named_modules())
    weighted = (*AFFINE, nn.Embedding, nn.MultiheadAttention, nn.RNNBase, Converted)
    found = [name for name in order if isinstance(modules[name], weighted)][0 if which == "first" else -1]
    if isinstance(modules[found], kind):
        return
    method = type(ensemble.spec).__name__
    chosen = next(name for name, module in modules.items() if isinstance(module, kind))
    cure = f"name it, {method}({which}={found!r}), or pass an example input, pluribus.ensemble(net, spec, example=x)"
    if found in ensemble.left:
        cure = f"that one cannot be converted ({ensemble.left[found]})"
    if getattr(ensemble.spec, which) is None:
        raise ConversionError(f"{method} took {chosen} for the {which} layer, but {found} runs {which}: {cure}")


class WideHeads(nn.Module):
    """One plain layer with M·C outputs, answered member by member: `[B, …]` → `[M·B, …]`."""

    def __init__(self, layer: nn.Module, count: int, axis: int) -> None:
        super().__init__()
        self.layer, self.count, self.axis = layer, count, axis

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        axis = self.axis % y.dim()
        return y.unflatten(axis, (self.count, -1)).movedim(axis, 0).flatten(0, 1)
