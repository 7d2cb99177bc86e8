"""Batches as people have them: a tensor, or tuples, lists and dictionaries of tensors.

The first axis of every tensor is the batch.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn


def leaves(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            yield from leaves(value)


def apply(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """`function` on every tensor; what is no tensor passes through. The other trees have the same structure."""
    if isinstance(tree, Tensor):
        return function(tree, *others)
    if isinstance(tree, dict):
        return {key: apply(function, value, *(other[key] for other in others)) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [apply(function, *values) for values in zip(tree, *others, strict=True)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def rows(tree: Any) -> int:
    """The batch size: the first axis of the first tensor."""
    for leaf in leaves(tree):
        if leaf.dim() == 0:
            raise ValueError("a batch needs a first axis, got a tensor without axes: pass x.unsqueeze(0)")
        return leaf.shape[0]
    raise ValueError(f"a batch is a tensor or holds tensors, got {type(tree).__name__}")


def batched(function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """`function` on those tensors that carry the batch; others, a position table say, pass through."""
    size = rows(tree)
    return apply(lambda leaf: function(leaf) if leaf.dim() and leaf.shape[0] == size else leaf, tree)


def repeated(tree: Any, times: int) -> Any:
    """Every row `times` over, member-major: `[B, …]` → `[M·B, …]`."""
    return batched(lambda leaf: leaf.expand(times, *leaf.shape).flatten(0, 1), tree)


def concatenated(trees: list[Any]) -> Any:
    """One batch out of several, tensor by tensor."""
    return apply(lambda *tensors: torch.cat(tensors), *trees)


def chunk(tree: Any, index: int, count: int) -> Any:
    """Part `index` of `count` equal parts of a batch."""
    return batched(lambda leaf: leaf.unflatten(0, (count, -1))[index], tree)


def part(tree: Any, start: int, size: int) -> Any:
    """Up to `size` rows from `start` on."""
    return batched(lambda leaf: leaf[start : start + size], tree)


def call(net: nn.Module, batch: Any) -> Any:
    """A tuple is spread over the positional arguments of `net`, a dictionary over its named ones."""
    if isinstance(batch, dict):
        return net(**batch)
    if isinstance(batch, (tuple, list)):
        return net(*batch)
    return net(batch)
