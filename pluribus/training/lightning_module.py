"""The LightningModule that trains and validates an ensemble. It knows no method."""

import contextlib
import copy
import functools
import itertools
import math
from typing import Any

import lightning as L
import torch
from lightning.pytorch.utilities.types import STEP_OUTPUT
from torch import Tensor

from ..core import pytrees
from ..core.ensemble import Ensemble
from ..core.errors import DataError, FileError, PluribusError
from ..core.losses import Criterion, compute_loss, compute_probabilities, count_losses
from ..core.member_targets import MemberTargets
from ..core.pytrees import Views
from ..core.seeds import derive_seed, set_seed
from ..core.shares import Share
from ..data.batches import Batch, Batches
from ..data.preparation import Preparation
from ..metrics.streaming import Tally
from . import optimizers
from .distillation import Teacher, make_distillation_criterion
from .mixup import mix_rows
from .phases import Phases, plan_phases
from .settings import Settings
from .whole_batch import WholeBatch

BINDING = ("seed", "batch_size", "optimizer", "momentum", "beta1", "nesterov", "bias_lr", "bias_decay", "precision")
"""Settings that a resumed run must keep. Others (epochs, lr, schedule) may be changed."""
STEP, VALIDATION, MIXUP, TEACHER = 3, 4, 7, 8  # what a seed is derived for; data and runs use 1, 2, 5 and 6


class Diverged(PluribusError):
    """The loss became NaN or infinite."""


class TrainingModule(L.LightningModule):
    """What Lightning runs: the steps of training and validation, the optimiser, and what a checkpoint holds.

    Args:
        rows: number of training rows; the penalty is divided by it.
        preparation: turns standardised outputs of a regression back into the units of its targets.
        criterion: the loss of one member; by default the loss of the task, with the label smoothing of the settings.
        teacher: what the ensemble learns from besides the targets.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        settings: Settings,
        train: Batches,
        rows: int,
        validation: Batches | None = None,
        preparation: Preparation | None = None,
        criterion: Criterion | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        super().__init__()
        self.ensemble = ensemble
        self.settings, self.train_batches, self.validation_batches, self.rows = settings, train, validation, rows
        self.preparation = preparation or Preparation()
        self.teacher = teacher
        self.criterion = criterion or make_criterion(ensemble, settings, teacher is not None)
        self.classes = 0
        """C, which mixup needs to know."""
        self.epoch_loss = [0.0, 0]  # sum of the losses in this epoch so far, and their number
        self.last_loss = float("nan")
        self.parts = count_losses(ensemble)
        """Losses are reported for one member, so that methods can be compared."""
        self.pending: list[tuple[int, Tensor]] = []
        self.scores: dict[str, float] = {}
        self.history: list[dict[str, float]] = []
        self.planned: tuple[int, Phases | None] | None = None
        self.tally: Tally | None = None
        self.validated = 0
        """Validation rows in the batches of this epoch so far, summed over all processes."""
        self.unsharded: tuple[Ensemble] | None = None
        self.is_computing = self.has_stepped = False
        """Whether the network is at work, and whether a step was done: an error before may be that of a checkpoint."""
        self.whole_batch: WholeBatch | None = None

    # --- training -------------------------------------------------------------------------------------------------

    def setup(self, stage: str) -> None:
        for batches in (self.train_batches, self.validation_batches):
            if batches is not None:
                batches.rank, batches.world = self.global_rank, self.trainer.world_size
        if self.trainer.world_size > 1:
            # Rows are dealt and mixed over the whole batch, so that every process needs all of them.
            self.train_batches.whole = deals_rows(self.ensemble) or self.settings.mixup > 0
            # In compiled code a process has batch statistics of its own, for which it needs two rows.
            each = 2 if self.settings.compile else 1
            self.train_batches.least = count_least_rows(self.ensemble, each * self.trainer.world_size)

    def configure_model(self) -> None:
        shard = getattr(self.trainer.strategy, "shard", None)
        if shard is not None and self.unsharded is None:
            self.unsharded = (self.ensemble,)  # the tuple hides it from Lightning, which would register it as a submodule
            self.ensemble = shard(copy.deepcopy(self.ensemble))

    def gather_state(self) -> dict[str, Tensor]:
        """Return the state of the ensemble with whole tensors. All processes must call this together."""
        if self.unsharded is None:
            return self.ensemble.state_dict()
        from .sharding import gather_state

        return gather_state(self.ensemble)

    def cast(self, x: Any) -> Any:
        """Convert floating-point inputs to the dtype of the weights; NumPy's default is double."""
        dtype = next((p.dtype for p in self.ensemble.parameters() if p.is_floating_point()), torch.float)
        return pytrees.map_tensors(lambda leaf: leaf.to(dtype) if leaf.is_floating_point() else leaf, x)

    def on_train_epoch_start(self) -> None:
        self.train_batches.epoch = self.current_epoch

    def training_step(self, batch: Batch, batch_idx: int) -> STEP_OUTPUT:
        step, epoch = self.global_step, len(self.train_batches)
        self.is_computing = True
        x, y, share, is_own = self.prepare_batch(batch, step)
        set_seed(derive_seed(self.settings.seed, STEP, step, 0))  # the same in all processes
        x = self.ensemble.executor.lay_out(x)
        views, targets = y.deal(self.ensemble, x) if isinstance(y, MemberTargets) else self.ensemble.deal(x, y)
        if not is_own:
            views, targets, share = take_dealt_rows(views, targets, share)
        temper = optimizers.compute_penalty_factor(step, epoch, self.settings)
        loss = self.ensemble.objective(self.answer(views, share), targets, self.criterion, self.rows, temper)
        loss = loss * share.weight if share.weight != 1.0 else loss
        self.pending.append((step, loss.detach()))
        if loss.device.type == "cpu" or len(self.pending) == 20:  # reading a loss waits for the accelerator
            self.read_losses()
        self.is_computing = False
        return loss

    def prepare_batch(self, batch: Batch, step: int) -> tuple[Any, Tensor | MemberTargets, Share, bool]:
        """Mix a batch, and ask the teacher about it → inputs, targets, the share, and whether the rows are this process's own.

        They are all rows of the batch where a method deals over the whole batch.
        """
        x, y, share = self.cast(batch.x), batch.y, batch.share
        is_own = not self.train_batches.whole
        if self.settings.mixup:
            seed = derive_seed(self.settings.seed, MIXUP, step)  # the same in all processes
            x, y = mix_rows(x, compute_probabilities(y, self.classes, self.ensemble.class_axis), self.settings.mixup, seed)
            if not is_own and not deals_rows(self.ensemble):
                x, y = pytrees.map_tensors(share.take, x), share.take(y)
                is_own = True
        if self.teacher is None:
            return x, y, share, is_own
        self.teacher.move(y.device)
        set_seed(derive_seed(self.settings.seed, TEACHER, step))
        with WholeBatch(share).forward() if is_own and share.world > 1 else contextlib.nullcontext():
            settings = self.settings
            made = self.teacher.make_targets(self.ensemble, x, y, settings.teacher_temperature, settings.teacher_members)
            return x, made, share, is_own

    def on_train_batch_end(self, *_: Any) -> None:
        self.has_stepped = True

    def answer(self, x: Any, share: Share) -> Tensor:
        """Return the ensemble's answer to a share of a batch: that part of its answer to the whole batch, unless compiled."""
        if share.world == 1:
            return self.ensemble(x)
        if self.settings.compile:  # torch would not compile where its draws are watched: each process has noise of its own
            set_seed(derive_seed(torch.initial_seed(), self.global_rank))
            return self.ensemble(x)
        self.whole_batch = WholeBatch(share)
        with self.whole_batch.forward():
            return self.ensemble(x)

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        with contextlib.nullcontext() if self.whole_batch is None else self.whole_batch.backward():
            super().backward(loss, *args, **kwargs)

    def read_losses(self) -> None:
        """Add the pending losses to the epoch's sum. Raises `Diverged` if one of them is NaN or infinite."""
        pending, self.pending = self.pending, []
        values = torch.stack([loss for _, loss in pending]).tolist() if pending else []
        for (step, _), value in zip(pending, values, strict=True):
            if not math.isfinite(value):
                raise Diverged(f"the loss became {value} at step {step} (epoch {step // len(self.train_batches) + 1})")
            self.last_loss = value / self.parts
            self.epoch_loss[0] += value / self.parts
            self.epoch_loss[1] += 1

    def configure_optimizers(self) -> Any:
        groups = optimizers.separate_parameters(self.ensemble, self.ensemble.param_groups(), self.settings)
        optimizer = optimizers.make_optimizer(groups, self.settings)
        self.ensemble.check_optimizer(optimizer, clips_gradient=self.settings.clip is not None)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, functools.partial(TrainingModule.compute_rate_factor, self))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def compute_rate_factor(self, step: int) -> float:
        """Return what the learning rate is multiplied by at a step, as far as the length of the run is known.

        Lightning asks for the factor of an epoch's first step before the validation that may begin the fall. That is no matter:
        the fall begins with the full rate.
        """
        epoch, phases = len(self.train_batches), self.phases
        if phases is None:
            return optimizers.compute_rate_factor(step, epoch * self.settings.most_epochs, epoch, self.settings)
        return optimizers.compute_rate_factor(step, epoch * phases.epochs, epoch, self.settings, phases.decay_from)

    def on_train_start(self) -> None:
        self.trainer.fit_loop.max_epochs = self.epochs

    @property
    def phases(self) -> Phases | None:
        """The phases of the run after the epochs so far; None if its schedule has none."""
        if self.planned is None or self.planned[0] != len(self.history):
            self.planned = len(self.history), plan_phases(self.history, self.settings)
        return self.planned[1]

    @property
    def epochs(self) -> int:
        """The number of epochs of the run: the most that it can be, until it is known."""
        return self.phases.epochs if self.phases else self.settings.most_epochs

    # --- validation -----------------------------------------------------------------------------------------------

    def on_validation_epoch_start(self) -> None:
        has_noise, has_quantiles = self.ensemble.noise is not None, bool(self.ensemble.quantile_levels)
        self.tally = Tally(self.ensemble.task, self.device, has_noise=has_noise, has_quantiles=has_quantiles)
        self.validated = 0

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        assert self.tally is not None
        set_seed(derive_seed(self.settings.seed, VALIDATION, self.current_epoch, batch_idx, 0))
        x, y, share = batch
        outputs = self.answer(self.ensemble.executor.lay_out(self.cast(x)), share)
        p = self.ensemble.interpret(outputs)
        if self.ensemble.task == "regression":
            mean, std = self.preparation.target
            p, y = p.rescale(std, mean), self.preparation.unscale_targets(y)
        self.tally.add(p, y, self.validated + share.positions)
        self.validated += share.rows

    def on_validation_epoch_end(self) -> None:
        assert self.tally is not None
        if self.trainer.world_size > 1:
            self.tally.sums = self.sum_over_processes(self.tally.sums)
        self.scores = self.tally.scores()
        if self.trainer.world_size > 1:  # what is decided by the scores must be the same in all processes, to the last bit
            self.scores = self.trainer.strategy.broadcast(self.scores)
        self.log_dict(
            {f"validation_{name}": value for name, value in self.scores.items()}, rank_zero_only=False, sync_dist=False
        )

    def on_train_epoch_end(self) -> None:
        self.read_losses()
        total = torch.tensor(self.epoch_loss, dtype=torch.double, device=self.device)
        if self.trainer.world_size > 1:
            total = self.sum_over_processes(total)
        row = {"epoch": self.current_epoch + 1, "step": self.global_step, "loss": (total[0] / total[1]).item()}
        row |= {f"validation_{name}": value for name, value in self.scores.items()}
        self.history.append(row)
        self.log("loss", row["loss"])
        self.epoch_loss = [0.0, 0]
        self.trainer.fit_loop.max_epochs = self.epochs

    def sum_over_processes(self, values: Tensor) -> Tensor:
        return self.trainer.strategy.reduce(values.clone(), reduce_op="sum")

    # --- checkpoints ------------------------------------------------------------------------------------------

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.read_losses()
        total = torch.tensor(self.epoch_loss, dtype=torch.double, device=self.device)
        if self.trainer.world_size > 1:  # there is one file: each process will resume with an equal part
            total = self.sum_over_processes(total) / self.trainer.world_size
        checkpoint["pluribus"] = {
            "epoch_loss": total.tolist(),
            "history": self.history,
            "scores": self.scores,
            "spec": self.ensemble.spec.to_json(),
            "settings": self.settings.model_dump(mode="json", include=set(BINDING)),
            "steps": len(self.train_batches),
        } | ({} if self.teacher is None else {"teacher": self.teacher.digest})

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        kept = checkpoint["pluribus"]
        self.epoch_loss, self.history, self.scores = list(kept["epoch_loss"]), list(kept["history"]), dict(kept["scores"])
        if kept["steps"] != len(self.train_batches):
            raise FileError(
                f"an epoch had {kept['steps']} steps when the run was saved, and has {len(self.train_batches)} now: resume "
                "with the same rows, and as many processes as before"
            )
        epoch, done = divmod(checkpoint["global_step"], len(self.train_batches))
        self.train_batches.epoch, self.train_batches.start = epoch, done


def make_criterion(ensemble: Ensemble, settings: Settings, has_teacher: bool) -> Criterion | None:
    """Return the loss that the settings describe, or None where the default loss of the task does."""
    if has_teacher:
        return make_distillation_criterion(ensemble.task, settings, ensemble.class_axis)
    if settings.label_smoothing == 0 or ensemble.task == "regression":
        return None
    return lambda output, target: compute_loss(ensemble.task, output, target, settings.label_smoothing, ensemble.class_axis)


def deals_rows(ensemble: Ensemble) -> bool:
    """Whether the members see rows of their own in training, mixed from the whole batch."""
    two = torch.arange(2)
    return isinstance(ensemble.deal(two, two)[0], Views)


def count_least_rows(ensemble: Ensemble, processes: int) -> int:
    """Return how many rows a batch must have for every process to get a row of what is dealt to a member."""
    dealt = (ensemble.deal(rows, rows)[1] for rows in map(torch.arange, itertools.count(processes)))
    return processes + next(more for more, targets in enumerate(dealt) if targets.shape[1] >= processes)


def take_dealt_rows(views: Any, targets: Tensor, share: Share) -> tuple[Any, Tensor, Share]:
    """Return this process's part of dealt views and targets, `[M, B, …]`, and which share of them it is."""
    count, share = share.rows, share._replace(rows=targets.shape[1])
    if share.rows < share.world:
        raise DataError(
            f"a batch of {count} rows gives {share.rows} to each member, which {share.world} processes cannot share: use "
            "larger batches"
        )
    rows = torch.arange(share.rows)[share.rank :: share.world]
    own = pytrees.map_tensors(lambda leaf: pytrees.select_dealt_rows(leaf, rows), views)
    return own, share.take(targets, axis=1), share
