"""The loop of Co-RL: sample and vote, cross-check, update (paper, section 3).

It runs over the agents that live in this process, be it all of them or one.
The exchange brings each the ballots of the agents that grade it, so the same
loop serves one process, many, and a cluster. Launching, saving, logging and
resuming hang on it as one-line calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from corl.agent import Agent
from corl.exchange.base import Exchange


class StepControl(Protocol):
    """Decides, before each step, whether the cohort ends here."""

    def ends_before(self, step: int, names: Sequence[str]) -> bool:
        """Whether no agent may start this step."""
        ...


def train(
    agents: Sequence[Agent],
    exchange: Exchange,
    *,
    rows_of_step: Callable[[int], list[int]],
    first_step: int,
    last_step: int,
    control: StepControl,
    after_step: Callable[[int], None] = lambda step: None,
) -> int:
    """Train this process's agents. Returns the last step that they completed.

    rows_of_step: indices of the prompts of a step, the same for every agent.
    """
    names = [agent.name for agent in agents]
    for step in range(first_step, last_step + 1):
        if control.ends_before(step, names):
            return step - 1
        rows = rows_of_step(step)
        # 1. Sample and vote.
        samples = [agent.sample(step, rows) for agent in agents]
        ballots = [agent.vote(sampled) for agent, sampled in zip(agents, samples, strict=True)]
        # 2. Cross-check: what comes back are the ballots of each agent's graders.
        peers = exchange.swap(ballots, graders={agent.name: agent.graders for agent in agents})
        # 3. Update independently.
        for agent, sampled in zip(agents, samples, strict=True):
            rewards = agent.cross_check(sampled, peers[agent.name])
            agent.update(sampled, rewards)
        after_step(step)
    return last_step
