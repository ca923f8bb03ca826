"""The KL term to a reference policy.

k3 of Schulman's note on approximating KL, as GRPO uses it (arXiv 2402.03300,
eq. 4): an estimate from the sampled token alone, never negative.
"""

import torch
from torch import Tensor


def kl_k3(logps_bt: Tensor, ref_logps_bt: Tensor) -> Tensor:
    """exp(ref - policy) - (ref - policy) - 1 for each token, in nats, [B, T]."""
    difference_bt = ref_logps_bt - logps_bt
    return torch.exp(difference_bt) - difference_bt - 1.0
