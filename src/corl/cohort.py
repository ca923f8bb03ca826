"""The loop of Co-RL: sample and vote, cross-check, update (paper, section 3).

It runs over the agents that live in this process, be it all of them or one.
The exchange brings each the ballots of the agents that grade it, so the same
loop serves one process, many, and a cluster. Launching, saving, logging and
resuming hang on it as one-line calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from corl.agent import Agent, Sampled
from corl.errors import ExchangeStopped
from corl.exchange import Ballot
from corl.exchange.base import Exchange, PatientExchange


class StepControl(Protocol):
    """Decides, before each step, whether the cohort ends here."""

    def ends_before(self, step: int, names: Sequence[str]) -> bool:
        """Whether no agent may start this step."""
        ...


@dataclass(frozen=True, slots=True)
class RunAhead:
    """How far this process may sample before the ballots of an earlier step have arrived."""

    exchange: PatientExchange
    steps: int
    """Most steps that wait for ballots while the next one is sampled; at least 1."""
    settles: Callable[[int], bool]
    """Whether a step has to be learned before the next one is sampled (a checkpoint follows)."""


def train(
    agents: Sequence[Agent],
    exchange: Exchange,
    *,
    rows_of_step: Callable[[int], list[int]],
    first_step: int,
    last_step: int,
    control: StepControl,
    after_step: Callable[[int], None] = lambda step: None,
    ahead: RunAhead | None = None,
) -> int:
    """Train this process's agents. Returns the last step that they completed.

    rows_of_step: indices of the prompts of a step, the same for every agent. ahead: left out,
    every step is learned before the next one is sampled.
    """
    names = [agent.name for agent in agents]
    graders = {agent.name: agent.graders for agent in agents}
    waiting: deque[tuple[int, list[Sampled], list[Ballot]]] = deque()
    done = first_step - 1

    def learn_oldest() -> None:
        nonlocal done
        step, samples, ballots = waiting.popleft()
        # 2. Cross-check: what comes back are the ballots of each agent's graders.
        peers = exchange.swap(ballots, graders=graders)
        # 3. Update independently.
        for agent, sampled in zip(agents, samples, strict=True):
            rewards = agent.cross_check(sampled, peers[agent.name])
            agent.update(sampled, rewards)
        done = step
        after_step(step)

    def sample_and_learn(step: int) -> None:
        rows = rows_of_step(step)
        # 1. Sample and vote.
        samples = [agent.sample(step, rows) for agent in agents]
        ballots = [agent.vote(sampled) for agent, sampled in zip(agents, samples, strict=True)]
        waiting.append((step, samples, ballots))
        if ahead is None:
            return learn_oldest()
        ahead.exchange.post(ballots)
        most = 0 if ahead.settles(step) else ahead.steps
        while len(waiting) > most or (
            waiting and ahead.exchange.arrived(waiting[0][2], graders=graders)
        ):
            learn_oldest()

    try:
        for step in range(first_step, last_step + 1):
            if control.ends_before(step, names):
                break
            sample_and_learn(step)
        while waiting:
            learn_oldest()
    except ExchangeStopped:
        pass  # what still waits is sampled again on resume
    return done
