"""MC dropout: leave dropout on, and average K passes.

    y_k = f(x; mask_k),    P(keep) = 1 − p,    what is kept is divided by 1 − p

The network's own dropout layers stay on in evaluation. A network without any gets dropout before every layer but the
first. Draws are members: all that comes before the first dropout is computed once. Rates are rounded to 1/256 or finer, where
that is near (0.1 becomes 26/256), because such masks cost a fraction: `core.noise`. What is kept is scaled by the rounded rate.

Gal & Ghahramani, "Dropout as a Bayesian Approximation", ICML 2016.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..core import noise, pytrees
from ..core.affine import AFFINE
from ..core.ensemble import Ensemble
from ..core.members import Converted, Likeness, MemberLayer
from ..core.passes import Plan
from ..core.spec import Keeps, Spec, require_count, require_share
from ..core.surgery import Patterns, Subject, carry_hooks, copy_with

DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


@dataclass(frozen=True)
class MCDropout(Spec):
    """Sample `samples` dropout masks in evaluation.

    `rate` is for dropout that is put in; the network's own rates are kept, unless all of them are zero. `include` and
    `exclude` choose among its dropout layers, or, if it has none, the layers to put dropout before.
    """

    name: ClassVar[str] = "mc-dropout"
    keeps: ClassVar[Keeps] = "weights"
    size_option: ClassVar[str | None] = "samples"
    growth_axis: ClassVar[Literal["M", "K"] | None] = "K"

    rate: float = 0.1
    samples: int = 20
    include: Patterns = None
    exclude: Patterns = None

    def check(self) -> None:
        require_share("rate", self.rate, below_one=True)
        require_count("samples", self.samples, 1, "an answer needs a draw")
        if self.rate == 0:
            raise ValueError("rate must be positive, got 0: without dropout all draws are equal")

    def list_candidates(self, subject: Subject) -> Mapping[str, tuple[Any, ...]]:
        """The place, everywhere or at the last layer alone, and the rate, where the network's own rates do not stand."""
        own = subject.layers(DROPOUTS)
        places = list(own or subject.layers(AFFINE))
        found: dict[str, tuple[Any, ...]] = {"include": (None, places[-1]) if len(places) > 1 else (None,)}
        if not any(layer.p for layer in own.values()):
            found["rate"] = (0.05, 0.1, 0.2, 0.3)
        return found

    def convert(self, subject: Subject) -> Ensemble:
        replaced: dict[str, nn.Module]
        if subject.layers(DROPOUTS):
            own = subject.select(DROPOUTS, self.include, self.exclude)
            idle = all(layer.p == 0 for layer in own.values())
            replaced = {
                name: Dropping(layer, self.rate if idle else getattr(layer, "p"))  # noqa: B009
                for name, layer in own.items()
            }
            note = "the network's own dropout stays on" + (f", its rate 0 became {self.rate}" if idle else "")
        else:
            layers = subject.select(AFFINE, self.include, self.exclude, lambda found: list(found)[1:] or list(found))
            replaced = {name: Dropped(layer, self.rate) for name, layer in layers.items()}
            note = f"the network had no dropout layer: dropout of {self.rate} was put before {', '.join(layers)}"
        ensemble = MCDropoutEnsemble(subject, self, 1, replaced)
        ensemble.conversion.notes.append(note)
        rates = {layer.rate: noise.round_rate(layer.rate) for layer in ensemble.modules() if isinstance(layer, Dropping)}
        changed = [f"{rate:g} is {near.threshold}/{2**near.bits}" for rate, near in rates.items() if near and near.rate != rate]
        if changed:
            ensemble.conversion.notes.append(f"on a CPU masks come from random bytes, and a rate of {', '.join(changed)}")
        for name, module in subject.modules.items():
            if isinstance(module, (nn.MultiheadAttention, nn.RNNBase)) and module.dropout > 0:
                kind = type(module).__name__
                ensemble.conversion.notes.append(f"the dropout inside {name} (nn.{kind}) cannot be reached and stays off")
        return ensemble


class MCDropoutEnsemble(Ensemble):
    reduction = "mean"
    sampled = True

    def complete_plan(self, plan: Plan, batch: Any) -> Plan:
        with DropoutFinder() as found:
            self.executor.run_alone(self, pytrees.take_rows(batch, 1), 0, plan)
        if found.names:
            names = ", ".join(sorted(found.names))
            self.conversion.remark(
                f"the network calls {names} as a function, which cannot be reached and stays off: use nn.Dropout"
            )
        return plan


class DropoutFinder(TorchFunctionMode):
    """Finds dropout that is called as a function. Our own layers do not call it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        kwargs = kwargs or {}
        rate = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
        if "dropout" in name and isinstance(rate, (int, float)) and rate > 0:
            self.names.add(name)
        if name == "scaled_dot_product_attention" and kwargs.get("dropout_p", 0) > 0:
            self.names.add(f"{name} with dropout")
        return func(*args, **kwargs)


class Dropping(MemberLayer):
    """Dropout that is on in training and in evaluation, with a mask for each member and row."""

    def __init__(self, like: nn.Module, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.whole_channels = not isinstance(like, (nn.Dropout, nn.AlphaDropout))
        self.unbatched_pair = isinstance(like, nn.Dropout1d)  # torch takes [B, C] for one [C, L]
        self.alpha = isinstance(like, (nn.AlphaDropout, nn.FeatureAlphaDropout))
        self.frozen: Tensor | None
        self.register_buffer("frozen", None)

    def respond(self, x: Tensor) -> Tensor:
        if self.frozen is not None:
            check_units(self.frozen[0], x[0])
            return apply_mask(x, self.pick(self.frozen), self.rate, self.alpha)
        probe = self.current.probe
        if probe is not None:
            probe.rows[self.place] = x[0, :0].detach()
        shape = (*x.shape[1:3], *(1 for _ in x.shape[3:])) if self.whole_channels else x.shape[1:]
        if self.unbatched_pair and x.dim() == 3:
            shape = (x.shape[1], 1)
        return apply_mask(x, *self.draw_dropout_mask(self.rate, shape, x), self.alpha)

    def freeze(self, count: int) -> None:
        row = self.facts.row
        if row is not None:  # else it did not run in evaluation
            units = row.shape[1:]
            shape = (*units[:1], *(1 for _ in units[1:])) if self.whole_channels else units
            self.frozen = self.draw(torch.rand, (1, *shape), row, per_row=False) >= self.rate

    def to_plain(self, index: int) -> nn.Module:
        assert self.frozen is not None
        return carry_hooks(self, Mask(self.frozen[index], self.rate, self.alpha))

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def apply_mask(x: Tensor, kept: Tensor, rate: float, alpha: bool) -> Tensor:
    """What is kept, scaled to keep the mean."""
    if alpha and rate < 1:
        # Alpha dropout keeps the mean 0 and the variance 1 of SELU's activations; what is dropped becomes `floor`.
        floor = -1.7580993408473766
        scale = ((1 - rate) * (1 + rate * floor**2)) ** -0.5
        return scale * (torch.where(kept.bool(), x, x.new_tensor(floor)) - rate * floor)
    factor = (kept.view(torch.uint8) if kept.dtype == torch.bool else kept).to(x.dtype)
    scale = 1 / (1 - rate) if rate < 1 else 1.0
    if factor.shape[1:] == x.shape[1:] and not torch.is_grad_enabled():
        return torch.addcmul(x.new_zeros(()), factor, x, value=scale, out=factor)  # in one pass, and in place
    return x * factor.mul_(scale)


def check_units(kept: Tensor, x: Tensor) -> None:
    """A fixed mask `[1, *units]` must fit the rows of x, `[B, *units]`."""
    if len(kept.shape) != len(x.shape) or any(k not in (1, n) for k, n in zip(kept.shape[1:], x.shape[1:], strict=True)):
        raise ValueError(f"the mask was fixed for rows of shape {list(kept.shape[1:])}, got {list(x.shape[1:])}: freeze anew")


class Mask(nn.Module):
    """Dropout with one fixed mask."""

    def __init__(self, kept: Tensor, rate: float, alpha: bool) -> None:
        super().__init__()
        self.rate, self.alpha = rate, alpha
        self.kept: Tensor
        self.register_buffer("kept", kept.clone())

    def forward(self, x: Tensor) -> Tensor:
        check_units(self.kept, x)
        return apply_mask(x, self.kept, self.rate, self.alpha)


class Dropped(Converted):
    """Dropout before a layer that had none."""

    holds_original = True

    def __init__(self, layer: nn.Module, rate: float) -> None:
        super().__init__()
        self.likeness = Likeness(layer)
        self.dropout = Dropping(nn.Dropout(), rate)
        self.layer = copy_with(layer, {})

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.layer(self.dropout(x), *args, **kwargs)

    def to_plain(self, index: int) -> nn.Module:
        return Masked(self.dropout.to_plain(index), copy_with(self.layer, {}))


class Masked(nn.Module):
    """One fixed mask before a layer."""

    def __init__(self, mask: nn.Module, layer: nn.Module) -> None:
        super().__init__()
        self.mask, self.layer = mask, layer

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.layer(self.mask(x), *args, **kwargs)
