"""Where agents live and what each gets: launcher, threads, devices.

Pure functions of the recipe and the machine, so `corl check` shows what
`corl train` will do. The thread count is the same under every launcher:
results must not depend on how agents are started.
"""

from __future__ import annotations

import os

from corl.config import AgentConfig, Recipe
from corl.errors import RecipeError


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_per_agent(recipe: Recipe, *, cores: int) -> dict[str, int]:
    """CPU threads of each agent: its own setting, else the CPUs it asks of a cluster, else
    cores // agents, at least one.

    Two processes that each take all cores run many times slower than with
    their share.
    """
    share = max(1, cores // len(recipe.agents))
    return {
        agent.name: agent.threads or int(agent.resources.get("CPU", 0)) or share
        for agent in recipe.agents
    }


def devices_per_agent(recipe: Recipe, *, num_gpus: int) -> dict[str, str]:
    """Device of each agent: its own setting, else a GPU by turns, else the CPU."""
    devices = {}
    for index, agent in enumerate(recipe.agents):
        _refuse_several_gpus(agent)
        if agent.device != "auto":
            devices[agent.name] = "cuda:0" if agent.device == "cuda" else agent.device
        elif num_gpus and agent.gpus:
            devices[agent.name] = f"cuda:{index % num_gpus}"
        else:
            devices[agent.name] = "cpu"
    return devices


def pick_launcher(recipe: Recipe, *, cores: int, devices: dict[str, str]) -> str:
    """The launcher by name: the recipe's, else `in_process` or `processes`.

    `auto` gives each agent a process where it has a device, or a core, of its own, or where
    the cohort is to be restarted after losing one.
    """
    if recipe.sites is not None:
        return "site"
    if recipe.launch != "auto":
        return recipe.launch
    if recipe.restarts.limit:
        return "processes"
    num_agents = len(recipe.agents)
    gpus = [device for device in devices.values() if device != "cpu"]
    apart = len(set(gpus)) == num_agents if gpus else cores >= num_agents
    return "processes" if num_agents > 1 and apart else "in_process"


def _refuse_several_gpus(agent: AgentConfig) -> None:
    if agent.gpus > 1:
        raise RecipeError(
            f"agent {agent.name!r} asks for {agent.gpus} GPUs; an agent runs on one GPU so far "
            "(sharding is not built yet), set gpus: 1"
        )
