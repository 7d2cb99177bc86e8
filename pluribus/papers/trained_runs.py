"""Train a network once, for every recipe of a paper that needs it.

A training is a run of `pluribus train`, named by a digest of its settings: what has the same settings is trained once, and one
that was killed goes on from its last checkpoint.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightning as L
from torch import Tensor, nn

from ..core.ensemble import Ensemble
from ..data.dataset import Data, Part
from ..runs.choices import format_choice
from ..runs.config import Config, build_config
from ..runs.loading import load_run, split_rows
from ..runs.run_folder import Run
from ..runs.training import load_data, train_run
from .epoch_reporter import EpochReporter
from .recipe import Json, Workspace


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained ensemble, its data, and the prepared test rows."""

    ensemble: Ensemble
    data: Data
    x: Tensor
    y: Tensor
    config: Config

    def split(self) -> tuple[Part, Part]:
        """The rows that it was trained on, and those that were held out of the training set."""
        return split_rows(self.config, self.data)

    def take_training_rows(self, count: int) -> Tensor:
        """The first training rows, prepared for the network."""
        return self.data.preparation(self.data.train.x[:count])


def train_once(settings: Json, workspace: Workspace, callbacks: Callable[[Data], list[L.Callback]] = lambda _: []) -> Trained:
    """Train an ensemble, or load it if it was trained before. Two cells that need the same training wait for each other.

    Args:
        settings: those of a run, as `pluribus train` has them. Besides, `l1` is λ of a penalty λ·Σ|w| on all weights, and
            `convolution_gradients` is a factor of the gradients of all convolutions.
        workspace: the training lies in its shared folder.
        callbacks: makes callbacks for the training from the data; a training that is finished does not call them.
    """
    config = build_config(add_data_folder(take_run_settings(settings), workspace))
    folder = workspace.shared / name_training(settings)
    data = load_data(config)
    own = [EpochReporter(workspace, config.most_epochs), *callbacks(data)]
    if settings.get("l1"):
        own.append(L1Penalty(settings["l1"]))
    if "convolution_gradients" in settings:
        own.append(ConvolutionGradients(settings["convolution_gradients"]))
    train_run(config, folder, resume=True, progress=False, callbacks=own, wait=True)
    ensemble, config, _, preparation = load_run(Run(folder))
    return Trained(ensemble, data, preparation(data.test.x), data.test.y, config)


def name_training(settings: Json) -> str:
    """The name of a training's folder.

    >>> name_training({"data": "digits", "method": "mimo", "seed": 1})
    'digits-mimo-seed1-62669dbd15'
    """
    config = build_config(take_run_settings(settings))
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:10]
    return f"{format_choice(config.data).partition(':')[0]}-{config.spec.name}-seed{config.seed}-{digest}"


def take_run_settings(settings: Json) -> Json:
    """The settings that `pluribus train` has."""
    return {name: value for name, value in settings.items() if name not in ("l1", "convolution_gradients")}


def add_data_folder(settings: Json, workspace: Workspace) -> Json:
    """The settings with the folder of the data sets, if a cell was given one."""
    return settings | ({"data_dir": str(workspace.data)} if workspace.data else {})


class L1Penalty(L.Callback):
    """Adds the gradient of λ·Σ|w| to that of every weight, biases excepted."""

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def on_before_optimizer_step(self, trainer: L.Trainer, module: L.LightningModule, optimizer: Any) -> None:
        for parameter in module.parameters():
            if parameter.grad is not None and parameter.dim() > 1:
                parameter.grad.add_(parameter.detach().sign(), alpha=self.strength)


class ConvolutionGradients(L.Callback):
    """Multiplies the gradients of all convolutions, weights and biases, by a factor.

    Under SGD with any momentum, schedule and (coupled) weight decay the factor 1/m is exactly the learning rate lr/m with the
    decay m·wd in these layers: lr · (g/m + wd·w) = (lr/m) · (g + m·wd·w), and momentum is linear in both.
    """

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def on_before_optimizer_step(self, trainer: L.Trainer, module: L.LightningModule, optimizer: Any) -> None:
        for layer in module.modules():
            for parameter in layer.parameters(recurse=False) if isinstance(layer, nn.Conv2d) else ():
                if parameter.grad is not None:
                    parameter.grad.mul_(self.factor)
