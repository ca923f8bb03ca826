"""What an agent does in a process of its own, whoever started that process.

The process is told little and reads the rest from the run directory. However
it ends, short of dying, it says so in one `Ending`.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corl.errors import first_line
from corl.launch.restarts import may_pass
from corl.run.directory import RunDirectory


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What an agent's process is told. The rest it reads from the run directory: a process
    that dies before it has read a long message leaves its launcher writing for ever."""

    root: Path
    """The run directory, absolute."""
    name: str
    done_step: int
    """Last step that the cohort has behind it."""
    device: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How an agent ended: with the last step it did, or with an error."""

    last_step: int | None = None
    error: str = ""
    """One line; the whole story stands in the agent's log."""
    may_pass: bool = False
    """Whether another try may do better (`restarts.may_pass`)."""


def run_agent(task: AgentTask, connect: Callable[[], Any]) -> Ending:
    """Train one agent in this process, its output going to its log.

    connect: opens the store over which the cohort's processes meet. An error
    is an ending, too: nothing but an interrupt is raised.
    """
    run = RunDirectory(task.root)
    _log_to(run.agent(task.name) / "log.txt")
    try:
        with run.agent_locked(task.name):
            return Ending(last_step=train_agent(task, connect()))
    except Exception as error:
        traceback.print_exc()
        return Ending(error=first_line(error), may_pass=may_pass(error))


def train_agent(task: AgentTask, store: Any) -> int:
    """Build the agent as the run directory has it, and train it. Returns its last step."""
    from corl.exchange.store import StoreExchange
    from corl.launch.assembly import build_agent, run_agents
    from corl.launch.control import StoreControl
    from corl.launch.preflight import load_all_prompts

    run = RunDirectory(task.root)
    recipe, facts = run.load()
    prompts = load_all_prompts(recipe)[task.name]
    agent = build_agent(
        task.name,
        recipe=recipe,
        run=run,
        facts=facts,
        prompts=prompts,
        done_step=task.done_step,
        device=task.device,
    )
    exchange = StoreExchange(
        store, num_agents=len(recipe.agents), timeout_s=recipe.exchange.timeout_s
    )
    return run_agents(
        [agent],
        exchange,
        recipe=recipe,
        run=run,
        facts=facts,
        num_rows=len(prompts.rows),
        done_step=task.done_step,
        control=StoreControl(store),
    )


def _log_to(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
