"""Start a run from a recipe, or resume one from its directory.

A resumed run is the same run: it takes recipe, run id, steps, launcher and
thread counts from the directory, is cut back to the newest step that every
agent has saved, and goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corl.config import Recipe
from corl.data.prompts import PromptRow
from corl.errors import CheckpointError
from corl.exchange import rows_digest
from corl.launch.control import StopRequest
from corl.launch.in_process import run_in_process
from corl.launch.job import Job
from corl.launch.preflight import Preflight, preflight
from corl.launch.processes import run_in_processes
from corl.run.checkpoint import cohort_steps, cut_after
from corl.run.directory import RunDirectory, RunFacts, new_run_id
from corl.run.environment import write_environment
from corl.run.files import write_atomically
from corl.run.health.monitor import HealthMonitor
from corl.run.journal import Journal, MetricsAssembler, read_records
from corl.run.progress import Progress
from corl.run.tracking import open_trackers


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a start of a run ended."""

    run: RunDirectory
    last_step: int
    total_steps: int

    @property
    def is_finished(self) -> bool:
        """Whether all steps are done, not just up to a stop."""
        return self.last_step == self.total_steps


def start_run(
    recipe: Recipe, out: str | Path, *, progress: Callable[[Recipe, int, int], Progress]
) -> Outcome:
    """Check a recipe, make its run directory and train.

    progress: makes the display, given recipe, steps done and steps in all.
    Raises RecipeError or CheckpointError before any weight is loaded.
    """
    RunDirectory(out).require_new()
    checked = preflight(recipe)
    facts = RunFacts(
        new_run_id(), checked.threads, checked.launcher, checked.steps, _digests(checked)
    )
    run = RunDirectory.create(out, recipe, facts)
    if checked.shared:
        content = {name: one.to_json() for name, one in checked.shared.items()}
        write_atomically(run.contamination, json.dumps(content, indent=1))
    with run.locked():
        return _launch(recipe, run, facts, checked, done_step=0, progress=progress)


def resume_run(root: str | Path, *, progress: Callable[[Recipe, int, int], Progress]) -> Outcome:
    """Continue a run from the newest checkpoint that every agent has."""
    run = RunDirectory(root)
    recipe, facts = run.load()
    names = [agent.name for agent in recipe.agents]
    if all(run.final(name).exists() for name in names):
        if len(read_records(run.metrics)) < facts.steps * len(names):
            # Its launcher died before it had written the last lines.
            with run.locked():
                MetricsAssembler(run, names).collect()
        raise CheckpointError(f"{run.root} is finished: all {facts.steps} steps are done")
    with run.locked():
        done_step = max(cohort_steps(run, names), default=0)
        checked = preflight(recipe)
        for name, digest in _digests(checked).items():
            if facts.prompts.get(name, digest) != digest:
                raise CheckpointError(
                    f"the prompts of agent {name!r} are not those that {run.root} began with: "
                    f"{checked.prompts[name].source} was changed; put the old file back"
                )
        for name in names:
            cut_after(run, name, done_step)
            Journal(run.journal(name)).cut_after(done_step)
            Journal(run.evaluations(name)).cut_after(done_step)
        return _launch(recipe, run, facts, checked, done_step=done_step, progress=progress)


def _digests(checked: Preflight) -> dict[str, str]:
    return {
        name: rows_digest(_content(row) for row in prompts.rows)
        for name, prompts in checked.prompts.items()
    }


def _content(row: PromptRow) -> str:
    """What must not change between a run's start and its resume."""
    return "\n".join([row.id, row.text, *(image.identity for image in row.images)])


def _launch(
    recipe: Recipe,
    run: RunDirectory,
    facts: RunFacts,
    checked: Preflight,
    *,
    done_step: int,
    progress: Callable[[Recipe, int, int], Progress],
) -> Outcome:
    write_environment(run, devices=checked.devices)
    job = Job(recipe, run, facts, checked.prompts, checked.devices, done_step)
    stop = StopRequest()
    assembler = MetricsAssembler(run, job.names)
    health = HealthMonitor(recipe, run)
    health.replay(assembler.collect())
    launcher = run_in_processes if facts.launch == "processes" else run_in_process
    with (
        stop.listening(),
        progress(recipe, done_step, facts.steps) as display,
        open_trackers(recipe, run, first_step=done_step + 1) as trackers,
    ):

        def report() -> None:
            records = assembler.collect()
            for record in records:
                display.show(record)
                trackers.log(record)
            if health.observe(records):
                stop.ask()

        last_step = launcher(job, stop=stop, report=report)
    return Outcome(run, health.settle(last_step, total_steps=facts.steps), facts.steps)
