"""Rewards to advantages: GRPO's group baseline and REINFORCE++'s batch baseline.

Whether a row teaches is decided by comparing rewards, before any arithmetic:
a unanimous group gets exactly zero, where its rounded mean could leave 1e-8,
which a deviation of zero plus epsilon would blow up to 1e-4.

A row without a label has no rewards. It gets zero, its entries are never read,
and it is left out of the batch's deviation; a flat row stays in.

Shapes: P prompts, K completions of a prompt.
"""

from typing import Literal

import torch
from torch import Tensor

from corl.errors import NonFiniteLossError, RecipeError

Scale = Literal["group", "batch", "none"]


def flat_groups(rewards_pk: Tensor) -> Tensor:
    """Whether a prompt's rewards are all exactly equal, bool [P]. One completion is flat."""
    return (rewards_pk == rewards_pk[:, :1]).all(dim=1)


def group_advantages(
    rewards_pk: Tensor,
    *,
    scale: Scale = "group",
    eps: float = 1e-4,
    labelled_p: Tensor | None = None,
) -> Tensor:
    """Centre rewards on their group's mean and scale them, float [P, K].

    GRPO (arXiv 2402.03300, section 4.1.2) with TRL's conventions: `group`
    divides by the group's unbiased deviation plus `eps`, `batch` by the
    unbiased deviation of all labelled rewards of the update plus `eps`, `none`
    by nothing. Rows that are flat, or false in `labelled_p` (bool [P], default
    all true), are exactly zero.

    Raises NonFiniteLossError for a NaN or infinite reward of a labelled row and
    RecipeError for an unknown scale.
    """
    if scale not in ("group", "batch", "none"):
        raise RecipeError(f"scale is {scale!r}; use group, batch or none.")
    rewards_pk, labelled_p = _checked(rewards_pk, labelled_p)
    teaches_p = labelled_p & ~flat_groups(rewards_pk)
    if not teaches_p.any():
        return torch.zeros_like(rewards_pk)
    advantages_pk = rewards_pk - rewards_pk.mean(dim=1, keepdim=True)
    if scale == "group":
        advantages_pk = advantages_pk / (rewards_pk.std(dim=1, keepdim=True) + eps)
    elif scale == "batch":
        advantages_pk = advantages_pk / (rewards_pk[labelled_p].std() + eps)
    return torch.where(teaches_p[:, None], advantages_pk, 0.0)


def reinforce_pp_advantages(
    rewards_pk: Tensor, *, eps: float = 1e-4, labelled_p: Tensor | None = None
) -> Tensor:
    """Centre and scale rewards over the whole update, float [P, K].

    REINFORCE++ (arXiv 2501.03262): (reward - batch mean) / (batch deviation +
    `eps`), with no baseline per prompt, so a unanimous group does teach: it is
    pushed up or down as a whole. Only rows without a label are zero, and all
    rows when every labelled reward is the same.

    Departures: the mean is over completions, not tokens, so that a long
    completion does not weigh more; the deviation is unbiased, as everywhere
    here; KL is a term of the loss and not of the reward.

    Raises NonFiniteLossError for a NaN or infinite reward of a labelled row.
    """
    rewards_pk, labelled_p = _checked(rewards_pk, labelled_p)
    labelled_n = rewards_pk[labelled_p].flatten()
    if labelled_n.numel() == 0 or bool((labelled_n == labelled_n[0]).all()):
        return torch.zeros_like(rewards_pk)
    advantages_pk = (rewards_pk - labelled_n.mean()) / (labelled_n.std() + eps)
    return torch.where(labelled_p[:, None], advantages_pk, 0.0)


def _checked(rewards_pk: Tensor, labelled_p: Tensor | None) -> tuple[Tensor, Tensor]:
    """Rewards as floats and the label mask, refused when a labelled reward is no number."""
    if not rewards_pk.is_floating_point():
        rewards_pk = rewards_pk.float()
    if labelled_p is None:
        labelled_p = torch.ones(len(rewards_pk), dtype=torch.bool, device=rewards_pk.device)
    bad_pk = labelled_p[:, None] & ~rewards_pk.isfinite()
    if bad_pk.any():
        p, k = bad_pk.nonzero()[0].tolist()
        raise NonFiniteLossError(
            f"the reward of prompt {p}, completion {k} is {rewards_pk[p, k].item()}. "
            "Look at the supervision method; it must return finite rewards, or no label."
        )
    return rewards_pk, labelled_p
