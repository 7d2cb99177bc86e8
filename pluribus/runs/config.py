"""A run's whole configuration: what to learn, with which network, by which method, and how to train. YAML, and back."""

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from ..core.errors import FileError, PluribusError
from ..core.files import write_file
from ..core.spec import Spec
from ..core.suggestions import describe_unknown
from ..data.catalog import SETS
from ..training.settings import Settings, Share
from .choice import parse, written

CHOICE = "NAME, NAME:option=value,… or, in a file, a mapping with a name"


class ConfigError(PluribusError, ValueError):
    """A configuration that makes no sense; the message names the key."""


class Config(Settings):
    """Everything that `pluribus train` is told."""

    data: dict[str, Any] = Field({"name": "digits"}, description="a known set, a table, an image folder or an .npz")
    data_dir: str | None = Field(None, description="where data sets lie [PLURIBUS_DATA, or ~/.cache/pluribus/data]")
    model: dict[str, Any] | None = Field(None, description="the network [by the data]; `package.module:factory` is your own")
    method: dict[str, Any] = Field({"name": "single"}, description="how the network becomes many")
    augment: Literal["auto", "none", "flip", "crop", "crop-flip"] = Field(
        "auto", description="none, flip, crop, crop-flip; auto: crop-flip for CIFAR"
    )
    validation: Share = Field(0.1, description="share of the training rows that is set aside to judge by while training")
    rows: int | None = Field(None, ge=2, description="train on so many rows only")

    @field_validator("data", "model", "method", mode="before")
    @classmethod
    def _a_choice(cls, value: Any) -> Any:
        if isinstance(value, str):
            return parse(value)
        if isinstance(value, Mapping) and not isinstance(value.get("name"), str):
            raise ValueError(f"needs a name, got {dict(value)}")
        return value

    @field_validator("data_dir", mode="before")
    @classmethod
    def _a_path(cls, value: Any) -> Any:
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    @model_validator(mode="after")
    def _something_to_judge_by(self) -> "Config":
        if self.patience and not self.validation:
            raise ValueError("patience needs rows to judge by: set validation above 0, or leave patience out")
        return self

    @property
    def spec(self) -> Spec:
        return spec(self.method)

    def title(self) -> str:
        """For people: mnist · lenet5 · mimo:members=3"""
        data = self.data["name"] if self.data["name"] in SETS else Path(self.data["name"]).name
        return " · ".join([data, *([written(self.model)] if self.model else []), written(self.method)])


def chosen(method: Any) -> dict[str, Any]:
    """A method as a file or a flag has it, as name and options; None is the default."""
    if isinstance(method, str):
        return parse(method)
    if method is None:
        return {"name": "single"}
    if not isinstance(method, Mapping) or not isinstance(method.get("name"), str):
        raise ConfigError(f"method must be {CHOICE}, got {method!r}")
    return dict(method)


def spec(choice: Mapping[str, Any]) -> Spec:
    """The spec of a method by its name and options."""
    name = choice["name"]
    kind = Spec.registry.get(name) or Spec.registry.get(name.replace("_", "-"))
    if kind is None:
        raise ConfigError(describe_unknown("method", name, Spec.registry))
    known = [field.name for field in dataclasses.fields(kind)]
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in choice.items() if key != "name"}
    for option in options:
        if option not in known:
            raise ConfigError(f"{name} has no option {option!r}; it has: {', '.join(known)}")
    for option, value in options.items():
        if isinstance(value, (str, Mapping)) and option == "of":
            options[option] = spec(parse(value) if isinstance(value, str) else value)
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: {error}") from error


def configured(options: Mapping[str, Any], source: str = "") -> Config:
    """A checked configuration, or one sentence about the first thing wrong with it."""
    try:
        made = Config(**options)
    except ValidationError as error:
        raise ConfigError(explained(error, source)) from None
    made.spec  # noqa: B018  unknown methods and options are said before any data is read
    return made


def located(config: Config) -> Config:
    """With whole paths: whoever reads it may stand elsewhere."""
    update: dict[str, Any] = {}
    path = Path(config.data["name"]).expanduser()
    if config.data["name"] not in SETS and path.exists():
        update["data"] = config.data | {"name": str(path.resolve())}
    if config.data_dir is not None:
        update["data_dir"] = str(Path(config.data_dir).expanduser().resolve())
    return config.model_copy(update=update)


def explained(error: ValidationError, source: str = "") -> str:
    """What pydantic found, in a sentence."""
    first = error.errors()[0]
    key = str(first["loc"][0]) if first["loc"] else ""
    where = f"{source}: " if source else ""
    if first["type"] == "extra_forbidden":
        return where + describe_unknown("setting", key, Config.model_fields)
    got = first.get("input")
    if first["type"] == "value_error":  # our own
        message = first["msg"].removeprefix("Value error, ")
        return f"{where}{key}{' ' if message.startswith(('must', 'needs')) else ': '}{message}" if key else where + message
    number = isinstance(got, str) and re.fullmatch(r"[-+.\d]+", got)  # flags are texts
    return f"{where}{key} must be {_what(first, got)}, got {got if number else repr(got)}"


def _what(error: Any, got: Any) -> str:
    """What pydantic expected, as people say it."""
    limits = error.get("ctx", {})
    kind = error["type"]
    if kind == "literal_error":
        choices = limits["expected"].replace("'", "")
        near = describe_unknown("", str(got), re.split(", | or ", choices)).partition("did you mean ")[2]
        return f"{choices} (did you mean {near.rstrip('?')}?)" if near else choices
    words = {"greater_than_equal": "at least {ge:g}", "greater_than": "more than {gt:g}", "less_than": "less than {lt:g}"}
    words |= {"less_than_equal": "at most {le:g}", "finite_number": "a finite number", "dict_type": CHOICE}
    if kind in words:
        return words[kind].format(**limits)
    names = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "a text", "tuple": "a list"}
    return names.get(kind.split("_")[0], str(error["msg"]).removeprefix("Input should be "))


def read(path: Path) -> dict[str, Any]:
    """The settings in a YAML file, unchecked."""
    if not path.exists():
        raise FileError(f"there is no configuration {path}")
    if path.is_dir():
        raise FileError(f"{path} is a folder: name a YAML file (of a run, {path / 'config.yaml'})")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        place = f", line {line + 1}" if line is not None else ""
        raise FileError(f"{path} is no YAML{place}: write `setting: value`, one a line") from error
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error
    if not isinstance(content, dict):
        kind = "a list" if isinstance(content, list) else "nothing" if content is None else "a single value"
        raise FileError(f"{path} must hold settings, one `setting: value` a line, got {kind}")
    strange = [key for key in content if not isinstance(key, str)]
    if strange:
        raise FileError(f"{path} must hold settings, one `setting: value` a line: {strange[0]!r} is no setting's name")
    return content


def save(config: Config, path: Path) -> None:
    """Every setting, in the order of the page above."""
    content = config.model_dump(mode="json")
    order = ["data", "data_dir", "model", "method", "augment", "validation", "rows"]
    arranged = {key: content[key] for key in [*order, *(key for key in content if key not in order)]}
    write_file(path, yaml.safe_dump(arranged, sort_keys=False, allow_unicode=True))
