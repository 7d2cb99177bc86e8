"""`pluribus.fit`: the training loop, on Lightning."""

import contextlib
import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.strategies import DDPStrategy, Strategy
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from ..core.ensemble import Criterion, Ensemble
from ..core.errors import FileError, Unsupported
from ..core.modes import training_mode
from ..core.spec import Spec
from ..data.batches import Batches, LoaderBatches, TensorBatches
from ..data.dataset import Part
from ..data.preparation import Preparation
from .checkpoint_files import SafetensorsIO, read_checkpoint
from .checkpoints import CheckpointWriter, EarlyStopping, find_newest_checkpoint, list_checkpoints
from .interrupts import StopRequest
from .lightning_module import Diverged, TrainingModule
from .progress import ProgressBar
from .settings import Settings

VALIDATION_ROWS = 1024


def fit(
    ensemble: Ensemble,
    train: Any,
    validation: Any = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    settings: Settings | None = None,
    preparation: Preparation | None = None,
    augmentation: str = "none",
    criterion: Criterion | None = None,
    callbacks: Sequence[L.Callback] = (),
    loggers: Sequence[Any] = (),
    progress: bool = True,
    **options: Any,
) -> list[dict[str, float]]:
    """Train the ensemble, in place; returns a row for every epoch: its loss and the validation scores.

    `train` and `validation` are tensors (x, y), a Dataset, or a loader of such batches. Options are those of `Settings`:
    epochs, batch_size, optimizer, lr, schedule, warmup, patience, precision, devices and so on. With a `folder`, checkpoints
    are written there, and `resume=True` goes on from the last one, exactly as if nothing had happened.

    >>> import torch, pluribus
    >>> x = torch.randn(64, 4); y = (x[:, 0] > 0).long()
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 2), pluribus.BatchEnsemble(members=2))
    >>> history = fit(ensemble, (x, y), (x, y), epochs=2, lr=0.1, progress=False)
    >>> [row["epoch"] for row in history], "validation_nll" in history[-1]
    ([1, 2], True)
    """
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"fit takes an ensemble, got {type(ensemble).__name__}: make one with pluribus.ensemble(net, spec)")
    settings = settings.model_copy(update=validate_options(options)) if settings else Settings(**options)
    preparation = preparation or Preparation()
    batches, rows = make_batches(train, settings, preparation, augmentation)
    judged = None if validation is None else make_batches(validation, settings, preparation, rows=ensemble.at_once)[0]
    if settings.patience and judged is None:
        raise ValueError("early stopping (patience) needs validation rows")

    lesson = TrainingModule(ensemble, settings, batches, rows, judged, preparation, criterion)
    interrupts, best = StopRequest(), EarlyStopping(settings.patience) if settings.patience else None
    hooks: list[L.Callback] = [*callbacks, *([best] if best else []), *([ProgressBar()] if progress else [])]
    checkpoint = None
    if folder is not None:
        place = Path(folder)
        if not resume and is_leader() and list_checkpoints(place):  # a later resume could not tell the two runs apart
            raise FileError(f"{place} holds the checkpoints of a run: go on with it by resume=True, or name another folder")
        checkpoint = find_newest_checkpoint(place) if resume else None
        if checkpoint is not None:
            check_checkpoint(checkpoint, ensemble, settings)
        if is_leader():
            make_folder(place)
        hooks.append(CheckpointWriter(place, settings, interrupts))

    if settings.clip is not None and ensemble.unclippable:
        raise Unsupported(f"clip cannot be used here: {ensemble.unclippable}")
    prepare_ensemble(lesson, batches)
    if settings.compile:
        ensemble.compile()
    with (
        silence_lightning(),
        training_mode(ensemble),
        interrupts.listening() if folder is not None else contextlib.nullcontext(),
    ):
        trainer = make_trainer(settings, hooks, list(loggers))
        try:
            trainer.fit(lesson, batches, judged, ckpt_path=checkpoint)
        except Diverged as error:
            kept = find_newest_checkpoint(Path(folder), sound=True) if folder is not None else None
            good = f"the last good checkpoint is {kept}" if kept else "there is no checkpoint before it"
            raise Diverged(f"{error}; {good}. A lower lr, warmup or clip may help") from None
        if best and best.weights:
            ensemble.load_state_dict(best.weights)
        elif lesson.whole is not None:
            ensemble.load_state_dict(lesson.state())
    return lesson.history


def is_leader() -> bool:
    """Whether this process is the first of all. Before they meet, the environment says so."""
    if torch.distributed.is_initialized():
        return torch.distributed.get_rank() == 0
    return all(int(os.environ.get(name, 0)) == 0 for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))


def make_folder(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {place}: {error.strerror}") from error


def make_trainer(settings: Settings, hooks: list[L.Callback], loggers: list[Any]) -> L.Trainer:
    """Lightning's trainer for these settings, without what we do ourselves."""
    several = settings.devices * settings.nodes > 1 or "TORCHELASTIC_RUN_ID" in os.environ
    return L.Trainer(
        accelerator=settings.accelerator,
        devices=settings.devices,
        num_nodes=settings.nodes,
        strategy=make_strategy(settings) if several else "auto",
        plugins=[] if several else [SafetensorsIO()],
        precision=settings.precision,
        max_epochs=settings.epochs,
        gradient_clip_val=settings.clip,
        callbacks=hooks,
        logger=loggers or False,
        enable_checkpointing=any(isinstance(hook, Checkpoint) for hook in hooks),
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        inference_mode=False,
    )


def make_strategy(settings: Settings) -> Strategy:
    if settings.strategy == "ddp":
        return DDPStrategy(checkpoint_io=SafetensorsIO())
    from .sharding import ShardedStrategy

    return ShardedStrategy(settings.devices * settings.nodes)


def make_batches(
    given: Any, settings: Settings, preparation: Preparation, augmentation: str | None = None, rows: int = VALIDATION_ROWS
) -> tuple[Batches, int]:
    """Batches of whatever people have, and how many rows there are. Without an `augmentation`, to judge by, `rows` at once."""
    train = augmentation is not None
    size = settings.batch_size if train else max(min(rows, VALIDATION_ROWS), settings.devices * settings.nodes)
    if isinstance(given, Batches):
        return given, settings.batch_size * len(given)
    if isinstance(given, (tuple, list)) and len(given) == 2 and all(isinstance(part, Tensor) for part in given):
        given = Part(*given)
    elif isinstance(given, TensorDataset) and len(given.tensors) == 2:
        given = Part(*given.tensors)
    elif isinstance(given, (tuple, list)) and len(given) == 2 and all(isinstance(part, np.ndarray) for part in given):
        given = Part(*(torch.from_numpy(part) for part in given))
    elif isinstance(given, Dataset):
        if not hasattr(given, "__len__"):
            raise TypeError(f"a Dataset must have a length, got {type(given).__name__} without one")
        # Row by row, not once for all: it may augment. A row alone has no batch statistics.
        given = DataLoader(given, size, shuffle=train, drop_last=train and len(given) > size and len(given) % size == 1)
    if isinstance(given, Part):
        kind = augmentation or "none"
        return TensorBatches(given, size, preparation, seed=settings.seed, shuffled=train, augmentation=kind), len(given)
    if not isinstance(given, Iterable) or isinstance(given, (Tensor, np.ndarray)):
        raise TypeError(f"data must be (x, y), a Dataset or a loader, got {type(given).__name__} alone: fit(ensemble, (x, y))")
    if augmentation not in (None, "none") or preparation != Preparation():
        raise ValueError("augmentation and preparation are for tensors in memory: a Dataset or a loader does its own")
    dataset = getattr(given, "dataset", None)
    batches = LoaderBatches(given, settings.seed)
    size = getattr(given, "batch_size", None) or settings.batch_size
    return batches, len(dataset) if dataset is not None else size * len(batches)


def validate_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options, if they are settings and make sense."""
    return {name: getattr(Settings(**options), name) for name in options}


def check_checkpoint(checkpoint: Path, ensemble: Ensemble, settings: Settings) -> None:
    """A checkpoint of another method, network or way of training is refused before anything is touched."""
    state = read_checkpoint(checkpoint)
    spec = state["pluribus"]["spec"]
    if spec != ensemble.spec.to_json():
        was, now = Spec.from_json(spec), ensemble.spec
        raise FileError(f"the checkpoint {checkpoint} is of {was}, not of {now}: go on as it began, or begin in another folder")
    for name, was in state["pluribus"]["settings"].items():
        if was != getattr(settings, name):
            raise FileError(
                f"the checkpoint {checkpoint} was made with {name} {was}, not {getattr(settings, name)}: go on as it began, or "
                "begin in another folder"
            )
    own = {f"ensemble.{name}": value.shape for name, value in ensemble.state_dict().items()}
    if own != {name: value.shape for name, value in state["state_dict"].items()}:
        raise FileError(f"the checkpoint {checkpoint} is of another network: go on with that, or begin in another folder")


def prepare_ensemble(lesson: TrainingModule, batches: Batches) -> None:
    """Find out where members part before the first step, so that no step draws more than the others."""
    if lesson.ensemble.branch is None or lesson.ensemble.example is None:  # a batch is made only if it is needed
        lesson.ensemble.prepare(lesson.cast(next(iter(batches)).x))


@contextlib.contextmanager
def silence_lightning() -> Iterator[None]:
    """Lightning's advice is for those who write its loops."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"lightning\..*")
            warnings.filterwarnings("ignore", message=".*lr_scheduler.step.*")
            warnings.filterwarnings("ignore", message=".*returned a view tensor.*")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
