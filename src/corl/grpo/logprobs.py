"""Log-probabilities of chosen tokens without the tokens x vocabulary matrix.

Logits are made a chunk of tokens at a time, reduced to one number a token, and
made again in the backward pass. Beside its inputs and their gradients the
function holds one chunk, whatever the number of tokens.

The projection runs in the dtype of the hidden states; from there on everything
is float32 (float64 for float64 input), soft cap and softmax included.

Shapes: N tokens, H hidden width, V vocabulary.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

# In float32 2**26 logits are 256 MB, enough for full speed on a GPU. On a CPU several such chunks
# would be most of a small model's peak; an eighth costs the head up to 28 % (docs/performance.md).
CHUNK_LOGITS = {"cuda": 2**26, "cpu": 2**23}


def chunk_logits(device_type: str) -> int:
    """Logits that exist at a time on a kind of device."""
    return CHUNK_LOGITS.get(device_type, CHUNK_LOGITS["cuda"])


def selected_logps(
    hidden_nh: Tensor,
    weight_vh: Tensor,
    bias_v: Tensor | None,
    targets_n: Tensor,
    *,
    temperature: float = 1.0,
    softcap: float | None = None,
    scale: float = 1.0,
    chunk_tokens: int | None = None,
) -> tuple[Tensor, Tensor]:
    """log softmax(logits / temperature) at each target, and the entropy there.

    logits = scale * (hidden @ weight.T + bias), then softcap * tanh(logits /
    softcap) if a soft cap is given (Gemma 2). targets_n: int [N].

    Returns (logps_n, entropy_n) in nats, float32 [N] (float64 for float64
    hidden states). Gradients flow from logps_n to hidden, weight and bias, once;
    the entropy is a measurement without gradient. chunk_tokens: tokens whose
    logits exist at a time, by default as many as `chunk_logits` of the device allows.
    """
    if chunk_tokens is None:
        chunk_tokens = max(1, chunk_logits(hidden_nh.device.type) // weight_vh.shape[0])
    logps_n, entropy_n = _SelectedLogps.apply(
        hidden_nh, weight_vh, bias_v, targets_n, scale, softcap, temperature, chunk_tokens
    )
    return logps_n, entropy_n


def _logits(
    hidden_ch: Tensor,
    weight_vh: Tensor,
    bias_v: Tensor | None,
    scale: float,
    softcap: float | None,
    temperature: float,
) -> tuple[Tensor, Tensor | None]:
    """Tempered logits [C, V] and, with a soft cap, the tanh that its derivative needs."""
    logits_cv = F.linear(hidden_ch, weight_vh, bias_v).to(_wide(hidden_ch.dtype))
    if scale != 1.0:
        logits_cv = logits_cv * scale
    tanh_cv = None
    if softcap is not None:
        tanh_cv = torch.tanh(logits_cv / softcap)
        logits_cv = tanh_cv * softcap
    if temperature != 1.0:
        logits_cv = logits_cv / temperature
    return logits_cv, tanh_cv


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


class _SelectedLogps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_nh: Tensor,
        weight_vh: Tensor,
        bias_v: Tensor | None,
        targets_n: Tensor,
        scale: float,
        softcap: float | None,
        temperature: float,
        chunk_tokens: int,
    ) -> tuple[Tensor, Tensor]:
        head = _cast(weight_vh, bias_v, hidden_nh.dtype)
        logps_n = hidden_nh.new_empty(len(hidden_nh), dtype=_wide(hidden_nh.dtype))
        entropy_n, lse_n = torch.empty_like(logps_n), torch.empty_like(logps_n)
        for start in range(0, len(hidden_nh), chunk_tokens):
            part = slice(start, start + chunk_tokens)
            logits_cv, _ = _logits(hidden_nh[part], *head, scale, softcap, temperature)
            lse_n[part] = torch.logsumexp(logits_cv, dim=1)
            logps_cv = logits_cv.sub_(lse_n[part, None])
            logps_n[part] = logps_cv.gather(1, targets_n[part, None]).squeeze(1)
            entropy_n[part] = -(logps_cv.exp() * logps_cv).sum(dim=1)
        ctx.save_for_backward(hidden_nh, weight_vh, bias_v, targets_n, lse_n)
        ctx.settings = (scale, softcap, temperature, chunk_tokens)
        ctx.mark_non_differentiable(entropy_n)
        return logps_n, entropy_n

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_n: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        hidden_nh, weight_vh, bias_v, targets_n, lse_n = ctx.saved_tensors
        scale, softcap, temperature, chunk_tokens = ctx.settings
        to_hidden, to_weight, to_bias = ctx.needs_input_grad[:3]
        head = _cast(weight_vh, bias_v, hidden_nh.dtype)
        wide = _wide(hidden_nh.dtype)
        grad_hidden_nh = torch.empty_like(hidden_nh) if to_hidden else None
        grad_weight_vh = torch.zeros_like(weight_vh, dtype=wide) if to_weight else None
        grad_bias_v = torch.zeros_like(bias_v, dtype=wide) if to_bias else None
        for start in range(0, len(hidden_nh), chunk_tokens):
            part = slice(start, start + chunk_tokens)
            logits_cv, tanh_cv = _logits(hidden_nh[part], *head, scale, softcap, temperature)
            # d logp / d logits = onehot(target) - softmax
            grad_cv = logits_cv.sub_(lse_n[part, None]).exp_().neg_()
            grad_cv.scatter_add_(1, targets_n[part, None], torch.ones_like(lse_n[part, None]))
            grad_cv *= grad_n[part, None] * (scale / temperature)
            if tanh_cv is not None:
                grad_cv *= 1.0 - tanh_cv.square()
            if grad_bias_v is not None:
                grad_bias_v += grad_cv.sum(dim=0)
            grad_cv = grad_cv.to(hidden_nh.dtype)
            if grad_hidden_nh is not None:
                grad_hidden_nh[part] = grad_cv @ head[0]
            if grad_weight_vh is not None:
                grad_weight_vh += grad_cv.T @ hidden_nh[part]
        return (
            grad_hidden_nh,
            None if grad_weight_vh is None else grad_weight_vh.to(weight_vh.dtype),
            None if grad_bias_v is None else grad_bias_v.to(bias_v.dtype),
            *(None,) * 5,
        )


def _cast(
    weight_vh: Tensor, bias_v: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    return weight_vh.to(dtype), None if bias_v is None else bias_v.to(dtype)
