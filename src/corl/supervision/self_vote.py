"""TTRL (arXiv 2504.16084): an agent is graded by its own majority vote.

More completions may vote than are trained on: upstream 64 vote and 32 train.
"""

from __future__ import annotations

from collections.abc import Sequence

from corl.supervision.base import Evidence, Rewards, Supervision, agreement_rewards, checked_votes


class SelfVote(Supervision):
    """Reward 1 for the agent's own most frequent answer. Uses no exchange."""

    def __init__(self, *, votes: int | None = None) -> None:
        """votes: completions per prompt that vote; left out, those trained on."""
        self.num_votes = checked_votes(votes)

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """Hold every completion against the agent's own vote."""
        return agreement_rewards(evidence.answers, evidence.own_votes)
