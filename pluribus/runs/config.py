"""The configuration of a run: data, network, method and training settings, from YAML or the command line, and back.

Data, networks and methods are *choices*: a name with options (`choices.py`).
"""

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from ..core.errors import PluribusError
from ..core.spec import Spec
from ..core.suggestions import describe_unknown
from ..core.target_noise import TargetNoise, read_noise
from ..core.target_quantiles import TargetQuantiles
from ..core.texts import quote, shorten
from ..data.catalog import SETS
from ..file_formats.comparison_files import ConfigFile
from ..file_formats.explanations import describe_expected
from ..file_formats.reading import read_yaml, write_yaml
from ..training.settings import Settings, Share, WholeShare
from .choices import format_choice, parse_choice
from .recipes import RECIPES, apply_recipe

CHOICE = "NAME, NAME:option=value,… or, in a file, a mapping with a name"


MOST = {"members": 1000, "copies": 1000, "samples": 100_000}
"""The most members, copies and draws that a run may have."""


class ConfigError(PluribusError, ValueError):
    """A configuration that makes no sense; the message names the key."""


def find_role(role: Literal["baseline", "reference"]) -> str:
    """The name of the method with a role: gains are over the baseline, shares are of the reference's gain.

    >>> find_role("baseline"), find_role("reference")
    ('single', 'deep-ensemble')
    """
    return next(name for name, kind in Spec.registry.items() if kind.role == role)


def is_plain_reference(spec: Spec) -> bool:
    """Whether a spec is the reference, of any size, and its members are plain networks.

    >>> is_plain_reference(build_spec({"name": "deep-ensemble"})), is_plain_reference(build_spec({"name": "mimo"}))
    (True, False)
    """
    part = getattr(spec, spec.nested_option) if spec.nested_option else None
    return spec.role == "reference" and (part is None or part.role == "baseline")


class Config(Settings):
    """Every setting of a run."""

    data: dict[str, Any] = Field({"name": "digits"}, description="a known set, a table, an image folder or an .npz")
    data_dir: str | None = Field(None, description="where data sets lie [PLURIBUS_DATA, or ~/.cache/pluribus/data]")
    model: dict[str, Any] | None = Field(None, description="the network [by the data]; `package.module:factory` is your own")
    method: dict[str, Any] = Field({"name": find_role("baseline")}, description="how the network becomes many")
    noise: Literal["none", "gaussian", "beta-nll"] = Field("none", description="of a regression: how to learn its noise, too")
    noise_beta: WholeShare = Field(0.5, description="β of the beta-nll; 0 is gaussian, 1 fits means as the squared error does")
    quantiles: tuple[float, ...] = Field(
        (), description="of a regression: quantiles to learn beside the mean, as in 0.05,0.95 [none]"
    )
    augment: Literal["auto", "none", "flip", "crop", "crop-flip", "small-crop", "small-crop-flip", "small-crop-alternate"] = (
        Field(
            "auto",
            description="none, flip, crop, crop-flip, small-crop, small-crop-flip, small-crop-alternate (flips by turns); "
            "auto: crop-flip for CIFAR",
        )
    )
    validation: Share = Field(0.1, description="share of the training rows that is set aside to judge by while training")
    rows: int | None = Field(None, ge=2, lt=2**63, description="train on so many rows only")
    teacher: dict[str, str] | None = Field(None, description="a finished run, whose members the network learns from")
    recipe: str | None = Field(
        None, description=f"defaults for network and training: {', '.join(RECIPES)}; other options take precedence"
    )

    @model_validator(mode="before")
    @classmethod
    def _add_recipe(cls, options: Any) -> Any:
        if isinstance(options, Mapping) and isinstance(name := options.get("recipe"), str) and name not in RECIPES:
            raise ValueError(describe_unknown("recipe", name, RECIPES))
        return apply_recipe(options) if isinstance(options, Mapping) else options

    @field_validator("data", "model", "method", mode="before")
    @classmethod
    def _a_choice(cls, value: Any) -> Any:
        if isinstance(value, str):
            return parse_choice(value)
        if isinstance(value, Spec):
            return describe_spec(value)
        if isinstance(value, Mapping) and not isinstance(value.get("name"), str):
            raise ValueError(f"needs a name, got {quote(dict(value))}")
        return value

    @field_validator("teacher", mode="before")
    @classmethod
    def _a_teacher(cls, value: Any) -> Any:
        if isinstance(value, (str, os.PathLike)):  # it was typed: seen from the working folder
            return {"run": str(Path(value).expanduser().resolve())}
        known = {"run", "method", "digest"}
        if isinstance(value, Mapping) and (not isinstance(value.get("run"), str) or not value["run"] or set(value) - known):
            raise ValueError(f"must be the folder of a run, got {quote(dict(value))}")
        return value

    @field_validator("data_dir", mode="before")
    @classmethod
    def _a_path(cls, value: Any) -> Any:
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    @field_validator("quantiles", mode="before")
    @classmethod
    def _no_quantiles(cls, value: Any) -> Any:
        return () if value is None or tuple(value) == ("none",) else value

    @field_validator("quantiles")
    @classmethod
    def _check_quantiles(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        try:
            return value if not value else TargetQuantiles(value).levels
        except ValueError as error:
            raise ValueError(str(error).removeprefix("quantiles ")) from None

    @model_validator(mode="after")
    def _something_to_judge_by(self) -> "Config":
        if self.patience and not self.validation:
            raise ValueError("patience needs rows to judge by: set validation above 0, or leave patience out")
        if self.epochs == "auto" and not self.validation:
            raise ValueError("epochs auto needs rows to judge by: set validation above 0, or give a number of epochs")
        if self.noise_beta != 0.5 and self.noise != "beta-nll":
            raise ValueError(f"noise_beta is for noise beta-nll, and noise is {self.noise}: leave it out")
        if self.quantiles and self.noise != "none":
            raise ValueError(f"noise {self.noise} and quantiles both say how uncertain a row is: leave one of them out")
        return self

    @property
    def target_noise(self) -> TargetNoise | None:
        """How the network predicts the noise of its targets."""
        return TargetNoise(self.noise_beta) if self.noise == "beta-nll" else read_noise(self.noise)

    @property
    def spec(self) -> Spec:
        return build_spec(self.method)

    def title(self) -> str:
        """A title such as "mnist · lenet5 · mimo:members=3"."""
        data = self.data["name"] if self.data["name"] in SETS else Path(self.data["name"]).name
        method = name_student(format_choice(self.method), self.teacher)
        return " · ".join([data, *([format_choice(self.model)] if self.model else []), method])


def parse_method(method: Any) -> dict[str, Any]:
    """The name and the options of a method: a text, a mapping, a Spec, or None for the baseline.

    >>> parse_method("mimo:members=2")
    {'name': 'mimo', 'members': 2}
    """
    if isinstance(method, str):
        return parse_choice(method)
    if method is None:
        return {"name": find_role("baseline")}
    if isinstance(method, Spec):
        return describe_spec(method)
    if not isinstance(method, Mapping) or not isinstance(method.get("name"), str):
        raise ConfigError(f"method must be {CHOICE}, got {quote(method)}")
    return dict(method)


def name_student(method: str, teacher: Mapping[str, Any] | None) -> str:
    """The name of a method, with that of its teacher if it has one.

    >>> name_student("mimo", {"run": "../deep-seed0", "method": "deep-ensemble"}), name_student("mimo", None)
    ('mimo ← deep-ensemble', 'mimo')
    """
    return method if not teacher else f"{method} ← {teacher.get('method', 'teacher')}"


def describe_spec(spec: Spec) -> dict[str, Any]:
    """The name of a spec, and those of its options that differ from their defaults."""

    def plain(value: Any) -> Any:
        if isinstance(value, Spec):
            return describe_spec(value)
        return [plain(item) for item in value] if isinstance(value, (tuple, list)) else value

    options = {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec) if getattr(spec, f.name) != f.default}
    return {"name": spec.name} | {name: plain(value) for name, value in options.items()}


def build_spec(choice: Mapping[str, Any]) -> Spec:
    """The spec of a method by its name and options. Raises ConfigError on an unknown name or option."""
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
        if isinstance(value, (str, Mapping)) and option == kind.nested_option:
            options[option] = build_spec(parse_choice(value) if isinstance(value, str) else value)
    try:
        spec = kind(**options)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"{name}: {error}") from error
    for option, most in MOST.items():
        if count_size(spec, option) > most:
            raise ConfigError(
                f"{name}: {option} must be at most {most:,} in a run, got {count_size(spec, option):,}: it would take days and "
                "fill the memory; pluribus.ensemble in Python has no such limit"
            )
    return spec


def count_size(spec: Spec, option: str) -> int:
    """How many members, copies or samples a spec asks for; those of a spec inside it are multiplied.

    >>> count_size(build_spec({"name": "deep-ensemble", "members": 3, "of": "mimo:members=2"}), "members")
    6
    """
    own = getattr(spec, option) if spec.size_option == option else 1
    inner = getattr(spec, spec.nested_option) if spec.nested_option else None
    return own * (count_size(inner, option) if isinstance(inner, Spec) else 1)


def build_config(options: Mapping[str, Any], source: str = "") -> Config:
    """Check options and build the configuration. Raises ConfigError with one sentence about the first wrong option."""
    try:
        made = Config(**options)
    except ValidationError as error:
        raise ConfigError(explain_validation_error(error, source)) from None
    made.spec  # noqa: B018  raises on unknown methods and options before any data is read
    return made


def resolve_paths(config: Config) -> Config:
    """Make paths absolute: a worker may run in another folder."""
    update: dict[str, Any] = {}
    path = Path(config.data["name"]).expanduser()
    if config.data["name"] not in SETS and path.exists():
        update["data"] = config.data | {"name": str(path.resolve())}
    if config.data_dir is not None:
        update["data_dir"] = str(Path(config.data_dir).expanduser().resolve())
    return config.model_copy(update=update)


def explain_validation_error(error: ValidationError, source: str = "") -> str:
    """One sentence about the first error that pydantic found."""
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
    return f"{where}{key} must be {describe_expected(first, CHOICE)}, got {shorten(got if number else repr(got))}"


def read_config(path: Path, **changes: Any) -> Config:
    """Read the config.yaml of a run, with other values for some settings. Raises FileError if it is damaged."""
    return build_config(read_yaml(path, ConfigFile) | changes, str(path))


def save_config(config: Config, path: Path) -> None:
    """Write every setting as YAML: first data, network and method, then how to train."""
    content = config.model_dump(mode="json")
    order = ["data", "data_dir", "model", "method", "recipe", "noise", "noise_beta", "quantiles"]
    order += ["augment", "validation", "rows", "teacher"]
    arranged = {key: content[key] for key in [*order, *(key for key in content if key not in order)]}
    write_yaml(path, arranged)
