"""Benchmarks measured while a run trains, on a schedule.

It asks the policies between two steps and writes RUN/agents/NAME/evaluations.jsonl, one line a
step and benchmark. Nothing of it reaches a reward, a ballot or a generator, so a run ends with the
same weights whether it is measured or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from corl.agent import Agent
from corl.config import Recipe
from corl.data.prompts import PromptSet
from corl.run.directory import RunDirectory
from corl.run.journal import Journal

if TYPE_CHECKING:
    from corl.evaluation.benchmarks import Benchmark, Item
    from corl.evaluation.contamination import Contamination
    from corl.evaluation.graders import Grader
    from corl.evaluation.suite import Score

    Work = list[tuple[Benchmark, list[Item]]]


def load_work(recipe: Recipe) -> Work:
    """Benchmarks and rows that the recipe measures; none where it never does.

    Raises RecipeError or PromptError naming what cannot be read, GradingError or SandboxError
    where a grader could not work here.
    """
    config = recipe.evaluation
    if not config.every:
        return []
    from corl.evaluation.benchmarks import load_benchmark, load_items
    from corl.evaluation.suite.job import check_graders

    work = []
    for entry in config.benchmarks:
        benchmark = load_benchmark(entry.benchmark)
        work.append((benchmark, load_items(benchmark, entry.file, limit=config.limit)))
    check_graders([benchmark for benchmark, _ in work])
    return work


def check_work(recipe: Recipe, prompts: Mapping[str, PromptSet]) -> dict[str, Contamination]:
    """Read all benchmarks, and hold their prompts against every agent and the training prompts.

    Returns what training shares with each benchmark. Raises as `load_work`.
    """
    work = load_work(recipe)
    if not work:
        return {}
    from corl.evaluation.contamination import overlap
    from corl.evaluation.suite.contaminated import benchmark_problems, training_problems
    from corl.evaluation.suite.subjects import agent_subject, check_subject

    for agent in recipe.agents:
        check_subject(agent_subject(recipe, agent, agent.model, name=agent.name), work)
    rows = dict.fromkeys(row for rows in prompts.values() for row in rows.rows)
    return {
        benchmark.name: overlap(training_problems(rows), benchmark_problems(items))
        for benchmark, items in work
    }


def overlap_notes(shared: Mapping[str, Contamination]) -> list[str]:
    """One line for each benchmark that the training prompts hold problems of."""
    return [
        f"benchmark {name}: of its {one.problems} problems {one.exact_problems} stand in the "
        f"training prompts word for word and {one.near_problems} nearly"
        for name, one in shared.items()
        if one.exact or one.near
    ]


class ScheduledEvaluation:
    """Measures agents after the steps that the recipe names."""

    def __init__(self, recipe: Recipe, run: RunDirectory, *, total_steps: int) -> None:
        self._recipe, self._run, self._total_steps = recipe, run, total_steps
        self._work = load_work(recipe)

    def is_due(self, step: int) -> bool:
        """Whether a step is measured: every so many, the untrained and the trained model."""
        every = self._recipe.evaluation.every
        return bool(self._work) and (step % every == 0 or step == self._total_steps)

    def measure(self, agents: Sequence[Agent], step: int) -> None:
        """Measure where the step is due."""
        if not self.is_due(step):
            return
        from corl.evaluation.graders import grader_of

        with ExitStack() as stack:
            graders = [stack.enter_context(grader_of(benchmark)) for benchmark, _ in self._work]
            for agent in agents:
                journal = Journal(self._run.evaluations(agent.name))
                for (benchmark, items), grader in zip(self._work, graders, strict=True):
                    score = self._score(agent, benchmark, items, grader)
                    journal.append({"step": step, "agent": agent.name, **_line(score)})

    def _score(
        self, agent: Agent, benchmark: Benchmark, items: Sequence[Item], grader: Grader
    ) -> Score:
        from corl.evaluation.suite import EvalSettings, evaluate_policy
        from corl.evaluation.suite.subjects import agent_subject

        recipe, config = self._recipe, self._recipe.evaluation
        training = recipe.agent(agent.name)
        settings = EvalSettings.of(
            samples=config.samples,
            greedy=config.greedy,
            temperature=config.temperature,
            top_p=config.top_p,
            max_tokens=config.max_tokens or recipe.sampling_of(training).max_tokens,
            batch_rows=recipe.rollout.max_rows,
        )
        subject = agent_subject(recipe, training, training.model, name=agent.name)
        return evaluate_policy(
            agent.policy,
            benchmark,
            items,
            subject.asking(
                settings,
                benchmark,
                temperature=settings.temperature,
                chat=subject.asks_by_chat(agent.policy.tokenizer),
            ),
            samples=settings.samples_of(benchmark),
            greedy=settings.is_greedy_on(benchmark),
            seed=settings.seed,
            grader=grader,
        )


def _line(score: Score) -> dict[str, Any]:
    """What is kept of a score: every figure with its interval, and how completions ended."""
    return {"benchmark": score.benchmark, **score.to_json()}
