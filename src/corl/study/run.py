"""Run a study: every cell an ordinary run, then measured.

A cell that is done is skipped, an unfinished run is resumed, a cell that fails is recorded with its
error and the next one goes on. No run knows that it is part of a study.
"""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from corl.config import Recipe
from corl.errors import CheckpointError, CorlError, RecipeError
from corl.launch import resume_run, start_run
from corl.run.checkpoint import cohort_steps
from corl.run.directory import RunDirectory
from corl.show import live_progress
from corl.study.cells import Cell, cells_of, recipe_of
from corl.study.config import UNTRAINED, StudyConfig, StudyError, load_study
from corl.study.evaluate import CohortSheets, Evaluation
from corl.study.files import Row, StudyFiles, alarms_of, write_records
from corl.study.measure import Measurer

DONE, FAILED, RUNNING = "done", "failed", "running"
"""The three values of a row's status."""


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """How a start of a study ended."""

    files: StudyFiles
    rows: list[Row]
    is_stopped: bool

    @property
    def failed(self) -> list[Row]:
        """Rows of the cells that failed."""
        return [row for row in self.rows if row["status"] == FAILED]


def run_study(study: StudyConfig, out: str | Path, *, console: Console) -> StudyOutcome:
    """Run what of a study is not done yet. Ctrl-C and SIGTERM leave it to be continued.

    Raises StudyError, PromptError or CheckpointError before anything is trained; an error of a cell
    is recorded in its row and raises nothing.
    """
    if not Path(study.recipe).is_file():
        raise StudyError(f"recipe {study.recipe} of study {study.name!r} does not exist")
    files = StudyFiles(Path(out))
    is_stopped = False
    with _sigterm_interrupts(), Measurer(study.evaluate.workers) as measurer:
        evaluation = Evaluation(study.evaluate, measurer)
        _refuse_another_study(study, files)
        files.open(study.to_yaml())
        runner = _Runner(study, files, evaluation, console)
        try:
            runner.run()
        except KeyboardInterrupt:
            is_stopped = True
    return StudyOutcome(files, runner.ordered_rows(), is_stopped)


class _Runner:
    """One start of a study: its rows by cell."""

    def __init__(
        self, study: StudyConfig, files: StudyFiles, evaluation: Evaluation, console: Console
    ) -> None:
        self._study = study
        self._files = files
        self._evaluation = evaluation
        self._console = console
        self._cells = cells_of(study)
        self._rows = {_row_key(row): row for row in files.rows()}
        self._picks = {_row_key(row): row for row in files.pick_rows()}

    def run(self) -> None:
        """Bring every cell to its end."""
        todo = [cell for cell in self._cells if not self._is_done(cell)]
        if len(todo) < len(self._cells):
            self._say(f"{len(self._cells) - len(todo)} of {len(self._cells)} cells are done")
        started = time.monotonic()
        for number, cell in enumerate(todo):
            left = ""
            if number:
                per_cell_s = (time.monotonic() - started) / number
                left = f", about {per_cell_s * (len(todo) - number) / 60:.0f} min to go"
            self._say(f"cell {number + 1} of {len(todo)}: {cell.title}{left}")
            self._run_cell(cell)

    def ordered_rows(self) -> list[Row]:
        """Rows of this study: the untrained models first, then cells in order."""
        first_seed = self._study.seeds[0]
        untrained = [(UNTRAINED, setting.name, first_seed) for setting in self._study.settings]
        keys = [*untrained, *map(_cell_key, self._cells)]
        return [self._rows[key] for key in keys if key in self._rows]

    def _is_done(self, cell: Cell) -> bool:
        row = self._rows.get(_cell_key(cell), {})
        run = RunDirectory(self._files.cell(cell.name))
        return (
            row.get("status") == DONE
            and row.get("run") == _identity(cell)["run"]
            and run.facts_file.exists()
        )

    def _run_cell(self, cell: Cell) -> None:
        started = time.monotonic()
        run = RunDirectory(self._files.cell(cell.name))
        self._record(cell, RUNNING)
        try:
            recipe = recipe_of(self._study, cell)
            before = self._evaluation.untrained(recipe)
            self._record_untrained(cell, recipe, before)
            self._record(cell, RUNNING, **self._evaluation.accuracies(recipe, before, None))
            self._train(recipe, run)
            measured = self._measure(cell, recipe, run, before)
        except CorlError as error:
            self._fail(cell, str(error))
        except Exception as error:  # a defect in one method must not cost the others
            self._fail(cell, f"{type(error).__name__}: {error}")
        else:
            self._record(cell, DONE, seconds=round(time.monotonic() - started, 1), **measured)
            self._say_gains(measured["agents"])
            if not self._study.evaluate.keep_checkpoints:
                _drop_checkpoints(run, recipe)

    def _train(self, recipe: Recipe, run: RunDirectory) -> None:
        """Bring the cell's run to its end, from wherever it is.

        A run takes Ctrl-C to stop whole; here it goes on as the KeyboardInterrupt that it was.
        """
        progress = live_progress(self._console)
        if not run.facts_file.exists():
            outcome = start_run(recipe, run.root, progress=progress)
        elif all(run.final(agent.name).exists() for agent in recipe.agents):
            return
        else:
            outcome = resume_run(run.root, progress=progress)
        if not outcome.is_finished:
            _refuse_ended_by_health(recipe, run, outcome.last_step)
            raise KeyboardInterrupt

    def _measure(
        self, cell: Cell, recipe: Recipe, run: RunDirectory, before: CohortSheets
    ) -> dict[str, Any]:
        """Measure a trained cell, write its curve and picks; return the fields of its row."""
        after = self._evaluation.trained(recipe, run)
        alarms = alarms_of(run.root)
        if self._evaluation.every:
            sheets = self._evaluation.along(recipe, run, before, after)
            write_records(run.root / "evaluations.jsonl", self._evaluation.curve(sheets))
            self._picks[_cell_key(cell)] = {
                **_identity(cell),
                "agents": self._evaluation.picks(sheets, alarms),
            }
            keys = map(_cell_key, self._cells)
            self._files.write_picks([self._picks[key] for key in keys if key in self._picks])
        return {**self._evaluation.accuracies(recipe, before, after), "alarms": alarms}

    def _fail(self, cell: Cell, error: str) -> None:
        known = {
            key: value
            for key, value in self._rows[_cell_key(cell)].items()
            if key in ("agents", "ensemble_maj_at_8")
        }
        alarms = alarms_of(self._files.cell(cell.name))
        self._record(cell, FAILED, error=error, alarms=alarms, **known)
        self._say(f"  failed: {error.splitlines()[0] if error else 'no message'}")

    def _record(self, cell: Cell, status: str, **fields: Any) -> None:
        self._rows[_cell_key(cell)] = _row(_identity(cell), status, **fields)
        self._files.write_rows(self.ordered_rows())

    def _record_untrained(self, cell: Cell, recipe: Recipe, sheets: CohortSheets) -> None:
        seed = self._study.seeds[0]
        identity = {"method": UNTRAINED, "setting": cell.setting.name, "seed": seed, "run": None}
        fields = self._evaluation.accuracies(recipe, sheets, sheets)
        self._rows[_row_key(identity)] = _row(identity, DONE, **fields)

    def _say_gains(self, agents: list[Row]) -> None:
        gains = [
            f"{agent['name']} {100 * agent['before']['avg_at_8']:.1f} -> "
            f"{100 * agent['after']['avg_at_8']:.1f}"
            for agent in agents
        ]
        self._say(f"  avg@8, %: {'; '.join(gains)}")

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def _refuse_another_study(study: StudyConfig, files: StudyFiles) -> None:
    """Raise where the directory holds figures that this study would not make."""
    older = files.root / "study.yaml"
    ours, theirs = (
        one.evaluate.model_dump(exclude={"workers", "keep_checkpoints"})
        for one in (study, load_study(older) if older.exists() else study)
    )
    if ours != theirs:
        raise StudyError(
            f"{files.root} holds a study that is measured otherwise (`evaluate` differs); "
            "give another --out"
        )
    for cell in cells_of(study):
        run = RunDirectory(files.cell(cell.name))
        if run.facts_file.exists():
            saved, _ = run.load()
            with suppress(RecipeError):  # a broken recipe is its own cell's failure
                _require_same(saved, recipe_of(study, cell), run.root)


def _require_same(saved: Recipe, recipe: Recipe, root: Path) -> None:
    ours = recipe.model_dump(exclude={"name"})
    theirs = saved.model_dump(exclude={"name"})
    differing = [key for key in ours if ours[key] != theirs.get(key)]
    if differing:
        raise CheckpointError(
            f"{root} was made by another recipe ({', '.join(differing)} differ); remove it to run "
            "this cell anew, or give the study another --out"
        )


def _refuse_ended_by_health(recipe: Recipe, run: RunDirectory, last_step: int) -> None:
    """Raise CheckpointError where the run's own health policy ended it, and not a signal."""
    alarms = alarms_of(run.root)
    if recipe.health.policy in ("stop", "rollback") and alarms:
        raise CheckpointError(
            f"health.policy {recipe.health.policy} ended the run, now at step {last_step}: "
            f"{alarms[-1]['message']}"
        )


def _drop_checkpoints(run: RunDirectory, recipe: Recipe) -> None:
    names = [agent.name for agent in recipe.agents]
    for step in cohort_steps(run, names):
        for name in names:
            shutil.rmtree(run.checkpoint(name, step))


def _row(identity: Row, status: str, **fields: Any) -> Row:
    return {
        **identity,
        "status": status,
        "error": None,
        "seconds": None,
        "agents": [],
        "alarms": [],
        **fields,
    }


def _identity(cell: Cell) -> Row:
    return {
        "method": cell.method.name,
        "setting": cell.setting.name,
        "seed": cell.seed,
        "run": f"cells/{cell.name}",
    }


def _cell_key(cell: Cell) -> tuple[str, str, int]:
    return cell.method.name, cell.setting.name, cell.seed


def _row_key(row: Mapping[str, Any]) -> tuple[str, str, int]:
    return row["method"], row["setting"], row["seed"]


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """SIGTERM acts like Ctrl-C between the runs, which have their own way to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
