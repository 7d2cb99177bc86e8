"""Training a network of the papers once, for every recipe that needs it.

Adam, the learning rate falling linearly to 0, batches of 200 (MNIST) or 100 (CIFAR), one draw a step; the loss is the mean
cross-entropy plus KL / N. A training is what its options say: the same options are trained once, in a folder named by
their digest, and taken up again after a kill.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import lightning as L
import torch
from filelock import FileLock
from torch import Tensor, nn

import pluribus

from ...analysis.phase import Phases
from ...core.ensemble import Ensemble
from ...core.files import format_json, write_file
from ...core.saving import load, save
from ...core.spec import Spec
from ...data import load as load_data
from ...data.dataset import Data, Part
from ...data.preparation import Pixels
from ...methods.single import Single
from ...methods.variance import Variance
from ...methods.variational import VariationalDropout
from ...training.fit import fit
from ..recipe import Json, Place
from .networks import build, variational_layers, without_late_dropout

PAPER_EPOCHS = {"lenet": 200, "vgg": 550}
LENET: dict[str, Json] = {
    "smoke": {"data": "digits16", "epochs": 2, "batch": 100, "rows": 300},
    "cpu": {"data": "mnist", "epochs": 8},
    "paper": {"data": "mnist", "epochs": 200},
}
"""How LeNet-5 is trained at each scale."""
VGG: dict[str, Json] = {
    "smoke": {"data": "digits32", "epochs": 1, "batch": 100, "rows": 200},
    "cpu": {"data": "cifar10", "epochs": 10, "batch": 100, "rows": 10_000},
    "paper": {"data": "cifar10", "epochs": 550, "batch": 100, "beta1": 0.95},
}
NARROW = (
    "the VGG-like network an eighth as wide, with a quarter of its dropout rates, on 10,000 rows of CIFAR-10 without "
    "augmentation, 10 epochs instead of 550; where layers are variational, 8 epochs more from there, log α learnt 100 times "
    "faster than the weights."
)
"""How it is trained at scale cpu."""
TRIALS = (
    "Rates of log α, warm-ups and the narrow network at scale cpu were found by trial, by whether a transition shows on test "
    "rows in the time that there is. The trials are not recorded."
)
TRACKED = {"smoke": 100, "cpu": 2_000, "paper": 10_000}
"""Test rows on which phases are followed."""
WIDTHS = {"smoke": 0.05, "cpu": 0.125, "paper": 1.0}
"""Of the VGG-like network, as a share of the paper's channels."""


@dataclass(frozen=True)
class Training:
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
    """The training whose weights it starts from, if not from random ones."""
    tracked: int = 0
    """On how many test rows phases are followed, epoch by epoch; 0 is not at all."""

    def to_json(self) -> Json:
        options = asdict(self) | {"spec": self.spec.to_json()}
        return {name: value for name, value in options.items() if name not in ("kl_warmup", "start") or value}

    @staticmethod
    def from_json(options: Json) -> "Training":
        return Training(**(options | {"spec": Spec.from_json(options["spec"])}))

    @property
    def key(self) -> str:
        text = json.dumps(self.to_json(), sort_keys=True)
        name = f"{self.data}-{self.network['kind']}-{self.spec.name}-seed{self.seed}"
        return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"

    def build(self) -> nn.Module:
        options = {key: value for key, value in self.network.items() if key != "kind"}
        return build(self.network["kind"], self.seed, **options)

    def convert(self, net: nn.Module | None = None) -> Ensemble:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return pluribus.ensemble(self.build() if net is None else net, self.spec)


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained ensemble, the test rows as the network takes them, and what was seen on the way."""

    ensemble: Ensemble
    data: Data
    x: Tensor
    y: Tensor
    history: list[Json] = field(default_factory=list)
    phases: list[Json] = field(default_factory=list)
    watched: list[Json] = field(default_factory=list)

    def training_rows(self, count: int | None = None) -> tuple[Tensor, Tensor]:
        """Training rows as the network takes them."""
        part = self.data.train
        stop = len(part) if count is None else count
        return self.data.preparation(part.x[:stop]), part.y[:stop]


def opened(training: Training, place: Place) -> Data:
    """The data of a training: MNIST's pixels from 0 to 1, CIFAR's standardised. `digits16` and `digits32` are for smoke."""
    if training.data.startswith("digits"):
        data = enlarged(load_data("digits"), int(training.data.removeprefix("digits")), training.network)
    else:
        data = load_data(training.data, place.data)
    data = data.subsample(training.rows, seed=0)
    if training.network["kind"] == "lenet":
        data = Data(data.name, data.train, data.test, Pixels(), data.classes, data.source, data.facts)
    return data


def enlarged(data: Data, size: int, network: Json) -> Data:
    """Digits with every pixel repeated, in as many channels as the network takes."""
    times = size // data.shape[1]
    channels = 3 if network["kind"] == "vgg" else 1

    def part(rows: Part) -> Part:
        images = rows.x.repeat_interleave(times, 2).repeat_interleave(times, 3)
        return Part(images.expand(-1, channels, -1, -1).contiguous(), rows.y)

    train = part(data.train)
    return Data(data.name, train, part(data.test), Pixels.fit(train.x), data.classes, data.source, data.facts)


Watching = Callable[[Data], "Watcher"]


class Watcher(L.Callback):
    """A callback that leaves rows."""

    rows: list[Json]


def trained(training: Training, place: Place, watching: Watching | None = None) -> Trained:
    """The ensemble, trained now or before. Two cells that need the same one wait for each other.

    `watching` makes a callback that looks on; its rows are kept with the training.
    """
    data = opened(training, place)
    x, y = data.preparation(data.test.x), data.test.y
    folder = place.shared / training.key
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        if not (folder / "trained.json").is_file():
            _train(training, data, x, y, folder, place, watching)
        about = json.loads((folder / "trained.json").read_text(encoding="utf-8"))
        ensemble = load(folder / "weights.safetensors", training.build())
    return Trained(ensemble.eval(), data, x, y, about["history"], about["phases"], about["watched"])


def _train(training: Training, data: Data, x: Tensor, y: Tensor, folder: Path, place: Place, watching: Watching | None) -> None:
    ensemble = training.convert(started(training, place))
    callbacks: list[L.Callback] = [Telling(place, training.epochs)]
    watcher = watching(data) if watching else None
    phases = Phases(x[: training.tracked], y[: training.tracked], training.seed) if training.tracked else None
    history = fit(
        ensemble,
        data.train,
        folder=folder / "checkpoints",
        resume=True,
        preparation=data.preparation,
        augmentation=training.augmentation,
        callbacks=[*callbacks, *([phases] if phases else []), *([watcher] if watcher else [])],
        progress=False,
        epochs=training.epochs,
        batch_size=training.batch,
        optimizer="adam",
        lr=training.lr,
        beta1=training.beta1,
        kl_warmup=training.kl_warmup,
        schedule="linear",
        seed=training.seed,
        accelerator="cpu" if not torch.cuda.is_available() else "auto",
    )
    save(ensemble.cpu(), folder / "weights.safetensors")
    about = {"training": training.to_json(), "history": history, "phases": phases.rows if phases else []}
    about["watched"] = watcher.rows if watcher else []
    write_file(folder / "trained.json", format_json(about) + "\n")
    for checkpoint in (folder / "checkpoints").glob("step-*"):  # the weights are there
        checkpoint.unlink()


def started(training: Training, place: Place) -> nn.Module | None:
    """The trained network to start from, if there is one to be."""
    if training.start is None:
        return None
    net = trained(Training.from_json(training.start), place).ensemble.fold().train()
    return without_late_dropout(net) if training.network.get("variational") else net


class Telling(L.Callback):
    """Tells the place how far a training is."""

    def __init__(self, place: Place, epochs: int) -> None:
        self.place, self.epochs = place, epochs

    def on_train_epoch_start(self, trainer: L.Trainer, lesson: L.LightningModule) -> None:
        self.place.tell(f"epoch {trainer.current_epoch + 1}/{self.epochs}")


@torch.no_grad()
def accuracy(ensemble: Ensemble, x: Tensor, y: Tensor, samples: int | None = None, answer: str | None = None) -> float:
    """The share of right answers, with another number of draws, or another kind of answer, for a while."""
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


@torch.no_grad()
def by_batch_statistics(ensemble: Ensemble, x: Tensor, y: Tensor, samples: int = 20, rows: int = 200) -> float:
    """Accuracy as the authors' code tests: every BatchNorm normalises by the batch at hand, one draw at a time."""
    ensemble.eval()
    norms = [module for module in ensemble.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    momenta, before = [norm.momentum for norm in norms], ensemble.samples
    torch.manual_seed(0)
    right = 0
    try:
        ensemble.samples = 1
        for norm in norms:
            norm.train()
            norm.momentum = 0.0  # so that the running statistics stay
        for inputs, labels in zip(x.split(rows), y.split(rows), strict=True):
            probs = torch.stack([ensemble(inputs)[0].softmax(1) for _ in range(samples)]).mean(0)
            right += int((probs.argmax(1) == labels).sum())
    finally:
        ensemble.samples = before
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.eval()
            norm.momentum = momentum
    return right / len(y)


def lenet(scale: str, spec: Spec, seed: int = 0, **network: Any) -> Training:
    """LeNet-5 at a scale; `network` are options of `networks.lenet`."""
    size = {"size": 16, "width": 0.2} if scale == "smoke" else {}
    return Training(network={"kind": "lenet"} | size | network, spec=spec, seed=seed, **LENET[scale])


SLOWLY: Json = {"rows": 10_000, "epochs": 40, "kl_warmup": 8.0}
"""A phase transition that can be watched. On all rows KL has too little weight for one in an hour; without the warm-up a fast
log α jumps before anything is learnt."""


def watched_lenet(scale: str, **network: Any) -> Training:
    """LeNet-5 with a variational first dense layer, its phases followed."""
    rate = {"smoke": 100.0, "cpu": 3000.0, "paper": 1.0}[scale]
    spec = VariationalDropout(log_alpha_rate=rate, include="dense1")
    slowly = SLOWLY if scale == "cpu" else {}
    return replace(lenet(scale, spec, norm="dense", **network), tracked=TRACKED[scale], **slowly)


def vgg(scale: str, spec: Spec, seed: int = 0, *, tracked: int = 0, **options: Any) -> Training:
    """The VGG-like network at a scale; variational where the spec is."""
    network = {"kind": "vgg", "width": WIDTHS[scale], "variational": spec.name == "variational-dropout"}
    if scale == "cpu":
        network["dropout"] = 0.25  # so few channels learn nothing in so few epochs with the rates of the whole network
    network |= {name: options.pop(name) for name in ("classes", "dense_activation") if name in options}
    return Training(network=network, spec=spec, seed=seed, tracked=tracked, **(dict(VGG[scale]) | options))


def dropout_vgg(scale: str, seed: int = 0, **options: Any) -> Training:
    """The VGG-like network with its binary dropout."""
    return vgg(scale, Single(), seed, **options)


def variance_vgg(scale: str, seed: int = 0, prior: str = "log-uniform", **options: Any) -> Training:
    """The VGG-like network with one α for each of its variational layers, its phases followed."""
    spec = VariationalDropout(
        prior=prior,  # type: ignore[arg-type]
        log_alpha=-10.0,
        log_alpha_rate=100.0 if scale == "cpu" else hastened(scale, "vgg"),
        include=variational_layers(build("vgg", 0, width=WIDTHS[scale])),
    )
    warm: Json = {"start": dropout_vgg(scale, seed, **options).to_json(), "epochs": 8} if scale == "cpu" else {}
    return vgg(scale, spec, seed, tracked=TRACKED[scale], **(warm | options))


def zero_mean_vgg(scale: str, seed: int = 0) -> Training:
    """The VGG-like network with its first dense layer a variance layer; at scale cpu from the network with dropout."""
    dense = variational_layers(build("vgg", 0, width=WIDTHS[scale]))[-1]
    start: Json = {"start": dropout_vgg(scale, seed).to_json(), "epochs": 4} if scale == "cpu" else {}
    return vgg(scale, Variance(include=dense), seed, **start)


def zero_mean_lenet(scale: str, noise: str = "gaussian", **network: Any) -> Training:
    """LeNet-5 without biases, BatchNorm after each hidden layer, its first dense layer a variance layer."""
    spec = Variance(noise=noise, include="dense1")  # type: ignore[arg-type]
    return lenet(scale, spec, norm="all", bias=False, **network)


def hastened(scale: str, kind: str) -> float:
    """The learning rate of log α in units of the weights': with Adam it then travels as far as in the paper's many epochs."""
    epochs = {"lenet": LENET, "vgg": VGG}[kind][scale]["epochs"]
    return PAPER_EPOCHS[kind] / epochs
