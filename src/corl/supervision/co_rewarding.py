"""Co-rewarding (arXiv 2508.00410): one model is graded from a second point of view.

`CoRewarding1` takes a second wording of each prompt: the vote on the one is the
label of the other, in both directions, and both halves are trained on.
`CoRewarding2` takes a teacher that follows the policy slowly: the vote of the
teacher's own completions is the label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from corl.errors import RecipeError
from corl.supervision.base import Evidence, Rewards, Supervision, agreement_rewards


class CoRewarding1(Supervision):
    """Reward 1 for the answer that the other wording of the prompt was voted to have."""

    graded_by = "itself on the other wording"
    needs_rewrites = True

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """Hold every completion against the vote of the other half."""
        return agreement_rewards(evidence.answers, crossed(evidence.own_votes))


class CoRewarding2(Supervision):
    """Reward 1 for the majority vote of an EMA teacher."""

    graded_by = "its teacher"
    needs_teacher = True

    def __init__(self, *, alpha_start: float = 0.01, alpha_end: float = 1e-5) -> None:
        """Share of the policy that the teacher takes up: at the run's start and at its end."""
        self.alpha_start = _share("alpha_start", alpha_start)
        self.alpha_end = _share("alpha_end", alpha_end)

    def teacher_share(self, step: int, *, steps: int) -> float:
        """Cosine from `alpha_start` to `alpha_end`, over the share of the run that is done."""
        span = self.alpha_start - self.alpha_end
        return self.alpha_end + 0.5 * span * (1 + math.cos(math.pi * step / steps))

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """Hold every completion against the teacher's vote."""
        return agreement_rewards(evidence.answers, evidence.teacher_votes)


def crossed(votes: Sequence[str | None]) -> list[str | None]:
    """Each half's votes as the labels of the other.

    votes: [2P], those of P prompts and then those of their rewrites. Returns [2P].
    """
    half = len(votes) // 2
    return [*votes[half:], *votes[:half]]


def _share(name: str, value: float) -> float:
    try:
        share = float(value)  # YAML reads 1e-5 as text
    except (TypeError, ValueError):
        share = math.nan
    if not 0 <= share <= 1:
        raise RecipeError(
            f"supervision.options.{name} is {value!r}; it is a share between 0 and 1, such as 0.01"
        )
    return share
