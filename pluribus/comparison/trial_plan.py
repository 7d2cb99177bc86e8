"""Which configurations a tuning tries: the default one first, then others from the product of candidates, without repeats.

Every method has the same common candidates (learning rate, weight decay, label smoothing, …), because methods must be made of
tuned networks too, and those that its spec offers. A method whose penalty costs more than guessing tries smaller weights of it.
An option that the user has set is left as it is; the learning rate and the weight decay that were set are what the candidates
are multiples of.

Both are drawn by Optuna's random sampler. The common settings of a trial are a function of the seed and the number of the
trial, so that no method is luckier than another one in what it may try; its options are a function of the seed, the method and
that number.
"""

import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ..core.ensemble import Ensemble
from ..core.errors import ConversionError
from ..core.seeds import derive_seed
from ..core.surgery import Subject
from ..data import Data
from ..models.registry import ModelError
from ..runs.choices import format_choice
from ..runs.config import Config, ConfigError, build_config
from ..runs.loading import build_network
from ..runs.pruning import quiet_optuna
from ..runs.training import convert_network
from ..training.penalty_check import find_largest_weight

Json = dict[str, Any]
Space = dict[str, tuple[Any, ...]]
"""The values of each option or setting; the first is the default."""
TUNING = 8
"""Which stream of the seed the trials are drawn from."""
RATES, DECAYS = (1 / 3, 3.0), (5.0,)
"""Multiples of the learning rate and of the weight decay, besides 1."""
VALUES = {"label_smoothing": (0.0, 0.05, 0.1), "mixup": (0.0, 0.2)}
"""Of settings for classifications; one that this version does not have is left out."""
PENALTIES = (1 / 3, 1 / 30)
"""Multiples of the largest weight at which a penalty costs no more than guessing."""
ATTEMPTS = 20
"""So many options are tried for a trial, if the network cannot be converted so, or another trial has the same."""


def plan_trials(
    config: Config, data: Data, count: int, seed: int, fit: Callable[[Config], Mapping[str, Any]] = lambda _: {}
) -> list[Json]:
    """The settings of the trials of one method, of which the first is `config` itself.

    Args:
        config: the default configuration, resolved and within the budget, with the seed of the trials.
        data: what it is for.
        count: how many trials there are at most; a method with fewer configurations has as many as these.
        seed: of the draws.
        fit: returns the settings that bring a configuration within the budget, or raises ConfigError.

    Returns:
        The settings of a `Config` for each trial. Configurations that the network cannot be converted to, or that no setting
        brings within the budget, are not among them.
    """
    default = config.model_dump(mode="json")
    trials, converted = [default], [(config.method, config.model)]
    try:
        with torch.random.fork_rng(devices=[]):
            weights = list_penalty_weights(convert_network(config, data), config, data)
            options, settings = list_options(config, data) | weights, list_settings(config, data)
    except (ConfigError, ModelError, ConversionError):
        return trials  # its only trial will fail, and say why
    method = zlib.crc32(format_choice(config.method).encode())
    drawn_settings = (drawn for drawn in draw_configurations(settings, derive_seed(seed, TUNING)) if drawn)
    order = [{}, *itertools.islice(drawn_settings, count - 1)]
    for number in range(1, min(count, math.prod(map(len, (options | settings).values())))):
        for drawn in itertools.islice(draw_configurations(options, derive_seed(seed, TUNING, method, number)), ATTEMPTS):
            if weights.keys() - drawn.keys():  # only the first trial has a penalty that leads to noise
                continue
            own = {name: drawn.pop(name) for name in weights}
            wanted = default | order[number % len(order)] | own | {"method": config.method | drawn}
            try:
                trial = build_config(wanted)
                made = build_config(wanted | dict(fit(trial)))
                if made.model_dump(mode="json") in trials:
                    continue
                if (made.method, made.model) not in converted:  # a conversion takes a while
                    with torch.random.fork_rng(devices=[]):
                        convert_network(made, data)
                    converted.append((made.method, made.model))
            except (ConfigError, ModelError):
                continue
            trials.append(made.model_dump(mode="json"))
            break
    return trials


def list_options(config: Config, data: Data) -> Space:
    """The candidates of the method's own options, without those that the user has set."""
    spec = config.spec
    net = build_network(config, data.shape, data.outputs, data.preparation.column_widths)
    example = data.preparation(data.train.x[:2]).to(next(net.parameters()).dtype)
    found = spec.list_candidates(Subject(net.train(), example, data.task))
    return {name: put_first(getattr(spec, name), values) for name, values in sorted(found.items()) if name not in config.method}


def list_penalty_weights(made: Ensemble, config: Config, data: Data) -> Space:
    """Smaller weights of a penalty that costs more than guessing; empty if it costs less, or the user has chosen its weight."""
    classes = data.outputs if data.task == "classification" else 0
    most = find_largest_weight(made, classes, len(data.train), config.kl_weight)
    if most is None or config.kl_weight != Config.model_fields["kl_weight"].default:
        return {}
    return {"kl_weight": (config.kl_weight, *(float(f"{times * most:.2g}") for times in PENALTIES))}


def list_settings(config: Config, data: Data) -> Space:
    """The candidates that every method has: those of the settings of training."""
    found: Space = {"lr": put_first(config.rate, tuple(float(f"{times * config.rate:.3g}") for times in RATES))}
    if config.decay:
        found["weight_decay"] = put_first(config.decay, tuple(float(f"{times * config.decay:.3g}") for times in DECAYS))
    if data.task == "classification":
        known = {name: values for name, values in VALUES.items() if name in Config.model_fields}
        found |= {name: put_first(getattr(config, name), values) for name, values in known.items()}
    return found


def put_first(default: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values with the default first.

    >>> put_first(3, (2, 3)), put_first(5, (2, 3))
    ((3, 2), (5, 2, 3))
    """
    return (default, *(value for value in values if value != default))


def draw_configurations(space: Space, seed: int) -> Iterator[Json]:
    """All configurations in a random order, without repeats.

    Args:
        space: the values of each option; the first is the default.
        seed: of the order.

    Yields:
        The options that differ from their defaults, with their values.

    >>> drawn = list(draw_configurations({"members": (3, 2), "lr": (0.1, 0.3)}, seed=0))
    >>> len(drawn), {} in drawn, {"members": 2, "lr": 0.3} in drawn
    (4, True, True)
    """
    with quiet_optuna() as optuna:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed % 2**32))
    places = {name: optuna.distributions.IntDistribution(0, len(values) - 1) for name, values in space.items()}
    seen: set[tuple[int, ...]] = set()
    while len(seen) < math.prod(map(len, space.values())):
        trial = study.ask(places)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)  # nothing is learnt from it
        drawn = tuple(trial.params[name] for name in space)
        if drawn not in seen:
            seen.add(drawn)
            yield {name: values[place] for (name, values), place in zip(space.items(), drawn, strict=True) if place}
