"""What is held equal between methods, and what each is given so that it is.

    epochs           every method sees every row as often
    training-flops   no method trains with more FLOPs than one network's epochs take: one that costs four times as much a step
                     gets a quarter of the epochs, rounded down
    deployed-flops   every method answers with the FLOPs of one network: its own is made narrower (or wider) until it does
    parameters       the same for the parameters that are deployed

Equal epochs flatter whatever costs more. Abe et al., "Deep Ensembles Work, But Are They Necessary?", 2022, compare an ensemble
with one network of its size; the last two are that comparison, with the sum held at the size of one.
"""

import inspect
import math
from typing import Any, Literal, get_args

import torch

from ..analysis.cost import choose_deployment, compare_training_flops
from ..core.convert import ensemble as convert
from ..core.suggestions import describe_unknown
from ..data import Data
from ..models.registry import MODELS, import_factory
from .choice import written
from .config import Config, ConfigError
from .opening import network
from .train import converted

Budget = Literal["epochs", "training-flops", "deployed-flops", "parameters"]
TEXTS = {
    "epochs": "epochs",
    "training-flops": "training FLOPs (those of one network, in whole epochs)",
    "deployed-flops": "FLOPs of an answer (those of one network; dearer methods have narrower ones)",
    "parameters": "deployed parameters (those of one network; dearer methods have narrower ones)",
}
NARROWEST, WIDEST, STEPS = 1 / 16, 4.0, 12


def check(budget: str) -> Budget:
    if budget not in get_args(Budget):
        raise ConfigError(describe_unknown("budget", budget, get_args(Budget)))
    return budget  # type: ignore[return-value]


def given(config: Config, data: Data, budget: Budget) -> dict[str, Any]:
    """The settings that bring a run within the budget; `config` is resolved, and says what one network gets."""
    if budget == "epochs":
        return {}
    if budget == "training-flops":
        times = step_cost(config, data)
        epochs = math.floor(config.epochs / times + 1e-6)
        if epochs < 1:
            raise ConfigError(
                f"{written(config.method)} costs {times:.1f} times the FLOPs a step: of {config.epochs} epochs less than "
                f"one is left for it; use --epochs {int(-(-times // 1))} or more"
            )
        return {"epochs": epochs}
    if config.spec.name == "single":
        return {"model": config.model}
    return {"model": narrowed(config, data, budget)}


def step_cost(config: Config, data: Data) -> float:
    """FLOPs of a training step, over those of the base network."""
    with torch.random.fork_rng(devices=[]):
        made = converted(config, data)
        base = network(config, data.shape, data.outputs)
        x, y = data.preparation(data.train.x[:8]), data.preparation.scale_targets(data.train.y[:8])
        times = compare_training_flops(made, base.to(x.dtype), x, y)
    if times is None:
        raise ConfigError(f"the FLOPs of {written(config.method)} cannot be counted: choose --budget epochs")
    return times


def narrowed(config: Config, data: Data, budget: Budget) -> dict[str, Any]:
    """The network with the greatest `width` at which the method costs no more than one network as it was."""
    model = config.model
    assert model is not None
    usual = default_width(model["name"])
    start = model.get("width", usual)
    limit = 1.005 * deployed(config.model_copy(update={"method": {"name": "single"}}), data, budget)

    def fits(width: Any) -> bool:
        return deployed(config.model_copy(update={"model": model | {"width": width}}), data, budget) <= limit

    if isinstance(usual, int):
        if not fits(1):
            raise too_wide(config, budget)
        below, above = 1, round(WIDEST * start) + 1
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if fits(middle) else (below, middle)
        return model | {"width": below}
    low, high = NARROWEST * start, WIDEST * start
    if fits(start):  # as dear as one network, or cheaper by a hair: leave it as it is
        low = start
        if not fits(1.05 * start):
            return model | {"width": start}
    elif not fits(low):
        raise too_wide(config, budget)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return model | {"width": math.floor(low * 1e4) / 1e4}


def default_width(name: str) -> Any:
    """What `width` is unless told; a network without that option cannot be made narrower."""
    factory = import_factory(name) if ":" in name else MODELS[name.replace("_", "-")].factory
    options = inspect.signature(factory).parameters
    if "width" not in options or not isinstance(options["width"].default, (int, float)):
        raise ConfigError(
            f"{name} has no option `width` with a number as default: this budget makes networks narrower by it; choose another "
            "network, or --budget epochs or training-flops"
        )
    return options["width"].default


def deployed(config: Config, data: Data, budget: Budget) -> float:
    """FLOPs or parameters of an answer, on the meta device."""
    with torch.random.fork_rng(devices=[]):
        net = network(config, data.shape, data.outputs)
        told = convert(net, config.spec, example=data.preparation(data.train.x[:2]), task=data.task).eval().describe()
    _, flops, parameters = choose_deployment(told)
    if budget == "parameters":
        return float(parameters)
    if flops is None:
        raise ConfigError(f"the FLOPs of {written(config.method)} cannot be counted: choose --budget epochs")
    return float(flops)


def too_wide(config: Config, budget: Budget) -> ConfigError:
    return ConfigError(
        f"{written(config.method)} costs more than one network ({budget}) even at {NARROWEST:g} of its width: leave it out, "
        "or give it fewer members or samples"
    )
