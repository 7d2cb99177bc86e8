"""Which network an estimator trains."""

from collections.abc import Callable, Sequence

from torch import nn

from ..models.registry import build, choose_default_model
from ..models.small import mlp
from ..runs.choices import parse_choice

Network = str | Callable[[int, int], nn.Module] | None
"""A name with options, or a function of the numbers of inputs and outputs; None leaves the choice to `hidden` and the data."""


def build_network(
    network: Network, hidden: Sequence[int] | None, inputs: int, outputs: int, column_widths: tuple[int, ...] | None = None
) -> nn.Module:
    """Build a network for encoded rows, `[B, inputs]` → `[B, outputs]`.

    Args: the `network`, a function or the name of one of pluribus' networks with options; without it, an MLP with the `hidden`
    layers; without either, what the command line begins with for a table of this width. `column_widths` are those of
    `Columns.column_widths`: embeddings need them.

    Raises: ValueError if there is no such network, or if it does not fit.

    >>> build_network(None, (8,), inputs=4, outputs=1)
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Linear(in_features=4, out_features=8, bias=True)
      (2): ReLU()
      (3): Linear(in_features=8, out_features=1, bias=True)
    )
    >>> build_network("tabular:width=16,depth=1", None, inputs=4, outputs=1)[1].__class__.__name__
    'ColumnEmbeddings'
    """
    if network is None and hidden is not None:
        return mlp(inputs, outputs, tuple(hidden))
    if callable(network):
        return network(inputs, outputs)
    if network is not None and not isinstance(network, str):
        raise ValueError(
            "network must be a function of the numbers of inputs and outputs, a name such as 'tabular', or None, got "
            f"{network!r}"
        )
    choice = {"name": choose_default_model((inputs,))} if network is None else parse_choice(network)
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in choice.items() if key != "name"}
    return build(choice["name"], (inputs,), outputs, column_widths=column_widths, **options)
