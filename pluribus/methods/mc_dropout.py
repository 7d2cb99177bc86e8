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

from torch import nn

from ..core import noise
from ..core.affine import AFFINE
from ..core.dropout import DROPOUTS, Dropped, Dropping, remark_functions
from ..core.ensemble import Ensemble
from ..core.passes import Plan
from ..core.spec import Keeps, Spec, require_count, require_share
from ..core.surgery import Patterns, Subject

LAYERS = (*AFFINE, nn.LSTM, nn.GRU, nn.RNN)
"""Before which dropout is put."""


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

    takes_apart: ClassVar[tuple[str, ...]] = ("conv1d",)

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
        places = list(own or subject.layers(LAYERS))
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
            layers = subject.select(LAYERS, self.include, self.exclude, lambda found: list(found)[1:] or list(found))
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
        remark_functions(self, plan, batch)
        return plan
