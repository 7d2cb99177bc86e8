"""The templates, style sheets and scripts that lie beside this file."""

import functools
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def read_asset(name: str) -> str:
    """Return the text of the file `name` in this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def load_template(name: str) -> "Template":
    """Return the jinja2 template in the file `name`. Everything it is given is escaped, unless it is a `Markup`."""
    return _make_environment().get_template(name)


@functools.cache
def _make_environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(read_asset)
    return Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
