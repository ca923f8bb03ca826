"""The launcher's side of agents that live in processes of their own.

It trains nothing: it shows progress, passes a stop on, and ends the run with
the first agent that fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from corl.errors import AgentFailed, AgentLost
from corl.launch.agent_task import Ending
from corl.launch.control import StopRequest, agree_on_stop
from corl.launch.job import Job
from corl.run.checkpoint import cohort_steps

_POLL_S = 0.2


class Worker(Protocol):
    """An agent's process, as its launcher sees it."""

    @property
    def name(self) -> str:
        """The agent's name."""
        ...

    def ending(self) -> Ending | None:
        """How it ended, None while it trains. Raises AgentLost where it died without a word."""
        ...


def watch(
    job: Job,
    workers: Sequence[Worker],
    store: Any,
    *,
    stop: StopRequest,
    report: Callable[[], None],
) -> int:
    """Wait for all agents. Returns the last step that every one of them did.

    store: where the agents meet. Raises AgentFailed naming the first agent that
    ended with an error; AgentLost where another try may do better.
    """
    last_steps: dict[str, int] = {}
    stop_passed_on = False
    while len(last_steps) < len(workers):
        for worker in workers:
            if worker.name not in last_steps and (ending := worker.ending()) is not None:
                last_steps[worker.name] = _last_step(job, worker.name, ending)
        if stop.requested and not stop_passed_on:
            agree_on_stop(store, job.names)
            stop_passed_on = True
        report()
        time.sleep(_POLL_S)
    return min(last_steps.values())


def lost(job: Job, reason: str, advice: str) -> AgentLost:
    """The error of a lost agent, with where the cohort would go on."""
    steps = cohort_steps(job.run, job.names)
    where = f"the checkpoint of step {steps[-1]}" if steps else "its beginning"
    return AgentLost(reason, f"{advice}. `corl resume {job.run.root}` goes on from {where}")


def _last_step(job: Job, name: str, ending: Ending) -> int:
    if ending.last_step is not None:
        return ending.last_step
    reason = f"agent {name!r} failed: {ending.error}"
    story = f" (whole story: {job.run.agent(name) / 'log.txt'})"
    raise lost(job, reason, story) if ending.may_pass else AgentFailed(reason + story)
