"""Which output of a network is meant, where it returns several."""

from typing import Any

from torch import Tensor, nn

from .errors import ConversionError


def select_output(answer: Any, output: int | str | None) -> Tensor:
    """The output that is meant, by index or key. A lone tensor is always meant: some networks return more only in training.

    Raises `ConversionError` if there are several and none, or an unknown one, is named.

    >>> import torch
    >>> select_output({"logits": torch.zeros(2, 3), "loss": torch.zeros(())}, "logits").shape
    torch.Size([2, 3])
    """
    if isinstance(answer, Tensor):
        return answer
    if isinstance(answer, dict):
        names: list[Any] = list(answer)
    else:
        fields = getattr(answer, "_fields", None) or getattr(answer, "__dataclass_fields__", {})
        names = [*fields, *(range(len(answer)) if hasattr(answer, "__len__") else ())]
    if output is None:
        raise ConversionError(
            f"the network returns a {type(answer).__name__} with {', '.join(map(repr, names))}: say which output is meant, "
            f"as in pluribus.ensemble(net, spec, output={names[0] if names else 0!r})"
        )
    if output not in names:
        raise ConversionError(f"the network returns no output {output!r}; it has {', '.join(map(repr, names))}")
    return getattr(answer, output) if isinstance(output, str) and not isinstance(answer, dict) else answer[output]


class PickOutput:
    """A forward hook that leaves of a network's answer the output that is meant. The network keeps its class and its names."""

    def __init__(self, output: int | str | None) -> None:
        self.output = output

    def __call__(self, module: nn.Module, args: Any, answer: Any) -> Tensor:
        return select_output(answer, self.output)
