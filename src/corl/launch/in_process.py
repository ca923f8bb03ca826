"""Agents in this process, taking turns on their devices."""

from __future__ import annotations

from collections.abc import Callable

from corl.exchange import Exchange, LocalExchange
from corl.exchange.base import PatientExchange
from corl.launch.assembly import build_agent, run_agents
from corl.launch.control import LocalControl, StopRequest
from corl.launch.job import Job


def run_in_process(job: Job, *, stop: StopRequest, report: Callable[[], None]) -> int:
    """Train the whole cohort here. Returns the last step done."""
    return train_here(job, LocalExchange(), stop=stop, report=report)


def train_here(
    job: Job,
    exchange: Exchange,
    *,
    stop: StopRequest,
    report: Callable[[], None],
    ahead: tuple[PatientExchange, int] | None = None,
) -> int:
    """Train the agents that the recipe lists, whoever else the exchange reaches.

    ahead: see `run_agents`. Returns the last step done.
    """
    agents = [
        build_agent(
            agent.name,
            recipe=job.recipe,
            run=job.run,
            facts=job.facts,
            prompts=job.prompts[agent.name],
            done_step=job.done_step,
            device=job.devices[agent.name],
        )
        for agent in job.recipe.agents
    ]
    return run_agents(
        agents,
        exchange,
        recipe=job.recipe,
        run=job.run,
        facts=job.facts,
        num_rows=job.num_rows,
        done_step=job.done_step,
        control=LocalControl(stop),
        report=report,
        ahead=ahead,
    )
