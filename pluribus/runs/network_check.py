"""Checks before anything long begins: a trial of the network on two rows, and the memory that the ensemble's weights take."""

import copy

import torch
from torch import Tensor, nn

from ..core.predictive import Task
from ..core.spec import Spec
from ..core.weight_memory import count_weight_bytes
from ..data.limits import Limit
from ..models.registry import ModelError
from .config import ConfigError, count_size

WEIGHTS = Limit("PLURIBUS_MAX_WEIGHTS", 4 * 2**30, "bytes")
"""Of all weights of a run's ensemble. Training takes about four times as much: gradients, and what the optimiser keeps."""


def check_network(net: nn.Module, name: str, example: Tensor, outputs: int) -> None:
    """Raise ModelError unless the network answers two rows `[2, …]` with finite numbers `[2, outputs]` that can be trained."""
    shape = "×".join(map(str, example.shape[1:]))
    if not any(parameter.requires_grad for parameter in net.parameters()):
        has = "has none that requires a gradient" if any(True for _ in net.parameters()) else "has none"
        raise ModelError(f"{name} must have parameters to train, and {has}: register them as nn.Parameter")
    try:
        with torch.enable_grad():
            answer = net.eval()(example)
    except (Exception, SystemExit) as error:  # whatever a user's own network raises is about that network
        raise ModelError(f"{name} cannot take inputs of {shape}: {describe_error(error)}") from error
    if not isinstance(answer, Tensor):
        raise ModelError(f"{name} must answer with one tensor, got a {type(answer).__name__}: return that alone")
    if list(answer.shape) != [len(example), outputs]:
        rows = "two rows" if len(example) == 2 else f"{len(example)} row"
        raise ModelError(f"{name} must answer with {outputs} numbers a row, got {list(answer.shape)} for {rows}")
    if not answer.is_floating_point():
        raise ModelError(f"{name} must answer with real numbers, got {answer.dtype}: return logits, or values of a regression")
    if not answer.requires_grad:
        raise ModelError(
            f"{name} answers with a tensor that does not depend on its parameters, so it cannot be trained: "
            "leave out detach(), torch.no_grad() and inference_mode() in its forward"
        )
    if not bool(torch.isfinite(answer).all()):
        raise ModelError(f"{name} answers with NaN or infinity for the first rows, before any training: check its forward")


def check_batch_of_one(net: nn.Module, name: str, row: Tensor) -> None:
    """Raise ConfigError if the network cannot be trained on one row `[1, …]` alone, as BatchNorm without pixels cannot."""
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            copy.deepcopy(net).train()(row)
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise ModelError(f"{name} cannot be trained on one row: {describe_error(error)}") from error
        raise ConfigError(
            f"batch_size must be at least 2 a process for {name}: its BatchNorm has no statistics of one row"
        ) from error


def check_weight_memory(net: nn.Module, spec: Spec, title: str, task: Task = "classification") -> None:
    """Raise ConfigError if the weights of the ensemble would take more bytes than the limit; nothing is built to find out.

    A network that is larger itself may be used: the ensemble is refused only if it is larger than the network, too.
    """
    base, limit = sum(p.numel() * p.element_size() for p in net.parameters()), WEIGHTS.read()
    if 4 * base * count_size(spec, "members") * count_size(spec, "copies") <= limit:  # no method has as much
        return
    needed = count_weight_bytes(net, spec, task)
    if needed is not None and needed > max(base, limit):
        raise ConfigError(
            f"{title} would have {needed / 2**30:,.1f} GiB of weights, more than the limit of {limit / 2**30:,.1f} GiB, and "
            f"training takes four times as much: choose fewer members, or set {WEIGHTS.variable}, in bytes, to allow more"
        )


def describe_error(error: BaseException) -> str:
    """The kind of an error and the first line of its message."""
    lines = str(error).splitlines()
    known = isinstance(error, RuntimeError | ValueError | TypeError | IndexError) and lines
    return lines[0] if known else ": ".join([type(error).__name__, *lines[:1]])
