"""Taking an unfinished run back to the newest checkpoint that every agent has.

`corl resume` and restarts begin with it. An agent's process that outlived its
launcher, or was cut off from it, could still write into the run: it holds the
lock of its agent's folder while it lives, and nothing is cut until it is gone.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack

from corl.run.checkpoint import cohort_steps, cut_after
from corl.run.directory import RunDirectory
from corl.run.journal import Journal


def is_complete(run: RunDirectory, names: Sequence[str]) -> bool:
    """Whether every agent has come to the end and saved its trained model."""
    return all(run.final(name).exists() for name in names)


def rewind(run: RunDirectory, names: Sequence[str], *, wait_s: float = 60.0) -> int:
    """Cut checkpoints, journals and final models back. Returns the step to go on from, or 0.

    wait_s: longest wait for an earlier process of an agent. Raises
    CheckpointError where one is still there after it.
    """
    with ExitStack() as locks:
        for name in names:
            locks.enter_context(run.agent_locked(name, wait_s=wait_s))
        step = max(cohort_steps(run, names), default=0)
        for name in names:
            shutil.rmtree(run.final(name), ignore_errors=True)
            cut_after(run, name, step)
            Journal(run.journal(name)).cut_after(step)
            Journal(run.evaluations(name)).cut_after(step)
    return step
