"""Peer supervision whose rewards are replaced by the replayed ones.

Votes cross and are compared as in training; only what the comparison says is thrown away.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from corl.supervision import Evidence, Rewards
from corl.supervision.peer import Peer
from versus.work import replayed_rewards, work_from_json


class ReplayedRewards(Peer):
    """`Peer`, rewarded by `replayed_rewards`."""

    def __init__(self, work: str) -> None:
        super().__init__()
        self._work = work_from_json(json.loads(work))
        self._agent = ""
        self._step = 0

    def graders(self, agent: str, ring: Sequence[str]) -> tuple[str, ...]:
        self._agent = agent
        return super().graders(agent, ring)

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        earned = super().reward(evidence, ballots)
        self._step += 1
        rewards = replayed_rewards(self._work, step=self._step, agent=self._agent)
        return Rewards(rewards, earned.labels, [True] * len(rewards))
