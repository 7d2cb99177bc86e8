"""Batches as people have them: a tensor, or tuples, lists and dictionaries of tensors.

The first axis of every tensor that enters a network is the batch. Inside it that may be otherwise (a mask, a table of
positions), so there a list of flags says which tensors carry the batch.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn


def iterate_tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from iterate_tensors(value)
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            yield from iterate_tensors(value)


def map_tensors(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """`function` on every tensor; what is no tensor passes through. The other trees have the same structure."""
    if isinstance(tree, Tensor):
        return function(tree, *others)
    if isinstance(tree, dict):
        return {key: map_tensors(function, value, *(other[key] for other in others)) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [map_tensors(function, *values) for values in zip(tree, *others, strict=True)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def map_flagged_tensors(flags: Sequence[bool], function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """`function` on the tensors that are flagged, in the order of `iterate_tensors`."""
    found = sum(1 for _ in iterate_tensors(tree))
    if found != len(flags):
        raise RuntimeError(f"{len(flags)} tensors were expected, got {found}")
    each = iter(flags)
    return map_tensors(lambda leaf: function(leaf) if next(each) else leaf, tree)


def count_rows(batch: Any) -> int:
    """The batch size."""
    sizes = {leaf.shape[0] if leaf.dim() else None for leaf in iterate_tensors(batch)}
    if not sizes:
        raise ValueError(f"a batch is a tensor or holds tensors, got {type(batch).__name__}")
    if None in sizes:
        raise ValueError("a batch needs a first axis, got a tensor without axes: pass x.unsqueeze(0)")
    if len(sizes) > 1:
        raise ValueError(
            f"every tensor of a batch has the batch for its first axis, got sizes {', '.join(map(str, sizes))}: keep what does "
            "not depend on the batch inside the network"
        )
    return sizes.pop()  # type: ignore[return-value]


def take_rows(batch: Any, count: int) -> Any:
    """`count` rows, over again where there are fewer."""
    return map_tensors(lambda leaf: leaf[torch.arange(count, device=leaf.device) % leaf.shape[0]].detach(), batch)


def slice_rows(batch: Any, start: int, size: int) -> Any:
    """Up to `size` rows from `start` on."""
    return map_tensors(lambda leaf: leaf[start : start + size], batch)


def repeat_rows(leaf: Tensor, times: int) -> Tensor:
    """Every row `times` over, member-major: `[B, …]` → `[M·B, …]`."""
    return torch.cat([leaf] * times)  # keeps channels last where they are; a flattened expansion would not


def gather_rows(leaf: Tensor, index: Tensor) -> Tensor:
    """Rows by an index `[M, B]` → `[M, B, …]`, with channels last where they are."""
    index = index.to(leaf.device)
    if not is_channels_last(leaf):
        return leaf[index]
    count_rows = leaf[index.flatten()].contiguous(memory_format=torch.channels_last)
    return count_rows.unflatten(0, index.shape)


def is_channels_last(leaf: Tensor) -> bool:
    """Whether images lie in memory with their channels last, and not also in the usual order."""
    return leaf.dim() == 4 and leaf.is_contiguous(memory_format=torch.channels_last) and not leaf.is_contiguous()


def concatenate(trees: list[Any]) -> Any:
    """One batch out of several, tensor by tensor."""
    return map_tensors(lambda *tensors: torch.cat(tensors), *trees)


def call_network(net: nn.Module, batch: Any) -> Any:
    """A tuple is spread over the positional arguments of `net`, a dictionary over its named ones."""
    if isinstance(batch, dict):
        return net(**batch)
    if isinstance(batch, (tuple, list)):
        return net(*batch)
    return net(batch)
