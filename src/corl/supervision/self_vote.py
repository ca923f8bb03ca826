"""TTRL (arXiv 2504.16084): an agent is graded by its own majority vote."""

from __future__ import annotations

from collections.abc import Sequence

from corl.supervision.base import Evidence, Rewards, Supervision, agreement_rewards


class SelfVote(Supervision):
    """Reward 1 for the agent's own most frequent answer. Uses no exchange."""

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """Hold every completion against the agent's own vote."""
        return agreement_rewards(evidence.answers, evidence.own_votes)
