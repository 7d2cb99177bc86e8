"""What an exported file computes: from rows as they are stored to named answers, with preparation and rules inside.

Methods whose members have all layers in common, or none, are folded: one plain network (Inner, MIMO, Multihead), or the plain
members side by side (DeepEnsemble, BatchEnsemble, Mixture). Where members share layers, or draw noise, the ensemble itself is
exported with its draws fixed, so that what members have in common runs once.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ..core import pytrees
from ..core.ensemble import Ensemble
from ..core.errors import Unsupported
from ..core.passes import Branch
from ..core.predictive import Predictive
from ..data.preparation import Preparation
from ..decisions.classification import ClassificationRules
from ..decisions.intervals import RegressionRules

Rules = ClassificationRules | RegressionRules
MEANINGS = {
    "probs": "probabilities of the classes, averaged over the members",
    "label": "the most probable class; -1 where the answer is not finite",
    "members": "each member's probabilities, or its value",
    "entropy": "uncertainty in nats",
    "mutual_information": "the part of it on which members disagree",
    "mean": "the value",
    "variance": "its variance: noise, where the members predict it, and spread of the members",
    "spread": "the standard deviation of the members' values",
    "noise": "the standard deviation of the noise: what the members predict, or what was fitted on held-out rows",
    "quantiles": "the quantiles that the network predicts, averaged over the members",
    "interval": "low and high end",
    "set": "which classes the set holds",
    "answered": "whether the class may be answered",
    "foreign": "whether the row is unlike the training data",
}


class MembersTogether(nn.Module):
    """The ensemble's own pass, `[B, …]` → `[M, B, C]`, with what members share computed once."""

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__()
        self.ensemble = copy.deepcopy(ensemble).eval()
        plan = self.ensemble.executor.plan
        assert plan is not None
        self.ensemble.executor.plan = replace(plan, trunk_share=1.0)  # whether members run together must not depend on the rows

    def part_at_input(self) -> bool:
        """Let members part at the input from now on, and say whether they parted later before: a network may make other masks
        while it is traced, which members cannot share."""
        plan = self.ensemble.executor.plan
        if plan is None or plan.branch.kind not in ("layer", "module"):
            return False
        self.ensemble.executor.keep_branch(self.ensemble, Branch("input"))
        return True

    def forward(self, x: Any) -> Tensor:
        return self.ensemble(x)


def prepare_network(ensemble: Ensemble, samples: int | None) -> tuple[nn.Module, Ensemble]:
    """The network to export, and the ensemble whose answers it must give: with fixed draws, if it draws.

    Raises ValueError if `samples` are asked for where nothing is drawn.
    """
    if ensemble.sampled:
        fixed = ensemble.freeze(samples)
        return MembersTogether(fixed), fixed
    if samples is not None:
        raise ValueError(f"{ensemble.spec.name} draws no samples: leave samples out")
    try:
        return ensemble.fold(), ensemble
    except Unsupported:
        return MembersTogether(ensemble), ensemble


class Program(nn.Module):
    """Rows → a tuple of answers, in the order of `names`. `keys` are those of the inputs where they came as a dictionary."""

    def __init__(
        self,
        ensemble: Ensemble,
        network: nn.Module,
        preparation: Preparation | None = None,
        rules: Rules | None = None,
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self.network = network.eval()
        self.interpret: Callable[[Tensor], Predictive] = ensemble.interpret
        self.task, self.has_quantiles = ensemble.task, bool(ensemble.quantile_levels)
        self.has_noise = ensemble.noise is not None or (isinstance(rules, RegressionRules) and not rules.quantiles)
        self.preparation, self.rules, self.keys = preparation, rules, keys
        self.reach = 0.0
        if isinstance(rules, RegressionRules):
            self.reach = rules.find_reach()
        if isinstance(rules, ClassificationRules) and rules.needs_features:
            raise Unsupported(
                "the alarm is by the distance of features to training rows, which an exported file does not hold: fit it by "
                "another score, as in `pluribus calibrate RUN --false-alarms 0.05 --alarm entropy`"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the answers."""
        rules = self.rules
        if self.task == "regression":
            has = {"noise": self.has_noise, "quantiles": self.has_quantiles, "interval": rules is not None}
            return ("mean", "variance", "spread", "members", *(name for name, is_there in has.items() if is_there))
        asked = () if not isinstance(rules, ClassificationRules) else (rules.coverage, rules.risk, rules.false_alarms)
        decided = [name for name, wish in zip(("set", "answered", "foreign"), asked, strict=False) if wish is not None]
        return ("probs", "label", "members", "entropy", "mutual_information", *decided)

    def shift_thresholds(self, by: float) -> "list[Program]":
        """The same program with the thresholds of its rules a little lower, and a little higher; none without thresholds."""
        if not isinstance(self.rules, ClassificationRules):
            return []
        found = []
        for sign in (-1, 1):
            twin = copy.copy(self)
            thresholds = {name: getattr(self.rules, name) for name in ("set_threshold", "least_confidence", "alarm_threshold")}
            moved = {
                name: value + sign * by * max(1.0, abs(value)) for name, value in thresholds.items() if math.isfinite(value)
            }
            twin.rules = replace(self.rules, **moved)
            found.append(twin)
        return found

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        x: Any = inputs[0] if len(inputs) == 1 and self.keys is None else inputs
        if self.keys is not None:
            x = dict(zip(self.keys, inputs, strict=True))
        if self.preparation is not None:
            x = self.preparation(x)
        outputs = self.network(x) if isinstance(self.network, MembersTogether) else pytrees.call_network(self.network, x)
        return self.answer(outputs)

    def answer(self, outputs: Tensor) -> tuple[Tensor, ...]:
        """The answers that follow from the members' outputs `[M, B, C, …]`."""
        p = self.interpret(outputs)
        if p.task == "regression":
            return self.answer_values(p)
        found = [p.probs, p.labels, p.members, p.entropy, p.mutual_information]
        if isinstance(self.rules, ClassificationRules):
            decided = self.rules.decide(p)
            found += [each for each in (decided.sets, decided.is_answered, decided.is_foreign) if each is not None]
        return tuple(found)

    def answer_values(self, p: Predictive) -> tuple[Tensor, ...]:
        """The answers of a regression, in the units of its targets."""
        if self.preparation is not None and self.preparation.target != (0.0, 1.0):
            mean, std = self.preparation.target
            p = p.rescale(std, mean)
        found = [p.mean, p.variance, p.spread_variance.sqrt(), p.members]
        decided = None
        if isinstance(self.rules, RegressionRules):
            decided = self.rules.build_intervals(p, self.reach, self.rules.coverage)
        if self.has_noise:
            found.append(p.noise_variance.sqrt() if decided is None else decided.noise)
        if p.quantile_levels:
            found.append(p.quantiles.movedim(0, 1))
        if decided is not None:
            found.append(torch.stack([decided.low, decided.high], 1))
        return tuple(found)


def list_inputs(x: Any) -> tuple[tuple[Tensor, ...], tuple[str, ...], tuple[str, ...] | None]:
    """The tensors of a batch, their names, and the keys of a dictionary.

    >>> tensors, names, keys = list_inputs({"ids": torch.zeros(2, 3), "mask": torch.ones(2, 3)})
    >>> names, keys
    (('ids', 'mask'), ('ids', 'mask'))
    >>> list_inputs((torch.zeros(2), torch.zeros(2)))[1:]
    (('input_0', 'input_1'), None)
    """
    if isinstance(x, Tensor):
        return (x,), ("input",), None
    if isinstance(x, dict) and all(isinstance(value, Tensor) for value in x.values()):
        return tuple(x.values()), tuple(x), tuple(x)
    if isinstance(x, tuple) and all(isinstance(value, Tensor) for value in x):
        return x, tuple(f"input_{place}" for place in range(len(x))), None
    kinds = pytrees.count_rows(x)  # raises if there is no tensor at all
    raise TypeError(f"an exported file takes tensors, a tuple or a dictionary of them: got {type(x).__name__} of {kinds} rows")
