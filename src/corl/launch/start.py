"""Start a run from a recipe, or resume one from its directory.

A resumed run is the same run: it takes recipe, run id, steps, launcher and
thread counts from the directory, is cut back to the newest step that every
agent has saved, and goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from corl.config import Recipe
from corl.data.prompts import PromptRow
from corl.errors import AgentLost, CheckpointError
from corl.exchange import rows_digest
from corl.launch.control import StopRequest
from corl.launch.in_process import run_in_process
from corl.launch.job import Job
from corl.launch.preflight import Preflight, preflight
from corl.launch.processes import run_in_processes
from corl.launch.ray import run_in_ray
from corl.launch.restarts import Restarts
from corl.launch.sites import require_new_cohort, run_at_site
from corl.run.directory import RunDirectory, RunFacts, new_run_id
from corl.run.environment import write_environment
from corl.run.files import write_atomically
from corl.run.health.monitor import HealthMonitor
from corl.run.journal import MetricsAssembler, read_records
from corl.run.progress import Progress
from corl.run.rewind import is_complete, rewind
from corl.run.tracking import Trackers, open_trackers

_LAUNCHERS: dict[str, Callable[..., int]] = {
    "in_process": run_in_process,
    "processes": run_in_processes,
    "ray": run_in_ray,
    "site": run_at_site,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a start of a run ended."""

    run: RunDirectory
    last_step: int
    total_steps: int
    restarts: int = 0
    """How often the cohort was taken back to a checkpoint because an agent was lost."""

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
    require_new_cohort(recipe)
    facts = RunFacts(
        recipe.sites.cohort if recipe.sites else new_run_id(),
        checked.threads,
        checked.launcher,
        checked.steps,
        _digests(checked),
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
    if is_complete(run, names):
        if len(read_records(run.metrics)) < facts.steps * len(names):
            # Its launcher died before it had written the last lines.
            with run.locked():
                MetricsAssembler(run, names).collect()
        raise CheckpointError(f"{run.root} is finished: all {facts.steps} steps are done")
    with run.locked():
        checked = preflight(recipe)
        for name, digest in _digests(checked).items():
            if facts.prompts.get(name, digest) != digest:
                raise CheckpointError(
                    f"the prompts of agent {name!r} are not those that {run.root} began with: "
                    f"{checked.prompts[name].source} was changed; put the old file back"
                )
        done_step = rewind(run, names)
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
    restarts = Restarts(recipe.restarts, run)
    with (
        stop.listening(),
        progress(recipe, done_step, facts.steps) as display,
        open_trackers(recipe, run, first_step=done_step + 1) as trackers,
    ):
        reports = _Reports(job, display, trackers)
        while True:
            try:
                last_step = _LAUNCHERS[facts.launch](
                    job, stop=stop, report=lambda: reports.take_up(stop)
                )
                break
            except AgentLost as lost:
                reports.take_up(stop)
                if is_complete(run, job.names):
                    # It was lost behind its last deed.
                    last_step = facts.steps
                    break
                if stop.requested:
                    raise
                restarts.require_one_more(lost, reached=reports.reached)
                job = replace(job, done_step=rewind(run, job.names), restarts=restarts.count + 1)
                restarts.note(lost, reached=reports.reached, from_step=job.done_step)
                if stop.requested:
                    raise
                reports.begin_again(job)
    last_step = reports.health.settle(last_step, total_steps=facts.steps)
    return Outcome(run, last_step, facts.steps, restarts.count)


class _Reports:
    """What a launcher's `report` does with new metrics: show, track, judge.

    After a restart, steps come again. `metrics.jsonl` and health are made anew
    then; a tracker is told each step once.
    """

    def __init__(self, job: Job, display: Progress, trackers: Trackers) -> None:
        self._display, self._trackers = display, trackers
        self._tracked = job.done_step
        self.begin_again(job)

    def begin_again(self, job: Job) -> None:
        """Take up what stands in the run's journals, in silence."""
        self.reached = job.done_step
        """Last step that the whole cohort has done."""
        self._assembler = MetricsAssembler(job.run, job.names)
        self.health = HealthMonitor(job.recipe, job.run)
        self.health.replay(self._assembler.collect())

    def take_up(self, stop: StopRequest) -> None:
        """Take up new steps; ask for a stop where the run's health policy does."""
        records = self._assembler.collect()
        for record in records:
            self._display.show(record)
            if record["step"] > self._tracked:
                self._trackers.log(record)
        if records:
            self.reached = records[-1]["step"]
            self._tracked = max(self._tracked, self.reached)
        if self.health.observe(records):
            stop.ask()
