"""Watches a run's metrics: writes `health.jsonl`, speaks up, and carries the recipe's policy out.

The launcher owns it, as it owns `metrics.jsonl`. The file is a function of the metrics alone, so a
resumed run makes it again from the records that are left. What is found in those does not stop the
run again: whoever resumes has seen it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from corl.config import Recipe
from corl.run.directory import RunDirectory
from corl.run.health.history import Record
from corl.run.health.rollback import roll_back
from corl.run.health.watch import Notice, Watch

FILE_NAME = "health.jsonl"


class HealthMonitor:
    """The health of one run."""

    def __init__(self, recipe: Recipe, run: RunDirectory) -> None:
        """Begins with an empty `health.jsonl`: `replay` writes again what stands."""
        self._config = recipe.health
        self._run = run
        self._names = [agent.name for agent in recipe.agents]
        group = recipe.batch.completions
        self._watches = {
            name: Watch(self._config, completions_per_group=group) for name in self._names
        }
        self._first_alarm: Notice | None = None
        self.path.unlink(missing_ok=True)

    @property
    def path(self) -> Path:
        """`RUN/health.jsonl`; it exists once a detector has spoken."""
        return self._run.root / FILE_NAME

    def replay(self, records: Sequence[Record]) -> None:
        """Take up the steps before a resume, in silence."""
        self._take_up(records)

    def observe(self, records: Sequence[Record]) -> bool:
        """Take up new steps and show alarms. Returns whether the run has to end early."""
        alarms = [notice for notice in self._take_up(records) if notice.is_alarm]
        for alarm in alarms:
            _say(f"health alarm: {alarm.message}")
        if alarms and self._first_alarm is None:
            self._first_alarm = alarms[0]
        return self._first_alarm is not None and self._config.policy in ("stop", "rollback")

    def settle(self, last_step: int, *, total_steps: int) -> int:
        """Once the agents have ended: roll back, if that is the policy, and say how to go on.

        Returns the last step that the run keeps. A rollback undoes the end of a
        run, too: the final models go with the checkpoints.
        """
        alarm, policy = self._first_alarm, self._config.policy
        if alarm is None or policy == "warn":
            return last_step
        if policy == "rollback":
            before = max(0, alarm.step - self._config.window)
            last_step = roll_back(self._run, self._names, last_step=before)
            kept = "" if last_step else ", the beginning: no checkpoint from before was kept"
            _say(f"health: rolled back to step {last_step}{kept}")
        if last_step < total_steps:
            _say(
                f"health: {alarm.detector} of agent {alarm.agent} will come again unless "
                f"{self._run.recipe_file} changes: try a lower optimizer.learning_rate, a grpo.kl "
                "above 0 or another supervision (health.policy: warn trains on regardless)"
            )
        return last_step

    def _take_up(self, records: Sequence[Record]) -> list[Notice]:
        if self._config.policy == "off":
            return []
        notices = [
            notice
            for record in records
            for notice in self._watches[record["agent"]].observe(record)
        ]
        if notices:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write("".join(json.dumps(asdict(notice)) + "\n" for notice in notices))
        return notices


def _say(text: str) -> None:
    # A live progress display takes stderr over, and shows this above its bar.
    print(text, file=sys.stderr, flush=True)
