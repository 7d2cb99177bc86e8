"""Lightning's Trainer for our settings."""

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.strategies import DDPStrategy, Strategy

from .checkpoint_files import SafetensorsIO
from .settings import Settings


def make_trainer(settings: Settings, hooks: list[L.Callback], loggers: list[Any]) -> L.Trainer:
    """Return the Trainer for these settings. Checkpoints, progress and batches are ours: its own are switched off."""
    several = settings.devices * settings.nodes > 1 or "TORCHELASTIC_RUN_ID" in os.environ
    return L.Trainer(
        accelerator=settings.accelerator,
        devices=settings.devices,
        num_nodes=settings.nodes,
        strategy=make_strategy(settings) if several else "auto",
        plugins=[] if several else [SafetensorsIO()],
        precision=settings.precision,
        max_epochs=settings.most_epochs,
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
    """Return the strategy for several processes."""
    if settings.strategy == "ddp":
        return DDPStrategy(checkpoint_io=SafetensorsIO())
    from .sharding import ShardedStrategy

    return ShardedStrategy(settings.devices * settings.nodes)


def is_leader() -> bool:
    """Whether this process is the first of all. Before the process group exists, the environment tells."""
    if torch.distributed.is_initialized():
        return torch.distributed.get_rank() == 0
    return all(int(os.environ.get(name, 0)) == 0 for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))


@contextlib.contextmanager
def silence_lightning() -> Iterator[None]:
    """Switch Lightning's log messages and warnings off inside the block: its advice is for authors of loops."""
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
