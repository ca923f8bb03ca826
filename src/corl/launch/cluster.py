"""What agents ask of a cluster, and whether it can hold them: pure functions of both.

A node is a mapping of resource name to amount, as Ray counts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corl.config import AgentConfig, Recipe
from corl.errors import RecipeError

Amounts = Mapping[str, float]


def requests_per_agent(
    recipe: Recipe, *, threads: Mapping[str, int], has_gpus: bool
) -> dict[str, dict[str, float]]:
    """Resources of each agent: its own, else a CPU for each thread and its `gpus`.

    has_gpus: whether any node of the cluster has one. Raises RecipeError where
    an agent asks for several GPUs or names one by number.
    """
    return {
        agent.name: _request(agent, threads=threads[agent.name], has_gpus=has_gpus)
        for agent in recipe.agents
    }


def cluster_devices(requests: Mapping[str, Amounts]) -> dict[str, str]:
    """Device of each agent: Ray shows an agent's process no other GPU than its own."""
    return {name: "cuda:0" if asked.get("GPU") else "cpu" for name, asked in requests.items()}


def check_fits(requests: Mapping[str, Amounts], nodes: Sequence[Amounts], *, where: str) -> None:
    """Raise RecipeError naming agent, resource, wanted and available where no way can work.

    nodes: what each node has in all, in use or not. Agents that could be held
    one by one and in sum may still not fit together; placing them shows it.
    """
    for name, asked in requests.items():
        for resource, wanted in asked.items():
            most = max((node.get(resource, 0.0) for node in nodes), default=0.0)
            if wanted > most:
                raise RecipeError(
                    f"agent {name!r} asks for {_amount(resource, wanted)}, but no node of {where} "
                    f"has more than {_amount(resource, most)}; {_ADVICE}"
                )
        if not any(_holds(node, asked) for node in nodes):
            raise RecipeError(
                f"agent {name!r} asks for {describe(asked)} on one node, but no node of {where} "
                f"has all of it: {'; '.join(describe(node) for node in nodes)}; {_ADVICE}"
            )
    for resource in sorted({resource for asked in requests.values() for resource in asked}):
        wanted = sum(asked.get(resource, 0.0) for asked in requests.values())
        have = sum(node.get(resource, 0.0) for node in nodes)
        if wanted > have:
            each = ", ".join(
                f"{name} {_amount(resource, asked[resource])}"
                for name, asked in requests.items()
                if asked.get(resource)
            )
            raise RecipeError(
                f"the agents ask for {_amount(resource, wanted)} together ({each}), but {where} "
                f"has {_amount(resource, have)}; {_ADVICE}"
            )


def describe(amounts: Amounts) -> str:
    """Amounts for a person, without what Ray keeps for itself."""
    shown = [
        _amount(resource, amount)
        for resource, amount in sorted(amounts.items())
        if not resource.startswith("node:") and resource != "object_store_memory"
    ]
    return ", ".join(shown) or "nothing"


_ADVICE = "lower agents.NAME.resources, add nodes, or set ray.wait_s where the cluster grows"


def _request(agent: AgentConfig, *, threads: int, has_gpus: bool) -> dict[str, float]:
    if agent.device.startswith("cuda:"):
        raise RecipeError(
            f"agent {agent.name!r} names device {agent.device}; under launch: ray the cluster "
            "gives GPUs out, so leave device out and set resources: {GPU: 1}"
        )
    wants_gpu = agent.device == "cuda" or (agent.device == "auto" and has_gpus)
    asked = {"CPU": float(threads), "GPU": float(agent.gpus if wants_gpu else 0)}
    asked.update(agent.resources)
    if asked["GPU"] > 1:
        raise RecipeError(
            f"agent {agent.name!r} asks for {asked['GPU']:g} GPUs; an agent runs on one GPU so far "
            "(sharding is not built yet)"
        )
    if agent.device == "cuda" and not asked["GPU"]:
        raise RecipeError(
            f"agent {agent.name!r} has device cuda but asks for no GPU; set gpus: 1, or leave "
            "device out"
        )
    if agent.device == "cpu" and asked["GPU"]:
        raise RecipeError(f"agent {agent.name!r} asks for a GPU, but its device is cpu; drop one")
    return {resource: amount for resource, amount in asked.items() if amount}


def _holds(node: Amounts, asked: Amounts) -> bool:
    return all(node.get(resource, 0.0) >= amount for resource, amount in asked.items())


def _amount(resource: str, amount: float) -> str:
    if resource == "memory":
        return f"{amount / 2**30:.1f} GiB memory"
    return f"{amount:g} {resource}"
