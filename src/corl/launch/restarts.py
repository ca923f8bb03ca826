"""Going on after an agent, its process or its node has died.

Agents wait for one another in every step, so a lost one stops the cohort: the
whole cohort goes back to the newest checkpoint that every agent has, as `corl
resume` does, and starts again. A run is a function of its recipe and seed:
what failed for a reason of its own fails again, so only losses are retried,
and a loop of them ends. Every restart is a line of RUN/restarts.jsonl.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime

from corl.config import Recipe
from corl.config.restarts import RestartsConfig
from corl.errors import (
    AgentFailed,
    AgentLost,
    CorlError,
    ExchangeLost,
    ExchangeTimeout,
    RecipeError,
)
from corl.run.directory import RunDirectory

FILE_NAME = "restarts.jsonl"


def check_restarts(recipe: Recipe, *, launcher: str) -> list[str]:
    """What a person should know of the recipe's restarts. Raises RecipeError where none can be."""
    if not recipe.restarts.limit:
        return []
    if launcher in ("in_process", "site"):
        raise RecipeError(
            f"restarts.limit is {recipe.restarts.limit}, but under launch: {launcher} a lost agent "
            "takes its launcher along; set launch: processes or ray, or restarts.limit: 0"
        )
    if not recipe.checkpoint.every:
        return ["checkpoint.every is 0: every restart begins at step 1 again"]
    return []


def may_pass(error: Exception) -> bool:
    """Whether the same step may succeed in another try: the error is of the machine, not the run.

    Machine errors are a silent peer, a lost exchange, what the system refuses
    (disk, network, memory) and what an accelerator reports.
    """
    if isinstance(error, CorlError):
        return isinstance(error, ExchangeTimeout | ExchangeLost)
    import torch

    accelerator = getattr(torch, "AcceleratorError", None)
    of_torch = [torch.OutOfMemoryError, torch.distributed.DistNetworkError]
    machine = (OSError, MemoryError, *of_torch, *([accelerator] if accelerator else []))
    return isinstance(error, machine)


class Restarts:
    """Counts the restarts of one start of a run, and says when there is none left."""

    def __init__(self, config: RestartsConfig, run: RunDirectory) -> None:
        self._config = config
        self._run = run
        self._furthest = 0
        self._fruitless = 0
        self.count = 0
        """Restarts so far."""

    def require_one_more(self, lost: AgentLost, *, reached: int) -> None:
        """Raise AgentFailed unless the cohort may be restarted.

        reached: last step that the whole cohort had done when the agent was lost.
        """
        if not self._config.limit:
            raise lost
        if self.count == self._config.limit:
            raise AgentFailed(
                f"{lost} (restarted {self.count} times, as many as restarts.limit allows)"
            )
        if self.count and reached <= self._furthest:
            self._fruitless += 1
        else:
            self._fruitless = 0
        if self._fruitless == self._config.fruitless:
            raise AgentFailed(
                f"{lost} ({self._fruitless} restarts in a row came no further than step "
                f"{self._furthest}, which restarts.fruitless takes for a crash that repeats itself)"
            )
        self._furthest = max(self._furthest, reached)

    def note(self, lost: AgentLost, *, reached: int, from_step: int) -> None:
        """Journal one more restart, show it, and pause.

        from_step: the checkpoint that the cohort was taken back to; 0: the beginning.
        """
        self.count += 1
        record = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "restart": self.count,
            "reached_step": reached,
            "from_step": from_step,
            "reason": str(lost),
        }
        with (self._run.root / FILE_NAME).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
        where = f"step {from_step}" if from_step else "its beginning, for want of a checkpoint"
        # A live progress display takes stderr over, and shows this above its bar.
        print(
            f"restart {self.count} of at most {self._config.limit}: {lost.reason}; the cohort was "
            f"at step {reached} and goes back to {where}",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(self._config.pause_s)
