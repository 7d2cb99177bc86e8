"""Which layers of a network a method cannot or need not convert, and why, so that none is left alone without a word."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from . import pytrees
from .affine import AFFINE, NORMS
from .branching import keep_random_state
from .modes import evaluation_mode, restore_modes
from .output import select_output

WHY = {
    nn.MultiheadAttention: "nn.MultiheadAttention reads its projections' weights itself, and this method leaves it whole",
    nn.RNNBase: "a recurrent layer reads its weights itself, and this method leaves it whole",
    nn.Embedding: "an embedding, which all members share",
    nn.EmbeddingBag: "an embedding, which all members share",
}


def find_unused(trial: nn.Module, example: Any, output: int | str) -> frozenset[str]:
    """The names of modules of which no parameter has a part in this output of the network; none where that cannot be found.

    `trial` is a copy, whose parameters may be changed.
    """
    named = [(name, module, list(module.parameters(recurse=False))) for name, module in trial.named_modules()]
    for parameter in trial.parameters():
        parameter.requires_grad_(parameter.is_floating_point())
    try:
        with evaluation_mode(trial), keep_random_state(trial), torch.enable_grad():
            answer = select_output(pytrees.call_network(trial, pytrees.copy_tensors(example)), output)
            own = [parameter for parameter in trial.parameters() if parameter.requires_grad]
            gradients = torch.autograd.grad(answer.sum(), own, allow_unused=True)
    except RuntimeError:  # no gradient reaches the output, or the network changes its weights in place
        return frozenset()
    reached = {id(parameter) for parameter, gradient in zip(own, gradients, strict=True) if gradient is not None}
    return frozenset(name for name, _, parts in named if parts and not any(id(part) in reached for part in parts))


def find_other_weights(modules: Mapping[str, nn.Module], types: tuple[type[nn.Module], ...]) -> dict[str, str]:
    """Modules with weights of their own that no method could take for a layer, each with the reason why it is left alone.

    What is of these `types`, linear, a convolution or a normalisation layer is none of them: that is the method's own choice.
    """
    found = {}
    for name, module in modules.items():
        own = [parameter for parameter, _ in module.named_parameters(recurse=False)]
        if not own or isinstance(module, (*types, *AFFINE, *NORMS)) or hasattr(module, "executor"):
            continue
        why = next((why for kind, why in WHY.items() if isinstance(module, kind)), "")
        kind = type(module).__name__
        found[name] = why or f"{kind} computes with weights of its own ({', '.join(own)}), which all members share"
    return found


def measure_share(modules: Mapping[str, nn.Module], left: Mapping[str, str]) -> float:
    """The share of a network's weights that layers left alone have; what embeddings hold does not count."""
    inner = tuple(f"{name}." for name, module in modules.items() if hasattr(module, "executor"))  # ensembles of their own
    modules = {name: module for name, module in modules.items() if not inner or not name.startswith(inner)}
    embedded = {id(p) for m in modules.values() if isinstance(m, (nn.Embedding, nn.EmbeddingBag)) for p in m.parameters()}
    sizes = {id(p): p.numel() for m in modules.values() for p in m.parameters(recurse=False) if id(p) not in embedded}
    kept: set[int] = set()
    for name in left.keys() & modules.keys():
        whole = type(modules[name]).__module__.startswith("torch.")  # attention's weights are in modules inside it
        kept |= {id(parameter) for parameter in modules[name].parameters(recurse=whole)}
    return sum(sizes.get(key, 0) for key in kept) / max(sum(sizes.values()), 1)


def computes_as_linear(layer: nn.Linear) -> bool:
    """Whether a subclass of nn.Linear with a forward of its own gives the numbers of nn.Linear, in training and in evaluation.

    Libraries have such subclasses for the sake of compilers and mixed precision. It is tried on a few inputs, and only of a
    layer that holds nothing but its weight and its bias.

    >>> class Named(nn.Linear):
    ...     def forward(self, x):
    ...         return super().forward(x)
    >>> computes_as_linear(Named(3, 2))
    True
    """
    held = [*dict(layer.named_parameters()), *dict(layer.named_buffers()), *dict(layer.named_children())]
    if not set(held) <= {"weight", "bias"} or not layer.weight.is_floating_point():
        return False
    if layer.weight.is_meta:  # where only shapes are counted
        return True
    generator = torch.Generator().manual_seed(0)
    with restore_modes(layer), torch.no_grad(), keep_random_state(layer):
        for shape, scale in (((3,), 1.0), ((2, 3), 100.0)):
            x = (scale * torch.randn(*shape, layer.in_features, generator=generator)).to(layer.weight)
            expected = F.linear(x, layer.weight, layer.bias)
            for mode in (True, False):
                try:
                    found = layer.train(mode)(x)
                except Exception:
                    return False
                if not isinstance(found, torch.Tensor) or not torch.equal(found, expected):
                    return False
    return True
