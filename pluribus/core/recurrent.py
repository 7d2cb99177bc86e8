"""nn.LSTM, nn.GRU and nn.RNN with their weights in ordinary linear layers, which methods can convert.

    LSTM:  i, f, g, o = x W_i + b_i + h W_h + b_h,    c ← σ(f) c + σ(i) tanh(g),    h ← σ(o) tanh(c)   (times W_r, if projected)
    GRU:   r, z = σ(x W_i + b_i + h W_h + b_h),    n = tanh(x W_n + b_n + r (h W_m + b_m)),    h ← (1 − z) n + z h
    RNN:   h ← tanh(x W_i + b_i + h W_h + b_h), or relu

The numbers are those of torch's modules. The steps are taken in Python; a method that draws noise draws it anew at every step.
What becomes plain again is torch's module again.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from .attention import make_linear

KEPT = ("mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size")


class OpenRecurrent(nn.Module):
    """What nn.LSTM, nn.GRU or nn.RNN does. Layer 0 has the linear layers `ih_l0` (inputs), `hh_l0` (states), of an LSTM with
    projections `hr_l0`, and of two directions those with `_reverse`."""

    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        for name in KEPT:
            setattr(self, name, getattr(layer, name))
        self.original: type[nn.RNNBase] = type(layer)
        own = dict(layer.named_parameters())
        for suffix in self.list_suffixes():
            for part in ("ih", "hh", "hr"):
                if f"weight_{part}{suffix}" in own:
                    linear = make_linear(own[f"weight_{part}{suffix}"], own.get(f"bias_{part}{suffix}"))
                    self.add_module(f"{part}{suffix}", linear)

    mode: str
    num_layers: int
    bidirectional: bool
    batch_first: bool
    dropout: float
    hidden_size: int
    proj_size: int

    def list_suffixes(self) -> list[str]:
        """The ends of the weights' names: layer by layer, and direction by direction."""
        ways = ("", "_reverse") if self.bidirectional else ("",)
        return [f"_l{layer}{way}" for layer in range(self.num_layers) for way in ways]

    def flatten_parameters(self) -> None:
        """Does nothing: there are no weights to lay out for a fused kernel."""

    def forward(self, x: Any, state: Any = None) -> tuple[Any, Any]:
        """As torch's modules: `[B, T, F]` (`[T, B, F]` without `batch_first`, `[T, F]` of one row, or a PackedSequence) and the
        first state → the last layer's states of all times, and the last states of all layers, `[layers, B, H]`."""
        packed = x if isinstance(x, PackedSequence) else None
        if packed is not None:
            rows, lengths = pad_packed_sequence(packed, batch_first=True)
            order = packed.unsorted_indices
        else:
            rows = x.unsqueeze(0) if x.dim() == 2 else x if self.batch_first else x.transpose(0, 1)
            lengths, order = None, None
        is_alone = packed is None and x.dim() == 2
        if is_alone and state is not None:
            state = tuple(s.unsqueeze(1) for s in state) if isinstance(state, tuple) else state.unsqueeze(1)
        first = None if state is None else state if isinstance(state, tuple) else (state,)
        ways = 2 if self.bidirectional else 1
        last: list[tuple[Tensor, ...]] = []
        for number in range(self.num_layers):
            if number and self.dropout:
                rows = F.dropout(rows, self.dropout, self.training)
            each = []
            for way in range(ways):
                place = number * ways + way
                own = None if first is None else tuple(s[place] for s in first)
                states, end = self.run_way(self.list_suffixes()[place], rows, own, lengths, backwards=way == 1)
                each.append(states)
                last.append(end)
            rows = each[0] if ways == 1 else torch.cat(each, -1)
        ends = tuple(torch.stack(parts) for parts in zip(*last, strict=True))
        if packed is not None:
            assert lengths is not None
            shown: Any = pack_padded_sequence(rows, lengths, True, enforce_sorted=order is None)
        else:
            shown = rows.squeeze(0) if is_alone else rows if self.batch_first else rows.transpose(0, 1)
        if is_alone:
            ends = tuple(end.squeeze(1) for end in ends)
        return shown, ends if self.mode == "LSTM" else ends[0]

    def run_way(
        self, suffix: str, rows: Tensor, first: tuple[Tensor, ...] | None, lengths: Tensor | None, backwards: bool
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One layer in one direction: rows `[B, T, F]` → states `[B, T, H]`, and the last state."""
        inputs = getattr(self, f"ih{suffix}")(rows)
        if first is None:
            hidden = inputs.new_zeros(inputs.shape[0], self.proj_size or self.hidden_size)
            first = (hidden, inputs.new_zeros(inputs.shape[0], self.hidden_size)) if self.mode == "LSTM" else (hidden,)
        state, found = first, []
        if lengths is not None:
            lengths = lengths.to(inputs.device)
        for time in reversed(range(inputs.shape[1])) if backwards else range(inputs.shape[1]):
            new = self.step(suffix, inputs[:, time], state)
            shown = new[0]
            if lengths is not None:
                runs = (time < lengths).unsqueeze(1)
                shown = torch.where(runs, shown, torch.zeros_like(shown))
                new = tuple(torch.where(runs, after, before) for after, before in zip(new, state, strict=True))
            found.append(shown)
            state = new
        return torch.stack(found[::-1] if backwards else found, 1), state

    def step(self, suffix: str, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The state after one time, of its inputs' products with the weights and the state before it."""
        h = getattr(self, f"hh{suffix}")(state[0])
        if self.mode == "LSTM":
            i, f, g, o = (x + h).chunk(4, -1)
            cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            return (getattr(self, f"hr{suffix}")(hidden) if self.proj_size else hidden), cell
        if self.mode == "GRU":
            (r_x, z_x, n_x), (r_h, z_h, n_h) = x.chunk(3, -1), h.chunk(3, -1)
            r, z = (r_x + r_h).sigmoid(), (z_x + z_h).sigmoid()
            n = (n_x + r * n_h).tanh()
            return ((1 - z) * n + z * state[0],)
        return ((x + h).relu() if self.mode == "RNN_RELU" else (x + h).tanh(),)

    def put_together(self) -> nn.Module | None:
        """The module of torch with these weights; None if one of the layers is no plain linear layer any more."""
        layers = dict(self.named_children())
        if any(type(layer) is not nn.Linear for layer in layers.values()):
            return None
        options = {name: getattr(self, name) for name in KEPT if name != "mode"}
        if self.mode != "LSTM":
            options.pop("proj_size")
        if self.mode.startswith("RNN"):
            options["nonlinearity"] = self.mode.removeprefix("RNN_").lower()
        whole: Any = self.original(**options, device="meta")  # where nothing is drawn
        for name, layer in layers.items():
            setattr(whole, f"weight_{name}", layer.weight)
            if layer.bias is not None:
                setattr(whole, f"bias_{name}", layer.bias)
        whole.flatten_parameters()  # on a GPU
        return whole
