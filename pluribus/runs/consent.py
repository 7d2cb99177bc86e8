"""Consent to run code: which networks `package.module:factory` that a file names may be imported in this invocation.

A file is data. A factory that it names is code, which is imported only if the user named it, by `--model` or as an argument
of a Python function, or passed `--trust` (in Python, `trust=`).
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import PluribusError
from ..models.factories import split_factory_name, treat_as_data
from .choices import ChoiceError, parse_choice

Trust = bool | str | Iterable[str]
"""Whether to import every factory that a file names; or the names of those to import."""


class ConsentError(PluribusError):
    """A file names code that the user has not consented to run."""


@dataclass(frozen=True)
class Consent:
    """What the user consented to. A job carries it to its worker."""

    names: frozenset[str] = frozenset()
    everything: bool = False

    def covers(self, name: str) -> bool:
        """Whether a network of this name may be built; a network that pluribus knows, or that was passed, always may."""
        return self.everything or ":" not in name or name in self.names


NOTHING = Consent()
_consent: ContextVar[Consent] = ContextVar("consent", default=NOTHING)


def get_consent() -> Consent:
    """What the user has consented to so far."""
    return _consent.get()


@contextlib.contextmanager
def give_consent(trust: Trust | Consent) -> Iterator[None]:
    """Meanwhile, factories of these names may be imported, or with True all of them, besides those allowed already.

    >>> with give_consent("nets:build"):
    ...     check_consent("nets:build")
    >>> check_consent("nets:build", "run/config.yaml")
    Traceback (most recent call last):
    pluribus.runs.consent.ConsentError: run/config.yaml names the network nets:build, which would run code: if you trust it, \
repeat it with --model nets:build, or pass --trust (in Python, trust="nets:build")
    """
    before = _consent.get()
    if isinstance(trust, bool):
        trust = Consent(everything=trust)
    elif not isinstance(trust, Consent):
        trust = Consent(frozenset([trust] if isinstance(trust, str) else trust))
    token = _consent.set(Consent(before.names | trust.names, before.everything or trust.everything))
    try:
        yield
    finally:
        _consent.reset(token)


def format_consent() -> str:
    """The options that give the same consent again, to be put behind a command; empty if there was none."""
    given = _consent.get()
    return " --trust" if given.everything else "".join(f" --model {name}" for name in sorted(given.names) if ":" in name)


def check_consent(model: Any, source: object = "the configuration") -> None:
    """Raise ConsentError if a model is a factory that the user has not consented to, and ModelError if it can be none.

    Args: the choice of a model as a text or a mapping, or None; the file that names it.
    """
    name = find_model_name(model)
    if ":" in name:
        split_factory_name(name)
    if not _consent.get().covers(name):
        raise ConsentError(
            f"{source} names the network {name}, which would run code: if you trust it, repeat it with --model {name}, or pass "
            f'--trust (in Python, trust="{name}")'
        )


def find_model_name(model: Any) -> str:
    """The name in a choice of a model, however it is written; empty if there is none.

    >>> find_model_name("nets:build:width=3"), find_model_name({"name": "mlp"}), find_model_name(None)
    ('nets:build', 'mlp', '')
    """
    if isinstance(model, str):
        with contextlib.suppress(ChoiceError):
            model = parse_choice(model)
    name = model.get("name") if isinstance(model, Mapping) else None
    return name if isinstance(name, str) else ""


def find_root(run: Path) -> Path:
    """The folder that is read as data together with a run: its own, or that of the grid or comparison that it belongs to."""
    folder = run.resolve().parent
    return folder if any((folder / name).exists() for name in ("grid.yaml", "compare.yaml")) else run


@contextlib.contextmanager
def read_as_data(run: Path) -> Iterator[None]:
    """Meanwhile, import no factory from the folder of this run, or from the grid or comparison that it belongs to."""
    with treat_as_data(find_root(run)):
        yield
