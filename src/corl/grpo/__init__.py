"""GRPO as pure tensor functions: advantages, losses, log-probabilities.

No model, device, file or clock is known here; `corl.policy.learner` brings those.

Shapes: P prompts, K completions of a prompt, B rows, T completion tokens, N
tokens of many rows in one line, H hidden width, V vocabulary.
"""

from corl.grpo.advantages import (
    Scale,
    flat_groups,
    group_advantages,
    reinforce_pp_advantages,
)
from corl.grpo.kl import kl_k3
from corl.grpo.logprobs import selected_logps
from corl.grpo.losses import Loss, PolicyLoss, policy_loss, token_weights
from corl.grpo.mismatch import Mismatch, engine_mismatch

__all__ = [
    "Loss",
    "Mismatch",
    "PolicyLoss",
    "Scale",
    "engine_mismatch",
    "flat_groups",
    "group_advantages",
    "kl_k3",
    "policy_loss",
    "reinforce_pp_advantages",
    "selected_logps",
    "token_weights",
]
