"""`search_cell` finds a cell by gradient: DARTS (first order) or GDAS.

Each step first moves the architecture parameters against the gradient of the loss of validation rows (Adam), then the weights
against that of training rows (SGD). First order means that the weights count as constant in the first of the two. The learning
rate falls along a cosine from epoch to epoch, the temperature of GDAS linearly. In GDAS a step leaves the weights of operations
that were not chosen as they are: weight decay and momentum do not move them either.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..core.seeds import derive_seed, set_seed
from ..core.spec import require_count
from ..data.batches import Batch, Batches
from ..data.preparation import Preparation
from ..training.fit import make_batches
from ..training.lightning_module import Diverged
from ..training.settings import Settings
from .cells import NAS_BENCH_201, CellGraph
from .found_cell import FoundCell, SearchEpoch
from .operations import Factory, check_operations, make_operations
from .progress import search_progress
from .search_files import Optimizers, prepare_folder, restore_state, write_result, write_state
from .settings import SearchSettings
from .supernet import Gates, Supernet, mix_operations, sample_operations

WEIGHTS, CHECK, VALIDATION, STEP = 11, 12, 13, 14  # places of the seed
BETAS = (0.5, 0.999)
"""Of Adam on the architecture parameters, as in DARTS."""


def search_cell(
    train: Any,
    validation: Any,
    *,
    classes: int,
    operations: Mapping[str, Factory] | None = None,
    graph: CellGraph = NAS_BENCH_201,
    settings: SearchSettings | None = None,
    preparation: Preparation | None = None,
    augmentation: str = "none",
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    device: str | torch.device = "cpu",
    on_epoch: Callable[[SearchEpoch], None] | None = None,
    progress: bool = True,
    **options: Any,
) -> FoundCell:
    """Search for the cell with which a network classifies images best.

    Args:
        train, validation: different rows; the architecture is fitted to the second, so half of the training rows is usual.
            Tensors or arrays (x `[N, channels, H, W]`, y `[N]`), a Dataset of such rows, or a loader of such batches.
        classes: the number of classes, C.
        operations: factories by name, `factory(channels)` → a module that keeps the shape `[B, channels, H, W]`. Without them:
            `make_operations()`, the five of NAS-Bench-201 with inner ensembles and maxout.
        graph: the nodes and edges of a cell.
        settings: how to search; `options` are settings by name (algorithm, epochs, batch_size, width, cells, lr, seed and so
            on; see `SearchSettings`), and override them.
        preparation, augmentation: what is done to tensors in memory before the network sees them. Validation rows are
            augmented, too: the architecture is trained on them.
        folder: the state is written here after every epoch, and the result as `cell.json`.
        resume: go on from the state in `folder`, if there is one; the search then ends exactly as an uninterrupted one would.
        device: where to compute.
        on_epoch: is called after every epoch, when the state is written.
        progress: show a progress bar, or print a line an epoch where there is no terminal.

    Returns:
        The cell with the most probable operation on each edge, with all probabilities and the history.

    Raises:
        TypeError: the data have none of these forms.
        ValueError: a setting makes no sense, an operation changes the shape, or inputs are no images.
        FileError: `folder` holds another search, or a damaged one.
        Diverged: a loss became NaN or infinite.

    >>> x = torch.randn(32, 1, 4, 4); y = (x.mean((1, 2, 3)) > 0).long()
    >>> found = search_cell((x[:16], y[:16]), (x[16:], y[16:]), classes=2, algorithm="darts", epochs=1, batch_size=8,
    ...                     width=2, cells=1, stacks=1, progress=False)
    >>> len(found.cell.operations), len(found.candidates), len(found.history)
    (6, 7, 1)
    """
    settings = SearchSettings(**((settings.model_dump() if settings else {}) | options))
    require_count("classes", classes, 2, "a classifier distinguishes two classes")
    if resume and folder is None:
        raise ValueError("resume=True needs folder=, where the state of the search is")
    factories = make_operations() if operations is None else operations
    preparation = preparation or Preparation()
    rows, judged = (
        make_batches(
            data, Settings.model_validate({"batch_size": settings.batch_size, "seed": seed}), preparation, augmentation
        )[0]
        for data, seed in ((train, settings.seed), (validation, derive_seed(settings.seed, VALIDATION)))
    )
    with torch.random.fork_rng(devices=[]):
        set_seed(derive_seed(settings.seed, CHECK))
        check_operations(factories, settings.width)
        search = _Search(rows, judged, classes, factories, graph, settings, torch.device(device))
        place = None if folder is None else Path(folder)
        if place is not None:
            prepare_folder(place, resume)
            search.history = restore_state(place, search.about, search.supernet, search.optimizers, graph)
        with search_progress(settings.epochs, len(rows), len(search.history), progress) as report:
            for epoch in range(len(search.history), settings.epochs):
                row = search.run_epoch(epoch, lambda step: report(step, None))
                search.history.append(row)
                if place is not None:
                    write_state(place, search.about, search.supernet, search.optimizers, search.history)
                report((epoch + 1) * len(rows), row)
                if on_epoch is not None:
                    on_epoch(row)
    supernet = search.supernet
    found = FoundCell(supernet.choose_cell(), supernet.names, supernet.compute_probabilities(), tuple(search.history), settings)
    if place is not None:
        write_result(place, found)
    return found


class _Search:
    """The supernet, its optimisers, and the steps of an epoch."""

    def __init__(
        self,
        train: Batches,
        validation: Batches,
        classes: int,
        operations: Mapping[str, Factory],
        graph: CellGraph,
        settings: SearchSettings,
        device: torch.device,
    ) -> None:
        self.train, self.validation, self.classes, self.settings, self.device = train, validation, classes, settings, device
        channels = check_images(next(iter(train)), classes)
        if check_images(next(iter(validation)), classes) != channels:
            raise ValueError(f"training and validation images must have the same channels: those of training have {channels}")
        set_seed(derive_seed(settings.seed, WEIGHTS))
        sizes = {"width": settings.width, "cells": settings.cells, "stacks": settings.stacks}
        self.supernet = Supernet(operations, graph, classes=classes, channels=channels, **sizes).to(device)
        self.history: list[SearchEpoch] = []
        self.optimizers: Optimizers = (
            torch.optim.SGD(
                self.supernet.list_weights(),
                settings.lr,
                settings.momentum,
                weight_decay=settings.weight_decay,
                nesterov=settings.momentum > 0,
            ),
            torch.optim.Adam(
                [self.supernet.architecture], settings.architecture_lr, BETAS, weight_decay=settings.architecture_weight_decay
            ),
        )
        self.about = {
            **settings.model_dump(),
            "operations": list(operations),
            "nodes": graph.nodes,
            "edges": [list(edge) for edge in graph.edges],
            "classes": classes,
            "channels": channels,
            "training batches": len(train),
            "validation batches": len(validation),
        }

    def run_epoch(self, epoch: int, report_step: Callable[[int], None]) -> SearchEpoch:
        """Take the steps of an epoch, and return its row. Raises Diverged if a loss is not finite."""
        settings, steps = self.settings, len(self.train)
        weight_optimizer, architecture_optimizer = self.optimizers
        lr, temperature = compute_lr(epoch, settings), compute_temperature(epoch, settings)
        for group in weight_optimizer.param_groups:
            group["lr"] = lr
        self.train.epoch = epoch
        self.supernet.train()
        sums = torch.zeros(2, 2, dtype=torch.double)  # of training and validation: loss, accuracy
        for step, (batch, judged) in enumerate(zip(self.train, repeat_batches(self.validation, epoch, steps), strict=False)):
            set_seed(derive_seed(settings.seed, STEP, epoch, step, 0))
            loss, accuracy = self.compute_loss(judged, self.draw_gates(temperature))
            sums[1] += torch.stack([loss.detach(), accuracy]).cpu()
            self.check_loss(sums, epoch, step)
            # Only this gradient is computed, not those of the weights.
            (self.supernet.architecture.grad,) = torch.autograd.grad(loss, [self.supernet.architecture])
            architecture_optimizer.step()

            set_seed(derive_seed(settings.seed, STEP, epoch, step, 1))
            loss, accuracy = self.compute_loss(batch, self.draw_gates(temperature).detach())
            sums[0] += torch.stack([loss.detach(), accuracy]).cpu()
            self.check_loss(sums, epoch, step)
            weight_optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.supernet.list_weights(), settings.clip)
            weight_optimizer.step()
            report_step(epoch * steps + step + 1)
        (train_loss, train_accuracy), (validation_loss, validation_accuracy) = (sums / steps).tolist()
        return SearchEpoch(
            epoch=epoch + 1,
            lr=lr,
            temperature=temperature,
            loss=train_loss,
            accuracy=train_accuracy,
            validation_loss=validation_loss,
            validation_accuracy=validation_accuracy,
            cell=str(self.supernet.choose_cell()),
            probabilities=self.supernet.compute_probabilities(),
        )

    def draw_gates(self, temperature: float | None) -> Gates:
        """Return the gates of one pass. Noise is drawn from torch's generator, which is seeded for the step."""
        if temperature is None:
            return mix_operations(self.supernet.architecture)
        return sample_operations(self.supernet.architecture, temperature)

    def compute_loss(self, batch: Batch, gates: Gates) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy and the accuracy of a batch."""
        check_images(batch, self.classes)
        x = batch.x.to(self.device, self.supernet.architecture.dtype)
        y = batch.y.to(self.device)
        logits = self.supernet(x, gates)
        return F.cross_entropy(logits, y), (logits.detach().argmax(1) == y).to(logits.dtype).mean()

    def check_loss(self, sums: Tensor, epoch: int, step: int) -> None:
        if not bool(sums.isfinite().all()):
            raise Diverged(
                f"the loss became NaN or infinite in step {step + 1} of epoch {epoch + 1}: a lower lr or clip may help. The "
                "state in the folder, if there is one, is that of the epoch before"
            )


def repeat_batches(batches: Batches, epoch: int, steps: int) -> Iterator[Batch]:
    """Yield batches for `steps` steps: in a new order whenever all have been taken, as a function of the epoch alone."""
    rounds = math.ceil(steps / len(batches))
    for number in range(rounds):
        batches.epoch = epoch * rounds + number
        yield from batches


def compute_lr(epoch: int, settings: SearchSettings) -> float:
    """Return the learning rate of the weights in an epoch, counted from 0.

    >>> [round(compute_lr(epoch, SearchSettings(epochs=2, lr=0.1, lr_end=0.0)), 3) for epoch in range(2)]
    [0.1, 0.05]
    """
    height = (1 + math.cos(math.pi * epoch / settings.epochs)) / 2
    return settings.lr_end + (settings.lr - settings.lr_end) * height


def compute_temperature(epoch: int, settings: SearchSettings) -> float | None:
    """Return the temperature of GDAS in an epoch, counted from 0; None for DARTS.

    >>> [compute_temperature(epoch, SearchSettings(epochs=3, temperature=10, temperature_end=2)) for epoch in range(3)]
    [10.0, 6.0, 2.0]
    """
    if settings.algorithm == "darts":
        return None
    share = epoch / max(settings.epochs - 1, 1)
    return settings.temperature - (settings.temperature - settings.temperature_end) * share


def check_images(batch: Batch, classes: int) -> int:
    """Return the number of channels of a batch of images `[B, channels, H, W]` with labels `[B]`.

    Raises:
        ValueError: it is something else.
    """
    x, y = batch.x, batch.y
    if not isinstance(x, Tensor) or x.dim() != 4:
        got = list(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"inputs must be images [B, channels, H, W], got {got}")
    if not isinstance(y, Tensor) or y.is_floating_point() or y.dim() != 1:
        raise ValueError("targets must be labels [B], whole numbers: a search is for classification")
    if not 0 <= int(y.min()) <= int(y.max()) < classes:
        raise ValueError(
            f"labels must be from 0 to {classes - 1}, got {int(y.min())} to {int(y.max())}: pass the right classes="
        )
    return x.shape[1]
