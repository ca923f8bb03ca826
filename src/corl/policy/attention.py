"""The attention of our policies: sdpa, with two additions that transformers looks up by name.

- Completions that share a prompt come in line, each token once; here they become rows, and what
  comes out goes back into line (`corl.policy.shared_prompts`).
- On a CPU plain batched products beat torch's fused kernel, forward and backward, for short rows:
  in bfloat16 several times, up to some hundred tokens, and for the single query of a decoding step
  as well (docs/performance.md). Longer rows go to sdpa, where no matrix of scores is kept.

Shapes: R rows, H query heads, G key heads, Q queries, S keys, D head size, T tokens in line;
N = R * G and M = H / G * Q, the queries that read one key head.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from corl.policy.shared_prompts import PackRows, RowLayout, UnpackRows

NAME = "corl"
"""Under which transformers knows it; a saved config never names it."""

_LONGEST = {torch.float32: 48, torch.bfloat16: 512}
"""Keys up to which plain products are faster, forward and backward."""
_LONGEST_FOR_ONE_QUERY = {torch.bfloat16: 1 << 30}
"""The same for one query without gradients: in float32 they never are."""

_PLAIN = {"position_ids", "cache_position", "use_cache", "sliding_window"}
"""Arguments of a layer that change nothing: the mask says what may be seen."""


def use_our_attention(model: Any) -> None:
    """Switch a model from sdpa to `attend`; one that uses anything else stays as it is."""
    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    noise = logging.getLogger("transformers.modeling_utils")
    level = noise.level
    noise.setLevel(logging.ERROR)  # a model that cannot switch says so, and stays as it is
    try:
        model.set_attn_implementation(NAME)
    finally:
        noise.setLevel(level)


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    row_layout: RowLayout | None = None,
    **arguments: Any,
) -> tuple[Tensor, None]:
    """Attend as sdpa does; query [R, H, Q, D], key and value [R, G, S, D], returns [R, Q, H, D].

    attention_mask: bool or additive, broadcastable to [R, H, Q, S], or None. row_layout: where
    tokens in line [1, H, T, D] stand in rows; the mask then says nothing, rows are causal.
    """
    arguments = {name: each for name, each in arguments.items() if name not in _PLAIN}
    if row_layout is None:
        return _attend(module, query, key, value, attention_mask, dropout, scaling, arguments), None
    query, key, value = (_unpack(each, row_layout) for each in (query, key, value))
    attended_rshd = _attend(module, query, key, value, None, dropout, scaling, arguments)
    packed_tw = PackRows.apply(
        attended_rshd.reshape(row_layout.num_rows * row_layout.width, -1), row_layout
    )
    return packed_tw.view(1, -1, *attended_rshd.shape[2:]), None


def _unpack(line_1htd: Tensor, layout: RowLayout) -> Tensor:
    """[1, H, T, D] to [R, H, S, D]."""
    _, heads, tokens, size = line_1htd.shape
    line_tw = line_1htd[0].transpose(0, 1).reshape(tokens, heads * size)
    rows_pw = UnpackRows.apply(line_tw, layout)
    return rows_pw.view(layout.num_rows, layout.width, heads, size).transpose(1, 2)


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float,
    scaling: float | None,
    arguments: dict[str, Any],
) -> Tensor:
    is_causal = arguments.pop("is_causal", None)
    is_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if dropout or not _fits(query, key, value, attention_mask, is_causal, arguments):
        attended: Tensor
        attended, _ = sdpa_attention_forward(
            module,
            query,
            key,
            value,
            attention_mask,
            dropout=dropout,
            scaling=scaling,
            is_causal=is_causal,
            **arguments,
        )
        return attended
    rows, heads, queries, size = query.shape
    groups = key.shape[1]
    scale = size**-0.5 if scaling is None else scaling
    if _is_one_query(query):
        return _one_query(query, key, value, attention_mask, scale)
    attended_nmd = _ShortAttention.apply(
        query.reshape(rows * groups, heads // groups * queries, size),
        _by_head(key),
        _by_head(value),
        _seen(attention_mask, is_causal, queries, query.device),
        query.shape,
        scale,
    )
    transposed: Tensor = attended_nmd.view(rows, heads, queries, -1).transpose(1, 2)
    return transposed


def _fits(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    is_causal: bool,
    arguments: dict[str, Any],
) -> bool:
    longest = _LONGEST_FOR_ONE_QUERY if _is_one_query(query) else _LONGEST
    return (
        query.device.type == "cpu"
        and query.dtype == key.dtype == value.dtype
        and key.shape[2] <= longest.get(query.dtype, 0)
        and query.shape[1] % key.shape[1] == 0
        # With more keys than queries, "causal" alone does not say which are seen.
        and (mask is not None or not is_causal or query.shape[2] in (1, key.shape[2]))
        and (mask is None or (mask.ndim == 4 and mask.shape[1] == 1))
        and all(each is None for each in arguments.values())
    )


def _is_one_query(query: Tensor) -> bool:
    return query.shape[2] == 1 and not torch.is_grad_enabled()


def _by_head(states_rgsd: Tensor) -> Tensor:
    """[R * G, S, D]."""
    return states_rgsd.reshape(-1, *states_rgsd.shape[2:])


def lend_room(states: Tensor, buffer: Tensor) -> Tensor:
    """Tell attention that `states`, [R, G, S, D], begin a buffer [R, G, more than S, D].

    What stands behind them must be finite. A product of a bfloat16 view copies it head by head,
    which takes longer than to read the room as well.
    """
    states.room = buffer  # type: ignore[attr-defined]
    return states


def _one_query(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """[R, 1, H, D], without gradients."""
    rows, heads, _, size = query.shape
    groups, length = key.shape[1], key.shape[2]
    keys_nsd, values_nsd = (_by_head(getattr(each, "room", each)) for each in (key, value))
    queries_nmd = query.reshape(rows * groups, heads // groups, size) * scale
    scores_nms = torch.bmm(queries_nmd, keys_nsd.transpose(1, 2)).float()
    scores_nms[:, :, length:] = torch.finfo(torch.float32).min
    if mask is not None:
        scores_rhqs = scores_nms.view(rows, heads, 1, -1)[..., :length]
        if mask.dtype == torch.bool:
            scores_rhqs.masked_fill_(~mask, torch.finfo(torch.float32).min)
        else:
            scores_rhqs += mask
    probs_nms = torch.softmax(scores_nms, dim=-1).to(values_nsd.dtype)
    return torch.bmm(probs_nms, values_nsd).view(rows, 1, heads, -1)


def _seen(
    mask: Tensor | None, is_causal: bool, queries: int, device: torch.device
) -> Tensor | None:
    """What broadcasts over scores [R, H, Q, S]: bool or additive, None where all is seen."""
    if mask is not None or not is_causal or queries == 1:
        return mask
    return torch.ones(queries, queries, dtype=torch.bool, device=device).tril()


class _ShortAttention(torch.autograd.Function):
    """softmax(q k^T * scale) v that keeps its probabilities, in the inputs' dtype.

    The softmax runs in float32. Gradients reach q, k and v.
    """

    @staticmethod
    def forward(
        ctx: Any,
        queries_nmd: Tensor,
        keys_nsd: Tensor,
        values_nsd: Tensor,
        seen: Tensor | None,
        shape: torch.Size,
        scale: float,
    ) -> Tensor:
        scores_nms = torch.bmm(queries_nmd * scale, keys_nsd.transpose(1, 2)).float()
        if seen is not None:
            rows, heads, queries, _ = shape
            scores_rhqs = scores_nms.view(rows, heads, queries, -1)
            if seen.dtype == torch.bool:
                scores_rhqs.masked_fill_(~seen, torch.finfo(torch.float32).min)
            else:
                scores_rhqs += seen
        probs_nms = torch.softmax(scores_nms, dim=-1).to(values_nsd.dtype)
        ctx.save_for_backward(queries_nmd, keys_nsd, values_nsd, probs_nms)
        ctx.scale = scale
        return torch.bmm(probs_nms, values_nsd)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_nmd: Tensor) -> tuple[Tensor | None, ...]:
        queries_nmd, keys_nsd, values_nsd, probs_nms = ctx.saved_tensors
        grad_nmd = grad_nmd.contiguous()
        grad_values_nsd = torch.bmm(probs_nms.transpose(1, 2), grad_nmd)
        grad_nms = torch.bmm(grad_nmd, values_nsd.transpose(1, 2))
        # d softmax: p * (g - sum(p * g)).
        grad_nms = torch._softmax_backward_data(
            grad_nms.float(), probs_nms.float(), -1, torch.float32
        ).to(probs_nms.dtype)
        grad_queries_nmd = torch.bmm(grad_nms, keys_nsd).mul_(ctx.scale)
        grad_keys_nsd = torch.bmm(grad_nms.transpose(1, 2), queries_nmd).mul_(ctx.scale)
        return grad_queries_nmd, grad_keys_nsd, grad_values_nsd, None, None, None


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
