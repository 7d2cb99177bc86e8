"""Budgets: what is held equal between methods, and the settings that bring each method within it.

    epochs           every method sees every row as often or, with `epochs auto`, until it has converged
    training-flops   no method trains with more FLOPs than one network's epochs take: one that costs four times as much a step
                     gets a quarter of the epochs, rounded down
    deployed-flops   every method answers with the FLOPs of one network: its own is made narrower (or wider) until it does
    parameters       the same for the parameters that are deployed

Equal epochs flatter whatever costs more. Abe et al., "Deep Ensembles Work, But Are They Necessary?", 2022, compare an ensemble
with one network of its size; the last two are that comparison, with the sum held at the size of one.
"""

import inspect
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch

from ..analysis.cost import choose_deployment, compare_training_flops
from ..core.convert import ensemble as convert
from ..core.suggestions import describe_unknown
from ..data import Data
from ..runs.choices import format_choice
from ..runs.config import Config, ConfigError, find_role
from ..runs.loading import build_network, find_factory
from ..runs.training import convert_network

Budget = Literal["epochs", "training-flops", "deployed-flops", "parameters"]
TEXTS = {
    "epochs": "epochs",
    "training-flops": "training FLOPs (those of one network, in whole epochs)",
    "deployed-flops": "FLOPs of an answer (those of one network; dearer methods have narrower ones)",
    "parameters": "deployed parameters (those of one network; dearer methods have narrower ones)",
}
NARROWEST, WIDEST, STEPS = 1 / 16, 4.0, 12


def check_length(budget: Budget, config: Config) -> None:
    """Raise ConfigError if the budget cannot be computed because nobody knows how long one network is trained."""
    if budget == "training-flops" and config.epochs == "auto":
        raise ConfigError("the budget training-flops is that of one network's epochs: say how many (--epochs N, or epochs=N)")


def describe_budget(budget: Budget, settings: Mapping[str, Any]) -> str:
    """What is held equal, in words that follow "equal"; `settings` are those that all runs share.

    >>> describe_budget("epochs", {"epochs": "auto", "max_epochs": 50})
    'rules for the length of training (until it has converged, at most 50 epochs)'
    """
    if budget == "epochs" and settings.get("epochs") == "auto":
        most = f", at most {settings['max_epochs']} epochs" if "max_epochs" in settings else ""
        return f"rules for the length of training (until it has converged{most})"
    return TEXTS[budget]


def check_budget(budget: str) -> Budget:
    """The budget, if it is one. Raises ConfigError."""
    if budget not in get_args(Budget):
        raise ConfigError(describe_unknown("budget", budget, get_args(Budget)))
    return budget  # type: ignore[return-value]


def fit_to_budget(config: Config, data: Data, budget: Budget) -> dict[str, Any]:
    """The settings that bring a run within the budget. `config` is resolved and has the settings of the baseline.

    Raises ConfigError if no setting does.
    """
    if budget == "epochs":
        return {}
    if budget == "training-flops":
        times = measure_step_cost(config, data)
        epochs = math.floor(config.most_epochs / times + 1e-6)
        if epochs < 1:
            raise ConfigError(
                f"{format_choice(config.method)} costs {times:.1f} times the FLOPs a step: of {config.most_epochs} epochs less "
                f"than one is left for it; use --epochs {int(-(-times // 1))} or more"
            )
        return {"epochs": epochs}
    if config.spec.role == "baseline":
        return {"model": config.model}
    return {"model": narrow_model(config, data, budget)}


def measure_step_cost(config: Config, data: Data) -> float:
    """FLOPs of a training step, over those of the base network."""
    with torch.random.fork_rng(devices=[]):
        made = convert_network(config, data)
        base = build_network(config, data.shape, data.outputs, data.preparation.column_widths)
        x, y = data.preparation(data.train.x[:8]), data.preparation.scale_targets(data.train.y[:8])
        times = compare_training_flops(made, base.to(x.dtype), x, y)
    if times is None:
        raise ConfigError(f"the FLOPs of {format_choice(config.method)} cannot be counted: choose --budget epochs")
    return times


def narrow_model(config: Config, data: Data, budget: Budget) -> dict[str, Any]:
    """The network with the greatest `width` at which the method costs no more than one network as it was."""
    model = config.model
    assert model is not None
    usual = find_default_width(model["name"])
    start = model.get("width", usual)
    limit = 1.005 * measure_deployed_cost(config.model_copy(update={"method": {"name": find_role("baseline")}}), data, budget)

    def fits(width: Any) -> bool:
        return measure_deployed_cost(config.model_copy(update={"model": model | {"width": width}}), data, budget) <= limit

    if isinstance(usual, int):
        if not fits(1):
            raise build_width_error(config, budget)
        below, above = 1, round(WIDEST * start) + 1
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if fits(middle) else (below, middle)
        return model | {"width": below}
    low, high = NARROWEST * start, WIDEST * start
    if fits(start):  # if it costs as much as one network, or hardly less, the width stays
        low = start
        if not fits(1.05 * start):
            return model | {"width": start}
    elif not fits(low):
        raise build_width_error(config, budget)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return model | {"width": math.floor(low * 1e4) / 1e4}


def find_default_width(name: str) -> Any:
    """The default of the option `width`. Raises ConfigError for a network without that option: it cannot be made narrower."""
    options = inspect.signature(find_factory(name)).parameters
    if "width" not in options or not isinstance(options["width"].default, (int, float)):
        raise ConfigError(
            f"{name} has no option `width` with a number as default: this budget makes networks narrower by it; choose another "
            "network, or --budget epochs or training-flops"
        )
    return options["width"].default


def measure_deployed_cost(config: Config, data: Data, budget: Budget) -> float:
    """FLOPs or parameters of a prediction, whichever the budget is of."""
    assert config.model is not None
    with torch.random.fork_rng(devices=[]):
        net = build_network(config, data.shape, data.outputs, data.preparation.column_widths)
        try:
            made = convert(
                net, config.spec, example=data.preparation(data.train.x[:2]), task=data.task, noise=config.target_noise
            )
        except (ValueError, TypeError) as error:
            raise ConfigError(
                f"{format_choice(config.method)} cannot convert {format_choice(config.model)}: {error}"
            ) from error
    _, flops, parameters = choose_deployment(made.eval().describe())
    if budget == "parameters":
        return float(parameters)
    if flops is None:
        raise ConfigError(f"the FLOPs of {format_choice(config.method)} cannot be counted: choose --budget epochs")
    return float(flops)


def build_width_error(config: Config, budget: Budget) -> ConfigError:
    """The error for a method that does not fit at any width."""
    return ConfigError(
        f"{format_choice(config.method)} costs more than one network ({budget}) even at {NARROWEST:g} of its width: "
        "leave it out, or give it fewer members or samples"
    )
