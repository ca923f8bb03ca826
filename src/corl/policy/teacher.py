"""A teacher: the moving average of a policy's weights (Co-rewarding-II, arXiv 2508.00410).

It is kept in float32 whatever the policy is kept in. Late in a run the teacher
takes up 1e-5 of the policy a step, which bfloat16 cannot hold.
"""

from __future__ import annotations

import torch

from corl.policy.load import Dtype, Policy


def teacher_dtype(policy_dtype: Dtype) -> Dtype:
    """How a teacher is loaded: float32 weights that multiply as the policy's do where they can."""
    return "float32" if policy_dtype == "float32" else "auto"


@torch.no_grad()
def follow(teacher: Policy, policy: Policy, *, share: float) -> None:
    """teacher <- share * policy + (1 - share) * teacher, in place.

    share: 0 to 1. One parameter at a time, so that a policy of another dtype
    costs the copy of one.
    """
    pairs = zip(teacher.model.parameters(), policy.model.parameters(), strict=True)
    for average, current in pairs:
        average.lerp_(current.to(average.dtype), share)
