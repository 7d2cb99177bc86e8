"""Train a network of the papers once, for every recipe that needs it.

Adam, with a learning rate that falls linearly to 0, batches of 200 (MNIST) or 100 (CIFAR) and one draw a step; the loss is the
mean cross-entropy plus KL / N. The folder of a training is named by a digest of its options, so the same options are trained
once; a training that was killed continues from its last checkpoint.
"""

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import lightning as L
import torch
from filelock import FileLock
from torch import Tensor, nn

import pluribus

from ...core.ensemble import Ensemble
from ...core.random_weights import find_random_layers, use_fixed_weights
from ...core.saving import load, save
from ...core.spec import Spec
from ...data import load as load_data
from ...data.dataset import Data, Part
from ...data.preparation import Pixels
from ...file_formats.paper_files import SharedTraining
from ...file_formats.reading import read_json, write_json
from ...training.fit import fit
from ...training.penalty_check import LargePenalty
from ..epoch_reporter import EpochReporter
from ..recipe import Json, Workspace
from .bounds import BoundTracker
from .features import compute_features
from .networks import build_network, remove_late_dropout
from .phase_transition import PhaseTracker

ADDED = ("kl_warmup", "start", "bounded", "features", "settings")
"""Options that are left out of JSON where they are not used."""


@dataclass(frozen=True)
class Training:
    """Which network is trained on which data, and how."""

    data: str
    network: Json
    """`kind`, and the options of that function in networks.py."""
    spec: Spec
    epochs: int
    seed: int = 0
    rows: int | None = None
    batch: int = 200
    lr: float = 1e-3
    beta1: float = 0.9
    augmentation: str = "none"
    kl_warmup: float = 0.0
    start: Json | None = None
    """The training whose weights this one starts from; None is random weights."""
    tracked: int = 0
    """The number of test rows on which phases are tracked after each epoch; 0 tracks nothing."""
    bounded: int = 0
    """The number of training rows on which the bound is tracked after each tenth of the epochs; 0 tracks nothing."""
    features: Json | None = None
    """The training whose network gives the features on which dense layers alone are trained; None trains on images."""
    settings: Json = field(default_factory=dict)
    """Further settings of the training loop, which take precedence."""

    def to_json(self) -> Json:
        """Return the options as JSON; options that were added later are left out where they are not used."""
        options = asdict(self) | {"spec": self.spec.to_json()}
        return {name: value for name, value in options.items() if name not in ADDED or value}

    @staticmethod
    def from_json(options: Json) -> "Training":
        return Training(**(options | {"spec": Spec.from_json(options["spec"])}))

    @property
    def key(self) -> str:
        """The name of the training's folder."""
        text = json.dumps(self.to_json(), sort_keys=True)
        name = f"{self.data}-{self.network['kind']}-{self.spec.name}-seed{self.seed}"
        return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"

    def build(self) -> nn.Module:
        """Build the plain network with its initial weights."""
        options = {key: value for key, value in self.network.items() if key != "kind"}
        return build_network(self.network["kind"], self.seed, **options)

    def convert(self, net: nn.Module | None = None) -> Ensemble:
        """Convert a network, or a new one, into the ensemble that is trained."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return pluribus.ensemble(self.build() if net is None else net, self.spec)


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained ensemble, the prepared test rows, and what was recorded during the training."""

    ensemble: Ensemble
    data: Data
    x: Tensor
    y: Tensor
    history: list[Json] = field(default_factory=list)
    phases: list[Json] = field(default_factory=list)
    watched: list[Json] = field(default_factory=list)
    bounds: list[Json] = field(default_factory=list)

    def training_rows(self, count: int | None = None) -> tuple[Tensor, Tensor]:
        """Return the first `count` training rows, prepared for the network, and their classes."""
        part = self.data.train
        stop = len(part) if count is None else count
        return self.data.preparation(part.x[:stop]), part.y[:stop]


def load_training_data(training: Training, workspace: Workspace) -> Data:
    """Load the data of a training: MNIST with pixels from 0 to 1, CIFAR standardised; smoke has `digits16`, `digits32`.

    Those of a training on features are what the convolutions of another training's network make of its data.
    """
    if training.features is not None:
        base = train_once(Training.from_json(training.features), workspace)
        return compute_features(base.data, base.ensemble.member(0))
    if training.data.startswith("digits"):
        data = enlarge_digits(load_data("digits"), int(training.data.removeprefix("digits")), training.network)
    else:
        data = load_data(training.data, workspace.data)
    data = data.subsample(training.rows, seed=0)
    if training.network["kind"] == "lenet":
        data = Data(data.name, data.train, data.test, Pixels(), data.classes, data.source, data.facts)
    return data


DIGITS_TO_TEST = 40
"""Test rows of the enlarged digits: the scale smoke shows that everything runs, and needs few."""


def enlarge_digits(data: Data, size: int, network: Json) -> Data:
    """Repeat every pixel of the digits up to `size`, and the channel as often as the network needs; keep few test rows."""
    times = size // data.shape[1]
    channels = 1 if network["kind"] == "lenet" else 3

    def part(rows: Part) -> Part:
        images = rows.x.repeat_interleave(times, 2).repeat_interleave(times, 3)
        return Part(images.expand(-1, channels, -1, -1).contiguous(), rows.y)

    train, test = part(data.train), part(data.test.take_rows(torch.arange(DIGITS_TO_TEST)))
    return Data(data.name, train, test, Pixels.fit(train.x), data.classes, data.source, data.facts)


CreateTracker = Callable[[Data], "RowTracker"]


class RowTracker(L.Callback):
    """A callback that records a row after each epoch."""

    rows: list[Json]


def train_once(training: Training, workspace: Workspace, create_tracker: CreateTracker | None = None) -> Trained:
    """Train an ensemble, or load it if it was trained before.

    Two cells that need the same training wait for each other.

    Args:
        training: what to train.
        workspace: the training lies in its shared folder.
        create_tracker: creates a callback from the data; its rows are saved with the training.
    """
    data = load_training_data(training, workspace)
    x, y = data.preparation(data.test.x), data.test.y
    folder = workspace.shared / training.key
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        if not (folder / "trained.json").is_file():
            _train(training, data, Part(x, y), workspace, create_tracker(data) if create_tracker else None)
        about = read_json(folder / "trained.json", SharedTraining)
        ensemble = load(folder / "weights.safetensors", training.build())
    recorded = (about[name] for name in ("history", "phases", "watched", "bounds"))
    return Trained(ensemble.eval(), data, x, y, *recorded)


def _train(training: Training, data: Data, test: Part, workspace: Workspace, tracker: RowTracker | None) -> None:
    """Train an ensemble, and write its weights and what was recorded."""
    folder = workspace.shared / training.key
    ensemble = training.convert(load_start(training, workspace))
    phases = PhaseTracker(test.x[: training.tracked], test.y[: training.tracked], training.seed) if training.tracked else None
    seen = data.train.take_rows(torch.arange(min(training.bounded, len(data.train))))
    bounds = BoundTracker(data.preparation(seen.x), seen.y, len(data.train), training.epochs) if training.bounded else None
    settings: Json = {
        "epochs": training.epochs,
        "batch_size": training.batch,
        "optimizer": "adam",
        "lr": training.lr,
        "beta1": training.beta1,
        "kl_warmup": training.kl_warmup,
        "schedule": "linear",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargePenalty)  # the penalty is the paper's, and what it does is what is measured
        history = fit(
            ensemble,
            data.train,
            folder=folder / "checkpoints",
            resume=True,
            preparation=data.preparation,
            augmentation=training.augmentation,
            callbacks=[EpochReporter(workspace, training.epochs), *(each for each in (phases, bounds, tracker) if each)],
            progress=False,
            seed=training.seed,
            accelerator="cpu" if not torch.cuda.is_available() else "auto",
            **(settings | training.settings),
        )
    save(ensemble.cpu(), folder / "weights.safetensors")
    about = {"training": training.to_json(), "history": history, "phases": phases.rows if phases else []}
    about |= {"watched": tracker.rows if tracker else [], "bounds": bounds.rows if bounds else []}
    write_json(folder / "trained.json", about)
    for checkpoint in (folder / "checkpoints").glob("step-*"):  # no longer needed: the weights are saved
        checkpoint.unlink()


def load_start(training: Training, workspace: Workspace) -> nn.Module | None:
    """Return the trained network to start from, or None."""
    if training.start is None:
        return None
    net = train_once(Training.from_json(training.start), workspace).ensemble.member(0).train()
    return remove_late_dropout(net) if training.network.get("variational") else net


@torch.no_grad()
def measure_accuracy(ensemble: Ensemble, x: Tensor, y: Tensor, samples: int | None = None, answer: str | None = None) -> float:
    """Return the accuracy, with another number of draws or another kind of answer if given; the ensemble stays as it was."""
    noisy: Any = ensemble
    before = noisy.samples, getattr(noisy, "answer", None)
    torch.manual_seed(0)
    try:
        if samples is not None:
            noisy.samples = samples
        if answer is not None:
            noisy.answer = answer
        return (noisy.predict(x).labels == y).double().mean().item()
    finally:
        if samples is not None:
            noisy.samples = before[0]
        if answer is not None:
            noisy.answer = before[1]


def measure_mean_weights(done: Trained) -> float:
    """Return the accuracy of the mean weights of variance layers, which are zero."""
    with use_fixed_weights({layer: layer.mu for layer in find_random_layers(done.ensemble.net).values()}):
        return measure_accuracy(done.ensemble, done.x, done.y, 1)


@torch.no_grad()
def measure_accuracy_by_batch(ensemble: Ensemble, x: Tensor, y: Tensor, samples: int = 20, rows: int = 200) -> float:
    """Return the accuracy as the authors' code measures it: BatchNorm uses the statistics of the batch, one draw at a time."""
    ensemble.eval()
    norms = [module for module in ensemble.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    momenta, before = [norm.momentum for norm in norms], ensemble.samples
    torch.manual_seed(0)
    right = 0
    try:
        ensemble.samples = 1
        for norm in norms:
            norm.train()
            norm.momentum = 0.0  # keeps the running statistics as they are
        for inputs, labels in zip(x.split(rows), y.split(rows), strict=True):
            probs = torch.stack([ensemble(inputs)[0].softmax(1) for _ in range(samples)]).mean(0)
            right += int((probs.argmax(1) == labels).sum())
    finally:
        ensemble.samples = before
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.eval()
            norm.momentum = momentum
    return right / len(y)
