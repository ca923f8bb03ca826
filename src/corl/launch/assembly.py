"""Build the agents that live in one process, run the loop over them, save what they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from corl.agent import Agent
from corl.cohort import RunAhead, StepControl, train
from corl.config import Recipe
from corl.data.order import step_rows
from corl.data.prompts import PromptSet
from corl.exchange import Exchange
from corl.exchange.base import PatientExchange
from corl.launch.evaluating import ScheduledEvaluation
from corl.policy import Policy, load_policy
from corl.policy.teacher import teacher_dtype
from corl.rollout.noise import stream_seed
from corl.run.checkpoint import (
    load_training_state,
    prune,
    save_checkpoint,
    save_final,
    teacher_of,
)
from corl.run.directory import RunDirectory, RunFacts
from corl.run.journal import Journal
from corl.supervision import load_supervision


def build_agent(
    name: str,
    *,
    recipe: Recipe,
    run: RunDirectory,
    facts: RunFacts,
    prompts: PromptSet,
    done_step: int,
    device: str,
) -> Agent:
    """One agent as it was after `done_step` (0: as its recipe starts it)."""
    config = recipe.agent(name)
    torch.set_num_threads(facts.threads[name])
    load = partial(load_policy, device=device, trust_remote_code=config.trust_remote_code)
    policy = load(
        run.checkpoint(name, done_step) if done_step else config.model,
        dtype=config.dtype,
        gradient_checkpointing=recipe.optimizer.gradient_checkpointing,
        train_vision=config.train_vision,
        lora=config.lora,
        base=config.model,
        adapter_seed=stream_seed(recipe.seed, f"{name}/adapter"),
    )
    teacher: Policy | None = None
    if load_supervision(recipe.supervision).needs_teacher:
        saved = teacher_of(run, name, done_step) if done_step else config.model
        teacher = load(saved, dtype=teacher_dtype(config.dtype))
    reference: Policy | None = None
    if recipe.grpo.kl > 0 and policy.base is None:
        reference = teacher or _frozen_start(config.model, policy, load)
    agent = Agent(
        config,
        recipe,
        run_id=facts.run_id,
        policy=policy,
        reference=reference,
        teacher=teacher,
        prompts=prompts,
        total_steps=facts.steps,
        threads=facts.threads[name],
        journal=Journal(run.journal(name)),
    )
    if done_step:
        agent.learner.load_state_dict(load_training_state(run, name, done_step))
    return agent


def _frozen_start(model: str, policy: Policy, load: Callable[..., Policy]) -> Policy:
    """The starting policy. It never learns, so compute precision is all that it needs."""
    is_bf16 = policy.compute_dtype == torch.bfloat16
    return load(model, dtype="bfloat16" if is_bf16 else "float32")


def run_agents(
    agents: Sequence[Agent],
    exchange: Exchange,
    *,
    recipe: Recipe,
    run: RunDirectory,
    facts: RunFacts,
    num_rows: int,
    done_step: int,
    control: StepControl,
    report: Callable[[], None] = lambda: None,
    ahead: tuple[PatientExchange, int] | None = None,
) -> int:
    """Train this process's agents to the end of the run, or to an agreed stop.

    ahead: the exchange once more, where it lets them sample that many steps ahead.

    Saves checkpoints on the recipe's schedule, and `final/` or, when stopped,
    one more checkpoint. Returns the last step done.
    """
    every = recipe.checkpoint.every
    evaluation = ScheduledEvaluation(recipe, run, total_steps=facts.steps)

    def after_step(step: int) -> None:
        evaluation.measure(agents, step)
        if every and step % every == 0 and step < facts.steps:
            _checkpoint(agents, step, recipe=recipe, run=run)
        report()

    def settles(step: int) -> bool:
        # What is saved or measured must not hang on how late a peer's ballots were.
        return bool(every and step % every == 0) or evaluation.is_due(step)

    if done_step == 0:
        evaluation.measure(agents, 0)
    last = train(
        agents,
        exchange,
        rows_of_step=partial(
            step_rows,
            num_rows=num_rows,
            per_step=recipe.batch.prompts,
            data_seed=recipe.order_seed,
        ),
        first_step=done_step + 1,
        last_step=facts.steps,
        control=control,
        after_step=after_step,
        ahead=RunAhead(*ahead, settles=settles) if ahead is not None and ahead[1] else None,
    )
    if last == facts.steps:
        for agent in agents:
            lora = recipe.agent(agent.name).lora
            is_merged = lora is not None and lora.save == "merged"
            save_final(run, agent.name, agent.policy, merged=is_merged)
    elif last > done_step:
        _checkpoint(agents, last, recipe=recipe, run=run)
    return last


def _checkpoint(agents: Sequence[Agent], step: int, *, recipe: Recipe, run: RunDirectory) -> None:
    names = [agent.name for agent in recipe.agents]
    for agent in agents:
        save_checkpoint(
            run,
            agent.name,
            step,
            policy=agent.policy,
            teacher=agent.teacher,
            state=agent.learner.state_dict(),
        )
    keep = recipe.health.checkpoints_to_keep(
        keep=recipe.checkpoint.keep, every=recipe.checkpoint.every
    )
    for agent in agents:
        prune(run, agent.name, names, keep=keep)
