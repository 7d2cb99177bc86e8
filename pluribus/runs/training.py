"""Training a run: from a configuration to a run folder."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Checkpoint

from ..core.convert import ensemble as convert
from ..core.describe import count_parameters
from ..core.ensemble import Ensemble
from ..core.errors import FileError
from ..core.files import remove_leftovers
from ..core.saving import save as save_ensemble
from ..data import Columns, Data
from ..data.dataset import Part
from ..file_formats.digests import digest_file
from ..models.registry import choose_default_model
from ..training.checkpoints import list_checkpoints
from ..training.fit import fit, is_leader
from ..training.lightning_module import TrainingModule
from ..training.penalty_check import describe_large_penalty
from ..training.phases import plan_phases
from . import config as configs
from .config import Config, ConfigError, resolve_paths
from .consent import check_consent, read_as_data
from .evaluation_case import EvaluationCase
from .loading import build_network, check_unchanged, load_set, split_rows
from .network_check import check_batch_of_one, check_network, check_weight_memory
from .run_folder import Run, describe_machine
from .teachers import load_teacher


def train_run(
    config: Config,
    folder: Path,
    *,
    resume: bool = False,
    progress: bool = True,
    callbacks: Sequence[L.Callback] = (),
    wait: bool = False,
    scored: bool = True,
) -> dict[str, Any]:
    """Train as configured, write the run folder, and return the result: scores on the test rows, time, sizes.

    `resume` goes on from the last checkpoint, or returns the result of a finished run. If the weights of a finished run are
    missing, they are written again from its last checkpoint. If another process works in the folder, a FileError is raised,
    unless `wait` is set: then training starts when that process ends. Unless it is `scored`, no test row is read.
    """
    began = time.time()
    run = Run(folder)
    if resume and run.is_finished:
        result = run.read_json("result.json")
        if run.weights.is_file():
            return result
        if not list_checkpoints(run.checkpoints):
            raise FileError(
                f"{run.path} is finished, but {run.weights.name} is missing, and there is no checkpoint to make it from: take "
                f"it from a copy of the run, or train again with `pluribus train --config {run.config}`"
            )
    check_machine(config)
    check_consent(config.model, run.config if resume else "the configuration")
    data = load_data(config)
    config = resolve_config(config, data)
    parts = split_rows(config, data)
    teacher = load_teacher(config, run.path, data)
    if teacher is not None:
        config = config.model_copy(update={"teacher": teacher.entry})
    with read_as_data(run.path):
        made = convert_network(config, data)
    prepare_folder(run, config, data, resume)
    with run.lock(wait) if is_leader() else contextlib.nullcontext():
        if run.is_finished and run.weights.is_file():  # another process finished it in the meantime
            return run.read_json("result.json")
        if is_leader():
            remove_leftovers(run.path)
            remove_leftovers(run.checkpoints)
        classes = data.outputs if data.task == "classification" else 0
        caveat = describe_large_penalty(made, classes, len(parts[0]), config.kl_weight)
        history = fit(
            made,
            parts[0],
            parts[1] if len(parts[1]) else None,
            folder=run.checkpoints,
            resume=resume,
            settings=config,
            preparation=data.preparation,
            augmentation=config.augment,
            teacher=None if teacher is None else teacher.ensemble,
            callbacks=[MetricsWriter(run, describe_start(config, data, parts, run.path) if progress else ""), *callbacks],
            loggers=find_tensorboard_logger(run.path),
            progress=progress,
        )
        if not is_leader():
            return {}
        run.write_metrics(history)
        save_ensemble(made, run.weights)
        if run.is_finished:  # the weights were missing: the result is that of the training
            return run.read_json("result.json")
        result = score_run(made, config, data, parts[1], scored)
        steps = int(history[-1]["step"]) if history else 0
        result |= {"epochs": len(history), "steps": steps, "seconds": round(time.time() - began, 1)}
        result |= describe_phases(history, config) | {"caveat": caveat}
        result |= {"metrics": digest_file(run.metrics) if history else None}
        run.write_json("result.json", result)
    return result


def score_run(made: Ensemble, config: Config, data: Data, aside: Part, scored: bool = True) -> dict[str, Any]:
    """The scores on the test rows or, if there are none, on the validation rows; none, unless it is to be `scored`."""
    part, name = (data.test, "test") if len(data.test) else (aside, "validation")
    tally = EvaluationCase(made, data, part, config.seed).tally_scores() if len(part) and scored else None
    return {
        "title": config.title(),
        "split": None if tally is None else name,
        "scores": {} if tally is None else tally.scores(),
        "not_finite": 0 if tally is None else tally.not_finite,
        "parameters": count_parameters(made),
        "base_parameters": count_parameters(made.conversion.base),
    }


def describe_phases(history: list[dict[str, float]], config: Config) -> dict[str, Any]:
    """When the learning rate of a schedule with phases began to fall, and whether the score was still improving then."""
    phases = plan_phases(history, config)
    if phases is None:
        return {}
    return {"decay_from": phases.decay_from if phases.has_fallen else None, "still_improving": phases.still_improving}


def describe_start(config: Config, data: Data, parts: tuple[Part, Part], path: Path) -> str:
    """A text about the run for the start of training: classes, rows, folder."""
    what = f"{len(data.classes)} classes" if data.classes else "a regression"
    if isinstance(data.preparation, Columns):
        what += f", target {data.preparation.answer!r} from {len(data.preparation.columns)} columns"
    return f"{config.title()} → {path}\n{what}; {len(parts[0]):,} rows to train by, {len(parts[1]):,} set aside"


class MetricsWriter(Checkpoint):
    """Writes metrics.csv after every epoch. Lightning runs Checkpoint callbacks last, when the epoch's row is there."""

    def __init__(self, run: Run, title: str) -> None:
        self.run, self.title = run, title

    def on_train_start(self, trainer: L.Trainer, lesson: L.LightningModule) -> None:
        if self.title and trainer.is_global_zero:
            print(self.title, file=sys.stderr)

    def on_train_epoch_end(self, trainer: L.Trainer, lesson: L.LightningModule) -> None:
        assert isinstance(lesson, TrainingModule)
        if trainer.is_global_zero:
            self.run.write_metrics(lesson.history)


def load_data(config: Config) -> Data:
    """The data of a configuration. Raises ConfigError if it has no training rows."""
    data = load_set(config.data, config.data_dir)
    if not len(data.train):
        raise ConfigError(f"{data.name} has only test rows here: it can be used for evaluation, but not for training")
    return data.subsample(config.rows, config.seed)


def check_machine(config: Config) -> None:
    """Raise ConfigError for processes and accelerators that this machine lacks: Lightning's own messages are less plain."""
    gpus = torch.cuda.device_count()
    here = {"auto": True, "cpu": True, "gpu": gpus > 0 or torch.backends.mps.is_available()}
    if not here.get(config.accelerator, torch.backends.mps.is_available()):
        raise ConfigError(f"there is no accelerator {config.accelerator!r} on this machine: choose cpu or auto")
    if config.precision == "16-mixed" and (config.accelerator == "cpu" or not gpus):
        raise ConfigError("precision 16-mixed needs a GPU: choose bf16-mixed")
    cores = os.cpu_count() or 1
    most, what = (gpus, "GPUs") if gpus and config.accelerator != "cpu" else (max(4 * cores, 8), f"processes on {cores} cores")
    if config.devices > most:
        raise ConfigError(f"devices must be at most {most} here ({most} {what}), got {config.devices}")


def resolve_config(config: Config, data: Data) -> Config:
    """Fill in the settings that follow from the data, so that the configuration records what was done."""
    update: dict[str, Any] = {"lr": config.rate, "weight_decay": config.decay}
    if config.model is None:
        update["model"] = {"name": choose_default_model(data.shape)}
    if config.augment == "auto":
        update["augment"] = "crop-flip" if data.name.startswith("cifar") else "none"
    elif config.augment != "none" and not data.has_images:
        raise ConfigError(f"augment {config.augment!r} is for images, and {data.name} has rows of numbers: choose none")
    wanted = "quantiles" if config.quantiles else "noise"
    if config.quantiles or config.noise != "none":
        if data.task == "classification":
            verb = "are" if config.quantiles else "is"
            raise ConfigError(f"{wanted} {verb} of a regression's targets, and {data.name} has classes: leave {wanted} out")
        if config.teacher is not None:
            raise ConfigError(f"a student learns its teacher's means: leave {wanted} out, or teacher")
    if data.task == "regression":
        for name, off in (("mixup", 0.0), ("teacher_temperature", 1.0)):
            if getattr(config, name) != off:
                raise ConfigError(f"{name} is for a classification, and {data.name} is a regression: leave it out")
    return resolve_paths(config.model_copy(update=update))


def convert_network(config: Config, data: Data) -> Ensemble:
    """The ensemble before training.

    Raises ModelError if the network does not fit the data, tried on two rows, and ConfigError if its weights would take more
    memory than the limit.
    """
    assert config.model is not None
    net = build_network(config, data.shape, data.outputs, data.preparation.column_widths)
    example = data.preparation(data.train.x[:2])
    dtype = torch.double if config.precision == "64" else torch.float
    net, example = net.to(dtype), example.to(dtype)
    check_network(net, config.model["name"], example, data.outputs)
    if config.batch_size < 2 * config.devices * config.nodes:
        check_batch_of_one(net, config.model["name"], example[:1])
    check_weight_memory(net, config.spec, config.title(), data.task)
    try:
        wanted: dict[str, Any] = {"noise": config.target_noise, "quantiles": config.quantiles or None}
        return convert(net.train(), config.spec, example=example, task=data.task, **wanted)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{config.method['name']} cannot convert {config.model['name']}: {error}") from error


def prepare_folder(run: Run, config: Config, data: Data, resume: bool) -> None:
    """Create the folder and write what is known before training. Raises FileError if it holds another run."""
    if not is_leader():
        return
    if run.path.is_file():
        raise FileError(f"{run.path} is a file: name a folder for the run")
    if not resume and run.path.is_dir() and any(run.path.iterdir()):
        raise FileError(f"{run.path} is not empty: resume it (--resume), or name another folder (--out)")
    run.create()
    if resume and run.config.is_file():
        check_unchanged(data, run.read_json("data.json"))
        return
    run.write_json("about.json", describe_machine())
    run.write_json("data.json", describe_data(data))
    configs.save_config(config, run.config)  # written last: its presence says that the others are there


def describe_data(data: Data) -> dict[str, Any]:
    """The content of data.json."""
    return {
        "name": data.name,
        "task": data.task,
        "shape": list(data.shape),
        "classes": list(data.classes),
        "preparation": json.loads(json.dumps(data.preparation.to_json())),
        "train": len(data.train),
        "test": len(data.test),
        "facts": data.facts,
    }


def find_tensorboard_logger(folder: Path) -> Sequence[Any]:
    """TensorBoard's logger, if it is installed."""
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        return ()
    from lightning.pytorch.loggers import TensorBoardLogger

    return (TensorBoardLogger(folder, name="", version="tensorboard"),)
