"""Who takes part: our methods, TabM, and other libraries; any method of ours by its name and options, too."""

from collections.abc import Sequence

from ..core.errors import PluribusError
from ..core.spec import Spec
from ..core.suggestions import describe_unknown
from ..runs.choices import format_choice, parse_choice
from .contender import Contender
from .other_libraries import OTHERS
from .ours import list_ours, make_contender
from .tabm_peer import TABM


class ContenderError(PluribusError, ValueError):
    """There is no such contender."""


def list_contenders() -> dict[str, Contender]:
    """The contenders that take part by default, by name."""
    return {contender.name: contender for contender in (*list_ours(), TABM, *OTHERS)}


def find_contender(text: str) -> Contender:
    """A contender by its name, or one of our methods by a choice such as `mimo:members=2`.

    Raises ContenderError or ConfigError if there is none.

    >>> find_contender("lightgbm").title, find_contender("mimo:members=2").title
    ('LightGBM', 'mimo:members=2')
    """
    known = list_contenders()
    if text in known:
        return known[text]
    choice = parse_choice(text)
    if choice["name"] not in Spec.registry:
        raise ContenderError(describe_unknown("contender", choice["name"], [*known, *Spec.registry]))
    return make_contender(format_choice(choice), format_choice(choice), "tabular", choice)


def find_contenders(texts: Sequence[str] | None) -> list[Contender]:
    """The contenders of these names, each once; without names the default ones. Raises ContenderError if none is left."""
    if texts is None:
        return list(list_contenders().values())
    if not texts:
        raise ContenderError(f"contenders must be names between commas: {', '.join(list_contenders())}")
    return list({found.name: found for found in map(find_contender, texts)}.values())
