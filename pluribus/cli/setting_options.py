"""One command-line option for every setting of the configuration, with its description."""

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from ..core.spec import Spec
from ..data.catalog import SETS
from ..models.registry import MODELS
from ..runs.config import Config

PANELS = {
    "What to learn": (
        *("data", "data_dir", "model", "method", "recipe", "noise", "noise_beta", "quantiles"),
        *("augment", "validation", "rows"),
    ),
    "How to train": (
        *("epochs", "max_epochs", "batch_size", "seed", "optimizer", "lr", "momentum", "beta1", "nesterov", "weight_decay"),
        *("bias_lr", "bias_decay", "label_smoothing", "mixup", "clip", "kl_warmup", "kl_weight", "patience"),
    ),
    "Distillation": ("teacher", "teacher_weight", "teacher_temperature", "teacher_members"),
    "Learning rate": ("schedule", "warmup", "decay_share", "milestones", "gamma"),
    "Where": ("devices", "nodes", "strategy", "accelerator", "precision", "compile", "checkpoint_every"),
}
"""The panels of `--help`. A setting that stands in none of them is shown under "Other settings"."""
Command = Callable[..., None]
NAMES: dict[str, Callable[[], list[str]]] = {
    "data": lambda: list(SETS),
    "model": lambda: list(MODELS),
    "method": lambda: list(Spec.registry),
}


def with_settings(leave_out: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command one option for every setting, in the place of its parameter `settings`.

    Typer reads the options of a command from its signature. The decorated command shows a signature with an option for each
    field of `Config`, and hands those that were typed to the function as one dictionary, `settings`. An option that was not
    typed is absent, so that the value of a file or the default holds.

    Args:
        leave_out: settings that get no option.
    """
    options = [option for option in make_setting_options() if option.name not in leave_out]
    names = [option.name for option in options]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**values: Any) -> None:
            settings = parse_settings({name: values.pop(name) for name in names})
            command(settings=settings, **values)

        own = list(inspect.signature(command).parameters.values())
        place = [parameter.name for parameter in own].index("settings")
        parameters = [*own[:place], *options, *own[place + 1 :]]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def make_setting_options() -> list[inspect.Parameter]:
    """Return a keyword parameter for every setting, with its Typer option and None as its default."""
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    order = [*panels, *(name for name in Config.model_fields if name not in panels)]
    return [_make_option(name, Config.model_fields[name], panels.get(name, "Other settings")) for name in order]


def _make_option(name: str, field: FieldInfo, panel: str) -> inspect.Parameter:
    kind: Any = bool if field.annotation is bool else str
    flag = name.replace("_", "-")
    option = typer.Option(
        f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}",
        help=format_help(name, field),
        metavar=None if kind is bool else choose_metavar(name, field),
        rich_help_panel=panel,
        autocompletion=make_completer(name, field),
        show_default=False,
    )
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option])


def format_help(name: str, field: FieldInfo) -> str:
    """Return the description of a setting, with its default where that is a plain value."""
    text = str(field.description)
    default = field.default
    if "[" in text or default is None or isinstance(default, bool):
        return text.replace("[", "\\[")
    if isinstance(default, dict):
        default = default["name"]
    elif isinstance(default, tuple):
        default = ",".join(map(str, default))
    return f"{text} \\[{default}]"


def list_choices(field: FieldInfo) -> list[str]:
    options = [field.annotation, *get_args(field.annotation)]
    return [str(value) for option in options if get_origin(option) is Literal for value in get_args(option)]


def choose_metavar(name: str, field: FieldInfo) -> str:
    if name in NAMES:
        return "NAME[:KEY=VALUE,…]" if name != "data" else "NAME|PATH[:KEY=VALUE,…]"
    if name in ("data_dir", "teacher"):
        return "FOLDER" if name == "data_dir" else "RUN"
    text = str(field.annotation)
    if "int" in text and "float" not in text:
        return "|".join(["N", *list_choices(field)])
    return "NAME" if list_choices(field) else "X"


def make_completer(name: str, field: FieldInfo) -> Callable[[str], list[str]] | None:
    known = NAMES[name] if name in NAMES else (lambda: list_choices(field)) if list_choices(field) else None
    return None if known is None else lambda incomplete: [choice for choice in known() if choice.startswith(incomplete)]


def parse_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were typed as settings: "none" is None, and "a,b" a tuple, where the setting takes one.

    >>> parse_settings({"epochs": "3", "clip": "none", "milestones": "0.5,0.8", "seed": None})
    {'epochs': '3', 'clip': None, 'milestones': ('0.5', '0.8')}
    """
    typed = {name: value for name, value in options.items() if value is not None}
    for name, value in typed.items():
        kind = Config.model_fields[name].annotation
        if value in ("none", "null") and type(None) in get_args(kind):
            typed[name] = None
        elif get_origin(kind) is tuple:
            typed[name] = tuple(part for part in value.split(",") if part)
    return typed
