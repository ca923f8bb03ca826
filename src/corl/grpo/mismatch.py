"""Weights for tokens that the rollout engine scored differently from the learner.

Truncated token by token: masking whole sequences by their ratio silences most
long completions, since small differences multiply. The weight is a constant of
the loss, never differentiated. A token the engine gave no number (NaN) gets
weight 1 and is counted, so it neither poisons the loss nor vanishes unseen.

Shapes: B rows, T completion tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Token weights and what they were made of, all detached."""

    weights_bt: Tensor
    """min(exp(learner - engine), cap); 1 where the engine has NaN or the mask is off."""
    ratios_n: Tensor
    """Uncapped ratios of the masked-in tokens that have one, N of them."""
    num_nan: Tensor
    """Masked-in tokens for which the engine gave NaN."""


def engine_mismatch(
    logps_bt: Tensor, engine_logps_bt: Tensor, mask_bt: Tensor, *, cap: float = 3.0
) -> Mismatch:
    """Truncated importance weights between the learner and the engine that sampled.

    logps_bt: the learner's log-probabilities before the first update, float [B, T].
    engine_logps_bt: those of the sampler, float [B, T], NaN where unknown.
    mask_bt: bool [B, T], true on tokens of the loss. cap: largest weight.
    """
    logps_bt, engine_logps_bt = logps_bt.detach(), engine_logps_bt.detach()
    nan_bt = mask_bt & engine_logps_bt.isnan()
    scored_bt = mask_bt & ~nan_bt
    ratio_bt = torch.exp(torch.where(scored_bt, logps_bt - engine_logps_bt, 0.0))
    return Mismatch(
        weights_bt=ratio_bt.clamp(max=cap).masked_fill(~scored_bt, 1.0),
        ratios_n=ratio_bt[scored_bt],
        num_nan=nan_bt.sum(),
    )
