"""The launcher's side of agents that live in processes of their own.

It trains nothing: it shows progress, passes a stop on, and ends the run with
the first agent that fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from corl.errors import AgentFailed
from corl.launch.agent_task import Ending
from corl.launch.control import StopRequest, agree_on_stop
from corl.launch.job import Job

_POLL_S = 0.2


class Worker(Protocol):
    """An agent's process, as its launcher sees it."""

    @property
    def name(self) -> str:
        """The agent's name."""
        ...

    def ending(self) -> Ending | None:
        """How it ended, None while it trains. Raises AgentFailed where it died without a word."""
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

    store: where agents of their own processes meet. Raises AgentFailed naming
    the first agent that ended with an error.
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


def _last_step(job: Job, name: str, ending: Ending) -> int:
    if ending.last_step is None:
        log = job.run.agent(name) / "log.txt"
        raise AgentFailed(f"agent {name!r} failed: {ending.error} (whole story: {log})")
    return ending.last_step
