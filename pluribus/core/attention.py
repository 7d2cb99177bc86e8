"""nn.MultiheadAttention with its projections as ordinary linear layers, which methods can convert.

    head_h = softmax(Q_h K_hᵀ / √d) V_h,    Q = x W_q + b_q,  K = y W_k + b_k,  V = z W_v + b_v,  answer = [head_1 …] W_o + b_o

The numbers are the same as those of nn.MultiheadAttention, which reads its weights itself.
"""

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PROJECTIONS = ("q_proj", "k_proj", "v_proj")


class OpenAttention(nn.Module):
    """What nn.MultiheadAttention does, with the projections `q_proj`, `k_proj`, `v_proj` and `out_proj`."""

    in_proj_bias = None  # asked for by nn.TransformerEncoderLayer before it takes the fused kernel

    def __init__(self, attention: nn.MultiheadAttention) -> None:
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = attention.embed_dim, attention.num_heads, attention.head_dim
        self.kdim, self.vdim = attention.kdim, attention.vdim
        self.dropout, self.batch_first = attention.dropout, attention.batch_first
        self._qkv_same_embed_dim = attention._qkv_same_embed_dim
        if attention.in_proj_weight is not None:
            weights: Any = attention.in_proj_weight.chunk(3)
        else:
            weights = attention.q_proj_weight, attention.k_proj_weight, attention.v_proj_weight
        bias = attention.in_proj_bias
        biases: Any = (None, None, None) if bias is None else bias.chunk(3)
        for name, own, shift in zip(PROJECTIONS, weights, biases, strict=True):
            setattr(self, name, make_linear(own, shift))
        self.out_proj = make_linear(attention.out_proj.weight, attention.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As nn.MultiheadAttention: query `[B, L, E]`, key and value `[B, S, E]` (the first two axes swapped without
        `batch_first`, or no batch) → answer `[B, L, E]`, and the attention weights `[B, L, S]` if they are needed."""
        if is_causal and attn_mask is None:
            raise RuntimeError("is_causal=True is a hint about attn_mask, which is missing: pass the mask, too")
        is_alone = query.dim() == 2
        if is_alone:
            query, key, value = (each.unsqueeze(0) for each in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        q, k, v = (
            getattr(self, name)(each).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for name, each in zip(PROJECTIONS, (query, key, value), strict=True)
        )
        mask = self.merge_masks(attn_mask, key_padding_mask, q)
        rate = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = q @ k.mT / math.sqrt(self.head_dim)
            weights = F.dropout((scores if mask is None else scores + mask).softmax(-1), rate)
            heads = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            heads = F.scaled_dot_product_attention(q, k, v, mask, rate)
        answer = self.out_proj(heads.transpose(1, 2).flatten(-2))
        if is_alone:
            return answer.squeeze(0), None if weights is None else weights.squeeze(0)
        return answer if self.batch_first else answer.transpose(0, 1), weights

    def merge_masks(self, attention: Tensor | None, padding: Tensor | None, q: Tensor) -> Tensor | None:
        """Both masks as numbers to add to the scores, `[B or 1, heads or 1, L or 1, S]`; None if there is none."""
        found = None
        if attention is not None:
            found = to_numbers(attention, q)
            found = found.unflatten(0, (-1, self.num_heads)) if found.dim() == 3 else found
        if padding is not None:
            rows = to_numbers(padding, q)[:, None, None]
            found = rows if found is None else found + rows
        return found

    def put_together(self) -> nn.Module | None:
        """An nn.MultiheadAttention with these projections; None if one of them is no plain linear layer any more."""
        layers = [getattr(self, name) for name in (*PROJECTIONS, "out_proj")]
        if any(type(layer) is not nn.Linear for layer in layers):
            return None
        q, k, v, out = cast(list[nn.Linear], layers)
        has_bias = q.bias is not None
        options: dict[str, Any] = {"kdim": self.kdim, "vdim": self.vdim, "batch_first": self.batch_first, "device": "meta"}
        whole: Any = nn.MultiheadAttention(self.embed_dim, self.num_heads, self.dropout, has_bias, **options)
        if whole.in_proj_weight is not None:
            whole.in_proj_weight = join_parameters(q.weight, k.weight, v.weight)
        else:
            whole.q_proj_weight, whole.k_proj_weight, whole.v_proj_weight = q.weight, k.weight, v.weight
        if has_bias:
            whole.in_proj_bias = join_parameters(q.bias, k.bias, v.bias)
        whole.out_proj.weight, whole.out_proj.bias = out.weight, out.bias
        return whole


def to_numbers(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers to add: −∞ where a boolean one is true."""
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)


def make_linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """A linear layer with copies of these numbers."""
    layer: Any = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.detach().clone(memory_format=torch.contiguous_format), weight.requires_grad)
    layer.bias = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)
    return layer


def join_parameters(*parts: Tensor) -> nn.Parameter:
    return nn.Parameter(torch.cat([part.detach() for part in parts]), any(part.requires_grad for part in parts))


def find_attention_obstacle(attention: nn.MultiheadAttention) -> str:
    """Why an attention module cannot be taken apart, if it cannot."""
    if attention.bias_k is not None or attention.add_zero_attn:
        return "it adds a row of its own to keys and values"
    return ""
