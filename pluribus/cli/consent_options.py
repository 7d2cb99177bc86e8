"""The options by which a user consents to import the factory that a file names: `--model` and `--trust`."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

HELP = "import whatever network package.module:factory the files name: it is code, and runs"
Trust = Annotated[bool, typer.Option("--trust", help=HELP, show_default=False)]
Factories = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="PACKAGE.MODULE:FACTORY",
        help="the run's own network, repeated, so that it may be imported; for several runs, several times",
        show_default=False,
    ),
]


@contextlib.contextmanager
def consent_to_repeated(models: Sequence[str] | None, trust: bool) -> Iterator[None]:
    """Meanwhile, the factories that the user has typed may be imported. Raises ConfigError if one is no factory."""
    from ..runs.config import ConfigError
    from ..runs.consent import find_model_name, give_consent

    names = [find_model_name(model) for model in models or ()]
    if models is not None and not all(":" in name for name in names):
        raise ConfigError(
            f"--model repeats the network package.module:factory of what is read, got {models[0]!r}: other networks need no "
            "consent; leave --model out"
        )
    with give_consent(trust), give_consent(names):
        yield


@contextlib.contextmanager
def consent_to_typed(model: Any, trust: bool, file: Path | None) -> Iterator[None]:
    """Meanwhile, the model that was typed for a new run may be imported, but not from a run that `file` belongs to."""
    from ..models.factories import treat_as_data
    from ..runs.consent import find_model_name, give_consent

    is_of_run = file is not None and any((file.parent / name).exists() for name in ("data.json", "checkpoints", "grid.yaml"))
    with (
        give_consent(trust),
        give_consent(find_model_name(model)),
        treat_as_data(file.parent) if file is not None and is_of_run else contextlib.nullcontext(),
    ):
        yield


def override_settings(read: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a file, overridden by those that were typed. A factory that is repeated keeps the options in the file.

    >>> override_settings({"model": {"name": "nets:build", "width": 3}, "seed": 1}, {"model": "nets:build"})
    {'model': {'name': 'nets:build', 'width': 3}, 'seed': 1}
    """
    from ..runs.consent import find_model_name

    wanted = {**read, **typed}
    name = typed.get("model")
    if isinstance(name, str) and ":" in name and find_model_name(read.get("model")) == name:
        wanted["model"] = read["model"]
    return wanted
