"""`pluribus.fit` trains an ensemble, on Lightning."""

import contextlib
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from ..core import pytrees
from ..core.ensemble import Ensemble
from ..core.errors import FileError
from ..core.losses import Criterion
from ..core.modes import training_mode
from ..core.weight_checks import find_non_finite
from ..data.batches import Batches, LoaderBatches, TensorBatches
from ..data.dataset import Part
from ..data.preparation import Preparation
from .checkpoint_checks import check_checkpoint, explain_restoring
from .checkpoints import CheckpointWriter, find_diverged, find_newest_checkpoint, list_checkpoints
from .distillation import Teacher
from .early_stopping import EarlyStopping
from .interrupts import StopRequest
from .lightning_module import Diverged, TrainingModule
from .mixup import check_mixup
from .penalty_check import LargePenalty, describe_large_penalty
from .progress import ProgressBar
from .settings import Settings
from .trainer import is_leader, make_trainer, silence_lightning

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
    teacher: Ensemble | Sequence[Ensemble] | None = None,
    callbacks: Sequence[L.Callback] = (),
    loggers: Sequence[Any] = (),
    progress: bool = True,
    **options: Any,
) -> list[dict[str, float]]:
    """Train the ensemble in place.

    Args:
        train, validation: tensors or arrays (x, y) with a row each, a Dataset of such rows, or a loader of such batches.
        folder: checkpoints are written here.
        resume: go on from the last checkpoint in `folder`; the run then ends exactly as an uninterrupted one would.
        settings: how to train; `options` are settings by name (epochs, batch_size, optimizer, lr, schedule, warmup, patience,
            precision, devices and so on), and override them.
        preparation, augmentation: what is done to tensors in memory before the network sees them.
        criterion: the loss of one member, `(output [B, C], target [B]) -> scalar`. With mixup, or with probabilities as
            targets, it gets `[B, C]`.
        teacher: a trained ensemble, or several, whose members this one learns from, as `pluribus.distil` describes. A run that
            is resumed must get the same one again.
        callbacks, loggers: Lightning's.
        progress: show a progress bar.

    Returns:
        A row for every epoch: `epoch`, `step`, `loss` and the validation scores.

    Raises:
        TypeError: `ensemble` is no ensemble, or the data have none of these forms.
        ValueError: a setting makes no sense, or the teacher does not fit.
        FileError: `folder` holds the checkpoints of another run, or of one with another teacher.
        Diverged: the loss or the weights became NaN or infinite.

    >>> import torch, pluribus
    >>> x = torch.randn(64, 4); y = (x[:, 0] > 0).long()
    >>> ensemble = pluribus.ensemble(torch.nn.Linear(4, 2), pluribus.BatchEnsemble(members=2))
    >>> history = fit(ensemble, (x, y), (x, y), epochs=2, lr=0.1, progress=False)
    >>> [row["epoch"] for row in history], "validation_nll" in history[-1]
    ([1, 2], True)
    """
    if not isinstance(ensemble, Ensemble):
        raise TypeError(f"fit takes an ensemble, got {type(ensemble).__name__}: make one with pluribus.ensemble(net, spec)")
    settings = override_settings(settings, options) if settings else Settings(**options)
    preparation = preparation or Preparation()
    batches, rows = make_batches(train, settings, preparation, augmentation)
    judged = (
        None
        if validation is None
        else make_batches(validation, settings, preparation, rows=ensemble.executor.choose_chunk_rows(ensemble))[0]
    )
    if ensemble.batch_axis is None:
        raise ValueError("fit shuffles rows, and with batch_axis=None an input is one whole: train it in a loop of your own")
    if settings.patience and judged is None:
        raise ValueError("early stopping (patience) needs validation rows")
    if settings.epochs == "auto" and judged is None:
        raise ValueError(
            "epochs auto needs validation rows to tell when the run has converged: pass some, or a number of epochs"
        )

    if teacher is not None and criterion is not None:
        raise ValueError("a student's loss is that of its teacher's answers: leave criterion out, or teacher")
    taught_by = None if teacher is None else Teacher(teacher)
    module = TrainingModule(ensemble, settings, batches, rows, judged, preparation, criterion, taught_by)
    stop_request, stopping = StopRequest(), EarlyStopping(settings.patience) if settings.patience else None
    hooks: list[L.Callback] = [*callbacks, *([stopping] if stopping else []), *([ProgressBar()] if progress else [])]
    checkpoint = None
    if folder is not None:
        place = Path(folder)
        if not resume and is_leader() and list_checkpoints(place):  # a later resume could not distinguish the two runs
            raise FileError(f"{place} holds the checkpoints of a run: resume it with resume=True, or name another folder")
        checkpoint = find_newest_checkpoint(place, ensemble) if resume else None
        if checkpoint is not None:
            check_checkpoint(checkpoint, ensemble, settings, None if taught_by is None else taught_by.digest)
        if is_leader():
            make_folder(place)
        hooks.append(CheckpointWriter(place, settings, stop_request))

    prepare_ensemble(module, batches)
    warn_of_large_penalty(module, batches)
    if settings.compile:
        ensemble.compile()
    with (
        silence_lightning(),
        training_mode(ensemble),
        stop_request.signal_handlers() if folder is not None else contextlib.nullcontext(),
    ):
        trainer = make_trainer(settings, hooks, list(loggers))
        try:
            with explain_restoring(checkpoint, module):
                trainer.fit(module, batches, judged, ckpt_path=checkpoint)
        except Diverged as error:
            raise explain_divergence(error, folder, ensemble) from None
        if stopping and stopping.weights:
            ensemble.load_state_dict(stopping.weights)
        elif module.unsharded is not None:
            ensemble.load_state_dict(module.gather_state())
    broken = find_non_finite(ensemble, ensemble.state_dict())
    if broken is not None:  # the loss of a step is computed before its update
        raise explain_divergence(Diverged(f"{broken} became NaN or infinite in the last steps"), folder, ensemble)
    return module.history


def explain_divergence(error: Diverged, folder: str | os.PathLike[str] | None, ensemble: Ensemble) -> Diverged:
    """Return the error with the last checkpoint before it, and what may help."""
    kept = None
    if folder is not None:
        for path in list_checkpoints(Path(folder)):
            with contextlib.suppress(FileError):
                if find_diverged(path, ensemble) is None:
                    kept = path
                    break
    good = f"the last good checkpoint is {kept}" if kept else "there is no checkpoint before it"
    return Diverged(f"{error}; {good}. A lower lr, warmup or clip may help")


def make_folder(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the folder {place}: {error.strerror}") from error


def make_batches(
    given: Any, settings: Settings, preparation: Preparation, augmentation: str | None = None, rows: int = VALIDATION_ROWS
) -> tuple[Batches, int]:
    """Return batches of data in any of the forms that `fit` takes, and the number of rows.

    Args:
        augmentation: None for validation data, which are not shuffled and come in batches of `rows`.
    """
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
        # A Dataset may augment, so that its rows are read anew in every epoch. A last batch of one row has no batch statistics.
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


def override_settings(settings: Settings, options: dict[str, Any]) -> Settings:
    """Return the settings with other values for some. Raises ValueError if one is unknown or does not fit the others."""
    return type(settings)(**(settings.model_dump(exclude_unset=True) | options))


def prepare_ensemble(module: TrainingModule, batches: Batches) -> None:
    """Find where members diverge before the first step, so that every step draws the same amount of noise.

    Raises ValueError if the rows cannot be mixed, or the teacher does not fit.
    """
    ensemble, mixes = module.ensemble, module.settings.mixup > 0
    if ensemble.executor.plan is not None and not mixes and module.teacher is None:
        return  # a batch is made only if it is needed
    x = module.cast(next(iter(batches)).x)
    ensemble.executor.prepare(ensemble, x)
    if mixes:
        check_mixup(ensemble, x)
        module.classes = count_outputs(ensemble, x)
    if module.teacher is not None:
        module.teacher.check(ensemble, x, module.settings.teacher_members)


def warn_of_large_penalty(module: TrainingModule, batches: Batches) -> None:
    """Warn if the penalty of the ensemble costs more than guessing."""
    ensemble, weight = module.ensemble, module.settings.kl_weight
    if not ensemble.has_penalty or ensemble.task != "classification" or not is_leader():
        return
    classes = count_outputs(ensemble, module.cast(next(iter(batches)).x))
    caveat = describe_large_penalty(ensemble, classes, module.rows, weight)
    if caveat:
        warnings.warn(f"{ensemble.spec.name}: {caveat}", LargePenalty, stacklevel=3)


def count_outputs(ensemble: Ensemble, x: Any) -> int:
    """C of an ensemble that is asked about two of the rows `x`, `[B, …]`; 1 if it answers with one number a row."""
    with torch.random.fork_rng(devices=[]):
        shape = ensemble.predict(pytrees.take_rows(x, 2)).outputs.shape
    return shape[2 if ensemble.class_axis == 1 else -1] if len(shape) > 2 else 1
