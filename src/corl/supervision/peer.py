"""Co-RL: an agent is graded by its peers' votes, never by its own.

`Peer` is the paper's directed ring: the label is the vote of the agent before.
`AllPeers` takes the majority over all other agents' votes; a tie abstains.
"""

from __future__ import annotations

from collections.abc import Sequence

from corl.answers import Answer, majority
from corl.errors import RecipeError
from corl.supervision.base import Evidence, Rewards, Supervision, agreement_rewards, checked_votes


def predecessor(agent: str, ring: Sequence[str]) -> str:
    """The agent before `agent` on the directed ring; the first one's is the last."""
    if len(ring) < 2:
        raise RecipeError(
            f"agent {agent!r} has no peer: peer supervision needs two agents or more, "
            "or supervision: self_vote"
        )
    return ring[ring.index(agent) - 1]


class _Voted(Supervision):
    """A method whose agents hand their votes to one another."""

    def __init__(self, *, votes: int | None = None) -> None:
        """votes: completions per prompt behind a ballot; left out, those trained on."""
        self.num_votes = checked_votes(votes)


class Peer(_Voted):
    """Reward 1 for the answer that the preceding agent voted for."""

    def graders(self, agent: str, ring: Sequence[str]) -> tuple[str, ...]:
        """The preceding agent alone."""
        return (predecessor(agent, ring),)

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """Hold every completion against the one peer's vote."""
        (votes,) = ballots
        return agreement_rewards(evidence.answers, votes)


class AllPeers(_Voted):
    """Reward 1 for the answer that most other agents voted for."""

    def graders(self, agent: str, ring: Sequence[str]) -> tuple[str, ...]:
        """All the others, in ring order."""
        predecessor(agent, ring)
        return tuple(name for name in ring if name != agent)

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """Hold every completion against the peers' majority; a tie gives no label."""
        return agreement_rewards(evidence.answers, peer_majority(ballots))


def peer_majority(ballots: Sequence[Sequence[str | None]]) -> list[str | None]:
    """The most common key per prompt over several ballots, None on a tie.

    ballots: [A][P] keys. Returns [P] keys.
    """
    labels = []
    for votes in zip(*ballots, strict=True):
        won = majority([None if key is None else Answer(text=key, key=key) for key in votes])
        labels.append(None if won is None else won.answer.key)
    return labels
