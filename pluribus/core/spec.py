"""A spec: a few frozen options that say which ensemble to make. Small enough to print, compare, hash and store as JSON."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from .errors import FileError
from .surgery import Subject, format_type_pattern
from .texts import quote

if TYPE_CHECKING:
    from .ensemble import Ensemble

Keeps = Literal["predictions", "member 0", "weights", "other layers"]


@dataclass(frozen=True)
class Spec:
    """What the spec of every method has."""

    name: ClassVar[str]
    keeps: ClassVar[Keeps]
    """What of a trained network survives conversion: its predictions exactly; those of member 0; its weights, about which
    draws scatter; or only the weights of the layers that were not replaced."""
    size_option: ClassVar[str | None] = None
    """The option that `--members N` sets: "members", "copies" or "samples". None: the method has no size."""
    nested_option: ClassVar[str | None] = None
    """The option that holds another spec."""
    benchmark_options: ClassVar[Mapping[str, Any]] = {}
    """The options that `pluribus bench` measures, where they differ from the defaults."""
    growth_axis: ClassVar[Literal["M", "K"] | None] = None
    """`pluribus bench` shows how cost grows with `size_option`, as members M or as draws K. None: it does not."""
    role: ClassVar[Literal["baseline", "reference", ""]] = ""
    """Gains are over the baseline; shares are of the gain of the reference."""
    candidates: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Values of options that are worth trying on any network, by the name of the option. Defaults may be left out."""
    is_tuned_as_part: ClassVar[bool] = False
    """Whether its members are whole networks, so that it is trained as was found best for one of them: for the spec in
    `nested_option`, or for the baseline. It needs no trials of its own."""

    takes_apart: ClassVar[tuple[str, ...]] = ("attention", "recurrent", "conv1d")
    """Which modules that read their weights themselves it converts by the linear layers that they consist of."""
    other_steps: ClassVar[Mapping[str, str]] = {}
    """Optimisers (sgd, adam, adamw) whose steps have another size than on the base network, each with the reason."""

    def get_keeps(self) -> Keeps:
        """`keeps`, where it depends on the options."""
        return self.keeps

    def get_takes_apart(self) -> tuple[str, ...]:
        """`takes_apart`, where it depends on the options."""
        return self.takes_apart

    def list_candidates(self, subject: Subject) -> Mapping[str, tuple[Any, ...]]:
        """`candidates`, where they depend on the network: the names of layers, say. The network is only read."""
        return self.candidates

    def describe_equivalence(self, optimizer: str, lr: float, weight_decay: float, steps: int) -> str | None:
        """One sentence if training cannot make the method differ from a simpler one; None if it can.

        Args:
            optimizer: "sgd", "adam", "adamw" or "muon".
            lr, weight_decay: at their highest.
            steps: how many steps the training takes.
        """
        return None

    registry: ClassVar[dict[str, type["Spec"]]] = {}

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):  # a subclass without a name of its own must not take its parent's
            Spec.registry[cls.name] = cls

    def __post_init__(self) -> None:
        for field in fields(self):  # lists are not hashable, and types do not survive JSON
            value = getattr(self, field.name)
            if isinstance(value, (list, type)):
                object.__setattr__(self, field.name, _restore(_to_plain_value(value)))
            elif isinstance(value, tuple):
                object.__setattr__(self, field.name, tuple(_to_plain_value(item) for item in value))
        self.check()

    def __str__(self) -> str:
        """Only what was chosen: options at their defaults say nothing."""
        chosen = [f"{f.name}={getattr(self, f.name)!s}" for f in fields(self) if getattr(self, f.name) != f.default]
        return f"{type(self).__name__}({', '.join(chosen)})"

    def check(self) -> None:
        """Raise on options that make no sense. Every method has its own."""

    def convert(self, subject: Subject) -> "Ensemble":
        """The ensemble. The subject is the caller's own network: read it, copy it, never change it."""
        raise TypeError(f"{type(self).__name__} must define convert")

    def to_json(self) -> dict[str, Any]:
        return {"method": self.name} | {field.name: _to_plain_value(getattr(self, field.name)) for field in fields(self)}

    @staticmethod
    def from_json(data: Any) -> "Spec":
        """The spec that `to_json` returned. Raises FileError if `data` is anything else."""
        try:
            return Spec._from_json(data)
        except RecursionError:
            raise FileError("these are no options of a method: they are nested too deeply") from None

    @staticmethod
    def _from_json(data: Any) -> "Spec":
        method = data.get("method") if isinstance(data, Mapping) else data
        if not isinstance(data, Mapping) or not isinstance(method, str) or method not in Spec.registry:
            known = ", ".join(sorted(Spec.registry))
            raise FileError(f"unknown method {quote(method)}: this version of pluribus knows {known}")
        cls = Spec.registry[method]
        options = {key: _restore(value) for key, value in data.items() if key != "method"}
        unknown = set(options) - {field.name for field in fields(cls)}
        if unknown:
            names = ", ".join(sorted(map(str, unknown)))
            raise FileError(f"{cls.name} has no option {names}: it was written by another version")
        try:
            return cls(**options)
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise FileError(f"these are no options of {cls.name}: {error}") from error


def list_methods(names: Collection[str] | None = None) -> list[str]:
    """Put method names (without names, all registered methods) in the order of the tables.

    The baseline comes first and the reference last; the others, and names that are not registered, stand in between by name.

    >>> import pluribus
    >>> list_methods(["deep-ensemble", "mimo", "single", "inner"])
    ['single', 'inner', 'mimo', 'deep-ensemble']
    """
    ranks = {"baseline": 0, "": 1, "reference": 2}
    roles = {name: kind.role for name, kind in Spec.registry.items()}
    return sorted(Spec.registry if names is None else set(names), key=lambda name: (ranks[roles.get(name, "")], name))


def _to_plain_value(value: Any) -> Any:
    if isinstance(value, Spec):
        return value.to_json()
    if isinstance(value, type):
        return format_type_pattern(value)
    return [_to_plain_value(item) for item in value] if isinstance(value, (tuple, list)) else value


def _restore(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Spec._from_json(value)
    return tuple(_restore(item) for item in value) if isinstance(value, list) else value


def require_count(argument: str, value: int, least: int, why: str) -> None:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{argument} must be a whole number, got {quote(value)}")
    if value < least:
        raise ValueError(f"{argument} must be at least {least}, got {value}: {why}")


def require_choice(argument: str, value: object, choices: Sequence[object]) -> None:
    if value not in choices:
        raise ValueError(f"{argument} must be one of {', '.join(map(repr, choices))}, got {quote(value)}")


def require_number(argument: str, value: float, *, positive: bool = False) -> None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{argument} must be a number, got {quote(value)}")
    if not math.isfinite(value) or (positive and value <= 0):
        raise ValueError(f"{argument} must be {'positive and ' if positive else ''}finite, got {value}")


def require_share(argument: str, value: float, *, below_one: bool = False) -> None:
    """A number from 0 to 1."""
    require_number(argument, value)
    if not 0 <= value <= 1 or (below_one and value == 1):
        raise ValueError(f"{argument} must be from 0 to {'just below ' if below_one else ''}1, got {value}")
