"""Check a recipe whole before the first weight is loaded.

`corl check` shows what comes out; `corl train` and `corl resume` begin with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from corl.answers import majority
from corl.config import AgentConfig, Recipe
from corl.data.images import ImageSizes
from corl.data.order import num_steps
from corl.data.prompts import PromptRow, PromptSet, align, load_prompts
from corl.data.reading import check_kinds
from corl.errors import PromptError, RecipeError
from corl.launch.adapter_check import check_adapter
from corl.launch.cluster import cluster_devices
from corl.launch.evaluating import check_work, overlap_notes
from corl.launch.memory_check import check_memory
from corl.launch.placement import (
    available_cores,
    devices_per_agent,
    pick_launcher,
    threads_per_agent,
)
from corl.launch.ray import check_cluster
from corl.launch.restarts import check_restarts
from corl.launch.sight import check_sight
from corl.launch.sites import check_sites
from corl.policy import ModelFacts, check_model
from corl.policy.memory import MemoryNeed, memory_need
from corl.policy.vision.measure import PromptMeasure
from corl.run.tracking import missing_trackers
from corl.supervision import Supervision, load_supervision

if TYPE_CHECKING:
    from corl.evaluation.contamination import Contamination


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """What is known of one agent before it is loaded."""

    name: str
    device: str
    model: ModelFacts
    prompts: PromptSet
    longest_prompt: int
    """Tokens, system prompt and template included."""
    memory: MemoryNeed
    graded_by: str
    """The agents whose votes label it, or what else its method takes labels from."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """A recipe that holds together, and what it comes to on this machine."""

    agents: tuple[AgentCheck, ...]
    steps: int
    launcher: str
    threads: dict[str, int]
    warnings: tuple[str, ...]
    shared: dict[str, Contamination]
    """What the training prompts share with each benchmark that is measured."""

    @property
    def prompts(self) -> dict[str, PromptSet]:
        """Aligned rows of each agent."""
        return {agent.name: agent.prompts for agent in self.agents}

    @property
    def devices(self) -> dict[str, str]:
        """Device of each agent."""
        return {agent.name: agent.device for agent in self.agents}


def preflight(recipe: Recipe) -> Preflight:
    """Validate models, prompts, supervision, placement and memory.

    Raises RecipeError (or its PromptError, ModelError) with one line that names
    the first thing that cannot work.
    """
    import torch

    supervision = _check_supervision(recipe)
    models = {
        agent.name: check_model(agent.model, trust_remote_code=agent.trust_remote_code)
        for agent in recipe.agents
    }
    prompts = _check_prompts(recipe, supervision)
    check_sites(recipe)
    shared = check_work(recipe, prompts)
    cores = available_cores()
    threads = threads_per_agent(recipe, cores=cores)
    if recipe.launch == "ray":
        devices = cluster_devices(check_cluster(recipe, threads=threads))
    else:
        devices = devices_per_agent(recipe, num_gpus=torch.cuda.device_count())
    sizes = ImageSizes()
    checks = tuple(
        _check_agent(agent, recipe, models, prompts, devices, supervision, sizes)
        for agent in recipe.agents
    )
    launcher = pick_launcher(recipe, cores=cores, devices=devices)
    if launcher != "ray":
        # What a cluster's nodes have free is not known here.
        check_memory(
            {check.name: (check.device, check.memory) for check in checks},
            by_turns=launcher in ("in_process", "site"),
        )
    num_rows = len(checks[0].prompts.rows)
    notes = check_restarts(recipe, launcher=launcher)
    return Preflight(
        agents=checks,
        steps=recipe.steps
        or num_steps(num_rows=num_rows, per_step=recipe.batch.prompts, epochs=recipe.epochs),
        launcher=launcher,
        threads=threads,
        warnings=(*_warnings(recipe, checks, supervision), *overlap_notes(shared), *notes),
        shared=shared,
    )


def _check_supervision(recipe: Recipe) -> Supervision:
    supervision = load_supervision(recipe.supervision)
    for agent in recipe.agents:
        supervision.graders(agent.name, recipe.ring)
    try:
        majority([], ties=recipe.votes.ties, min_support=recipe.votes.min_support)
    except ValueError as error:
        raise RecipeError(f"votes: {error}") from None
    missing = missing_trackers(recipe)
    if missing:
        raise RecipeError(f"tracking.{missing[0]} needs corl[{missing[0]}]; install that extra")
    return supervision


def load_all_prompts(recipe: Recipe) -> dict[str, PromptSet]:
    """Aligned rows of each agent, beside their second wordings where the method needs them."""
    prompts = align({agent.name: load_prompts(recipe.prompts_of(agent)) for agent in recipe.agents})
    if load_supervision(recipe.supervision).needs_rewrites:
        return {name: _with_rewrites(name, rows, recipe) for name, rows in prompts.items()}
    return prompts


def _check_prompts(recipe: Recipe, supervision: Supervision) -> dict[str, PromptSet]:
    prompts = load_all_prompts(recipe)
    first = next(iter(prompts.values()))
    check_kinds(first.rows, isolation=recipe.votes.isolation)
    if len(first.rows) < recipe.batch.prompts:
        raise PromptError(
            f"prompt file {first.source} has {len(first.rows)} rows, fewer than the "
            f"{recipe.batch.prompts} of one step; lower batch.prompts"
        )
    if supervision.needs_labels:
        for name, rows in prompts.items():
            if all(row.label is None for row in rows.rows):
                field = recipe.prompts_of(recipe.agent(name)).answer_field
                raise PromptError(
                    f"supervision {recipe.supervision.method} needs labels, but no row of "
                    f"{rows.source} has a field {field!r}; set `prompts.answer_field`"
                )
    return prompts


def _with_rewrites(name: str, prompts: PromptSet, recipe: Recipe) -> PromptSet:
    """The agent's rows beside their second wordings."""
    config = recipe.rewritten_of(recipe.agent(name))
    if config is None:
        raise RecipeError(
            f"supervision {recipe.supervision.method} needs a second wording of agent {name!r}'s "
            "prompts; set `rewritten` for all or for the agent"
        )
    aligned = align({name: prompts, f"{name}, rewritten": load_prompts(config)})
    return replace(prompts, rewritten=aligned[f"{name}, rewritten"])


def _check_agent(
    agent: AgentConfig,
    recipe: Recipe,
    models: Mapping[str, ModelFacts],
    prompts: Mapping[str, PromptSet],
    devices: Mapping[str, str],
    supervision: Supervision,
    sizes: ImageSizes,
) -> AgentCheck:
    model, rows = models[agent.name], prompts[agent.name]
    adapter = check_adapter(agent, supervision, recipe.optimizer_of(agent))
    longest = _longest_prompt(agent, rows, model, sizes)
    sampling = recipe.sampling_of(agent)
    length = min(longest + sampling.max_tokens, model.context_length)
    return AgentCheck(
        name=agent.name,
        device=devices[agent.name],
        model=model,
        prompts=rows,
        longest_prompt=longest,
        memory=memory_need(
            model,
            agent_dtype=agent.dtype,
            device=devices[agent.name],
            optimizer=recipe.optimizer,
            keeps_reference=recipe.grpo.kl > 0,
            keeps_teacher=supervision.needs_teacher,
            lora=None if adapter is None else adapter.lora,
            adapter_parameters=0 if adapter is None else adapter.num_parameters,
            completions=_completions_of_a_step(recipe, supervision),
            max_rows=recipe.rollout.max_rows,
            sequence_length=length,
        ),
        graded_by=", ".join(supervision.graders(agent.name, recipe.ring)) or supervision.graded_by,
    )


def _completions_of_a_step(recipe: Recipe, supervision: Supervision) -> int:
    wordings = 2 if supervision.needs_rewrites else 1
    completions = max(supervision.num_votes or 0, recipe.batch.completions)
    return recipe.batch.prompts * wordings * completions


def _longest_prompt(
    agent: AgentConfig, prompts: PromptSet, model: ModelFacts, sizes: ImageSizes
) -> int:
    """Tokens of the longest row, in either wording."""
    measure = PromptMeasure(
        agent.model,
        trust_remote_code=agent.trust_remote_code,
        system_prompt=agent.system_prompt,
        chat=agent.chat,
        chat_template_kwargs=agent.chat_template_kwargs,
        sizes=sizes,
    )
    wordings = [prompts] if prompts.rewritten is None else [prompts, prompts.rewritten]
    for wording in wordings:
        check_sight(agent, model, wording)
    return max(
        _prompt_length(
            agent, measure, row, f"row {number} (id {row.id!r}) of {wording.source}", model
        )
        for wording in wordings
        for number, row in enumerate(wording.rows, start=1)
    )


def _prompt_length(
    agent: AgentConfig, measure: PromptMeasure, row: PromptRow, where: str, model: ModelFacts
) -> int:
    length = measure.length(row)
    if not length:
        raise PromptError(f"{where} is no token at all to agent {agent.name!r}")
    if length >= model.context_length:
        shown = f", {len(row.images)} image(s) included," if row.images else ""
        raise PromptError(
            f"{where} is {length} tokens long{shown} but agent {agent.name!r} has a context of "
            f"{model.context_length}: drop or shorten it"
        )
    return length


def _warnings(
    recipe: Recipe, checks: tuple[AgentCheck, ...], supervision: Supervision
) -> list[str]:
    found = []
    if not supervision.needs_rewrites:
        for agent in recipe.agents:
            if recipe.rewritten_of(agent) is not None:
                found.append(
                    f"agent {agent.name!r}: supervision {recipe.supervision.method} does not read "
                    "its `rewritten` prompts"
                )
    if recipe.launch != "ray":
        found += [
            f"agent {agent.name!r}: `{key}` is read by launch: ray alone"
            for agent in recipe.agents
            for key in ("resources", "runtime_env")
            if getattr(agent, key)
        ]
    for check in checks:
        room = check.model.context_length - check.longest_prompt
        if room < recipe.sampling_of(recipe.agent(check.name)).max_tokens:
            found.append(
                f"agent {check.name!r}: the longest prompt leaves {room} tokens of context, fewer "
                "than sampling.max_tokens; its completions end there"
            )
    return found
