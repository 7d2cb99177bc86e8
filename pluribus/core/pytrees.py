"""Batches as people have them: a tensor, or tuples, lists and dictionaries of tensors.

The first axis of every tensor that enters a network is the batch. Inside the network a tensor may have another first axis (a
mask, a table of positions), so there a list of flags says which tensors carry the batch. The structure itself is handled by
torch's pytree; a lone tensor, the usual case, skips it.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import BatchSampler


class Views(NamedTuple):
    """A batch dealt to the members: every tensor is `[M, B, …]`; of a deep ensemble, a tuple with the views of each part."""

    batch: Any

    def select(self, member: int) -> Any:
        """The rows of one member, `[B, …]`."""
        return map_tensors(operator.itemgetter(member), self.batch)


def iterate_tensors(tree: Any) -> Iterator[Tensor]:
    """Every tensor in the structure, in order."""
    if isinstance(tree, Tensor):
        yield tree
    else:
        yield from (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))


def map_tensors(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """`function` applied to every tensor, and to those at the same place in the `others`. Other leaves stay as they are."""
    if isinstance(tree, Tensor):
        return function(tree, *others)
    return tree_map(lambda leaf, *rest: function(leaf, *rest) if isinstance(leaf, Tensor) else leaf, tree, *others)


def map_flagged_tensors(flags: Sequence[bool], function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """`function` applied to the tensors whose flag is true; the flags are in the order of `iterate_tensors`."""
    found = sum(1 for _ in iterate_tensors(tree))
    if found != len(flags):
        raise RuntimeError(f"{len(flags)} tensors were expected, got {found}")
    each = iter(flags)
    return map_tensors(lambda leaf: function(leaf) if next(each) else leaf, tree)


def count_rows(batch: Any) -> int:
    """The batch size, B."""
    if isinstance(batch, Tensor) and batch.dim():
        return batch.shape[0]
    sizes = [leaf.shape[0] if leaf.dim() else None for leaf in iterate_tensors(batch)]  # no set: a traced size has no hash
    if not sizes:
        raise ValueError(f"a batch is a tensor or holds tensors, got {type(batch).__name__}")
    if None in sizes:
        raise ValueError("a batch needs a first axis, got a tensor without axes: pass x.unsqueeze(0)")
    if any(size != sizes[0] for size in sizes[1:]):
        found = ", ".join(dict.fromkeys(map(str, sizes)))
        raise ValueError(
            f"every tensor of a batch has the batch for its first axis, got sizes {found}: keep what does "
            "not depend on the batch inside the network; for an input that is one whole, as a graph is, pass batch_axis=None"
        )
    return sizes[0]  # type: ignore[return-value]


def take_rows(batch: Any, count: int) -> Any:
    """A copy of the first `count` rows; where there are fewer, they are repeated."""
    return map_tensors(lambda leaf: leaf[torch.arange(count, device=leaf.device) % leaf.shape[0]].detach(), batch)


def slice_rows(batch: Any, start: int, size: int) -> Any:
    """Up to `size` rows from `start` on."""
    return map_tensors(lambda leaf: leaf[start : start + size], batch)


def copy_tensors(batch: Any) -> Any:
    """The same numbers in tensors of their own; gradients flow back through the copy."""
    return map_tensors(Tensor.clone, batch)


def repeat_rows(leaf: Tensor, times: int) -> Tensor:
    """All rows `times` over, member-major: `[B, …]` → `[M·B, …]`."""
    return torch.cat([leaf] * times)  # keeps channels last where they are; a flattened expansion would not


def join_members(x: Tensor) -> Tensor:
    """`[M, B, …]` → `[M·B, …]`. Of one member and one row, flattening would lose that channels are last in memory."""
    return x.squeeze(0) if x.shape[0] == 1 else x.flatten(0, 1)


def split_members(x: Tensor, count: int) -> Tensor:
    """`[M·B, …]` → `[M, B, …]`."""
    return x.unsqueeze(0) if count == 1 else x.reshape(count, x.shape[0] // count, *x.shape[1:])


def gather_rows(leaf: Tensor, index: Tensor) -> Tensor:
    """Rows by an index `[M, B]` → `[M, B, …]`, with channels last where they are."""
    index = index.to(leaf.device)
    if not is_channels_last(leaf):
        return leaf[index]
    rows = leaf[index.flatten()].contiguous(memory_format=torch.channels_last)
    return rows.unflatten(0, index.shape)


def select_dealt_rows(leaf: Tensor, rows: Tensor) -> Tensor:
    """Some rows of every member: `[M, B, …]` by an index `[b]` → `[M, b, …]`, with channels last where they are."""
    taken = leaf.index_select(1, rows.to(leaf.device))
    if not is_channels_last(leaf.flatten(0, 1)):
        return taken
    return taken.flatten(0, 1).contiguous(memory_format=torch.channels_last).unflatten(0, taken.shape[:2])


def is_channels_last(leaf: Tensor) -> bool:
    """Whether images lie in memory with their channels last, and not also in the usual order."""
    return leaf.dim() == 4 and leaf.is_contiguous(memory_format=torch.channels_last) and not leaf.is_contiguous()


def concatenate(batches: list[Any]) -> Any:
    """One batch out of several, tensor by tensor."""
    return map_tensors(lambda *tensors: torch.cat(tensors), *batches)


def call_network(net: nn.Module, batch: Any) -> Any:
    """A tuple is spread over the positional arguments of `net`, a dictionary over its named ones."""
    if isinstance(batch, Tensor):
        return net(batch)
    if isinstance(batch, dict):
        return net(**batch)
    if isinstance(batch, (tuple, list)):
        return net(*batch)
    return net(batch)


def is_loader(x: Any) -> bool:
    """Whether x yields batches, as a DataLoader does, and is not a batch itself."""
    return not isinstance(x, (Tensor, tuple, list, dict)) and isinstance(x, Iterable)


def count_all_rows(x: Any) -> int:
    """The rows of a batch, or those that a DataLoader will yield; 0 if that is not known."""
    if not is_loader(x):
        return count_rows(x)
    batches = getattr(x, "batch_sampler", None)
    if type(batches) is not BatchSampler:
        return 0
    try:
        rows = len(batches.sampler)  # type: ignore[arg-type]
    except TypeError:  # an endless sampler
        return 0
    return rows - rows % batches.batch_size if batches.drop_last else rows


def leave_targets_out(batch: Any) -> Any:
    """The inputs of a loader's batch: all of a tuple but its last element, the targets; anything else as it is."""
    if not isinstance(batch, (tuple, list)):
        return batch
    inputs = batch[:-1] if len(batch) > 1 else batch
    return inputs[0] if len(inputs) == 1 else tuple(inputs)
