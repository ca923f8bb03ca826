"""The clipped policy loss and its four ways to average tokens.

A loss here is a sum over tokens, each times the weight of its row, and a row's
weight comes from counts over the whole update. So micro-batches add up to the
whole batch exactly, however they are cut, and a group that is never forwarded
still counts.

With L the tokens of a row that are in the loss, B the rows, N the tokens and M
the completion cap of the whole update, a token of the row weighs

    grpo     1 / (B * max(L, 1))    mean over rows of each row's token mean
    bnpo     1 / N                  mean over tokens
    dapo     1 / N                  the same here: they differ only in code that
                                    averages every micro-batch by itself
    dr_grpo  1 / (B * M)            a constant, so length earns nothing

as in TRL 1.16. A masked (truncated) completion has L = 0: it leaves N and stays
in B.

Shapes: B rows, T completion tokens.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from corl.errors import RecipeError
from corl.grpo.kl import kl_k3

Loss = Literal["grpo", "bnpo", "dr_grpo", "dapo"]


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """A loss to call backward on, and detached scalars over its masked-in tokens."""

    loss: Tensor
    clip_share: Tensor
    """Share of tokens whose ratio the clip holds back."""
    kl_mean: Tensor | None
    """Mean k3 estimate in nats, None without a reference."""
    ratio_mean: Tensor
    ratio_min: Tensor
    ratio_max: Tensor
    num_tokens: Tensor


def token_weights(
    lengths_b: Tensor,
    *,
    loss: Loss = "bnpo",
    num_sequences: int | None = None,
    num_tokens: int | None = None,
    max_tokens: int | None = None,
) -> Tensor:
    """The weight of one token of each row, float32 [B].

    lengths_b: tokens of each row that are in the loss, int [B].
    num_sequences, num_tokens: counts over the whole update; by default those of
    `lengths_b`. max_tokens: the completion cap, which dr_grpo needs.

    Raises RecipeError for an unknown loss, and for dr_grpo without a cap.
    """
    num_sequences = len(lengths_b) if num_sequences is None else num_sequences
    num_tokens = int(lengths_b.sum()) if num_tokens is None else num_tokens
    if loss == "grpo":
        return 1.0 / (max(num_sequences, 1) * lengths_b.clamp(min=1).float())
    if loss in ("bnpo", "dapo"):
        denominator = num_tokens
    elif loss == "dr_grpo":
        if max_tokens is None:
            raise RecipeError("loss dr_grpo divides by the completion cap; pass max_tokens.")
        denominator = num_sequences * max_tokens
    else:
        raise RecipeError(f"loss is {loss!r}; use grpo, bnpo, dr_grpo or dapo.")
    return torch.full_like(lengths_b, 1.0 / max(denominator, 1), dtype=torch.float32)


def policy_loss(
    logps_bt: Tensor,
    old_logps_bt: Tensor,
    advantages_b: Tensor,
    mask_bt: Tensor,
    *,
    loss: Loss = "bnpo",
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    ref_logps_bt: Tensor | None = None,
    kl: float = 0.0,
    unbiased_kl: bool = True,
    max_tokens: int | None = None,
    mismatch_weight_bt: Tensor | None = None,
    weights_b: Tensor | None = None,
) -> PolicyLoss:
    """The clipped surrogate with an optional KL term, summed with token weights.

    Per token: -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) * mismatch
    weight + kl * k3(policy, reference), r = exp(logps - old_logps)
    (arXiv 2402.03300, eq. 3; clip_high apart from clip_low: arXiv 2503.14476).
    The mismatch weight scales the policy term alone. With `unbiased_kl` k3 is
    multiplied by r as well (arXiv 2512.02556, section 3.1; TRL 1.16's default):
    at r = 1 the value is the same, but the gradient becomes that of the reverse
    KL, (logps - ref) instead of 1 - exp(ref - logps).

    logps_bt, old_logps_bt, ref_logps_bt: float [B, T]; gradients reach the first
    alone. advantages_b: float [B]. mask_bt: bool [B, T], true on tokens of the
    loss; what stands elsewhere is never read, NaN included. weights_b: float [B]
    from `token_weights` of the whole update; by default this batch is the update.

    Raises RecipeError for kl without reference, and as `token_weights`.
    """
    if kl and ref_logps_bt is None:
        raise RecipeError(f"kl is {kl}, which needs a reference policy; pass ref_logps_bt.")
    mask_bt = mask_bt.bool()
    if weights_b is None:
        weights_b = token_weights(mask_bt.sum(dim=1), loss=loss, max_tokens=max_tokens)
    # Masked before exp: a NaN behind the mask would come back through the gradient.
    ratio_bt = torch.exp(torch.where(mask_bt, logps_bt - old_logps_bt.detach(), 0.0))
    clipped_bt = ratio_bt.clamp(1.0 - clip_low, 1.0 + clip_high)
    advantages_b1 = advantages_b.to(ratio_bt.dtype)[:, None]
    token_loss_bt = -torch.minimum(ratio_bt * advantages_b1, clipped_bt * advantages_b1)
    if mismatch_weight_bt is not None:
        token_loss_bt = token_loss_bt * mismatch_weight_bt.detach()
    kl_bt = None
    if ref_logps_bt is not None:
        kl_bt = kl_k3(
            torch.where(mask_bt, logps_bt, 0.0), torch.where(mask_bt, ref_logps_bt.detach(), 0.0)
        )
        if kl:
            token_loss_bt = token_loss_bt + kl * (kl_bt * ratio_bt if unbiased_kl else kl_bt)
    weighted_bt = torch.where(mask_bt, token_loss_bt, 0.0) * weights_b[:, None]
    held_bt = ((ratio_bt < 1.0 - clip_low) & (advantages_b1 < 0)) | (
        (ratio_bt > 1.0 + clip_high) & (advantages_b1 > 0)
    )
    return _with_statistics(weighted_bt.sum(), ratio_bt, held_bt, kl_bt, mask_bt)


def _with_statistics(
    loss: Tensor, ratio_bt: Tensor, held_bt: Tensor, kl_bt: Tensor | None, mask_bt: Tensor
) -> PolicyLoss:
    # A batch without a token reads as ratio 1.
    ratio_n = ratio_bt.detach()[mask_bt]
    if ratio_n.numel() == 0:
        ratio_n = ratio_n.new_ones(1)
    num_tokens = mask_bt.sum()
    count = num_tokens.clamp(min=1)
    return PolicyLoss(
        loss=loss,
        clip_share=(held_bt & mask_bt).sum() / count,
        kl_mean=None if kl_bt is None else kl_bt.detach().sum() / count,
        ratio_mean=ratio_n.mean(),
        ratio_min=ratio_n.min(),
        ratio_max=ratio_n.max(),
        num_tokens=num_tokens,
    )
