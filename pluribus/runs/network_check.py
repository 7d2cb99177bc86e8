"""A trial of a network on two rows before anything long begins: a user's own network may do anything."""

import copy

import torch
from torch import Tensor, nn

from ..models.registry import ModelError
from .config import ConfigError


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


def describe_error(error: BaseException) -> str:
    """The kind of an error and the first line of its message."""
    lines = str(error).splitlines()
    known = isinstance(error, RuntimeError | ValueError | TypeError | IndexError) and lines
    return lines[0] if known else ": ".join([type(error).__name__, *lines[:1]])
