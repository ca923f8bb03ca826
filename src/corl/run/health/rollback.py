"""Taking a stopped run back to a checkpoint from before its alarm."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from corl.run.checkpoint import cohort_steps, cut_after
from corl.run.directory import RunDirectory


def roll_back(run: RunDirectory, names: Sequence[str], *, last_step: int) -> int:
    """Drop final models and every checkpoint behind `last_step`.

    Returns the step that `corl resume` goes on from: that of the newest
    checkpoint left to all agents, or 0, the beginning. Journals and metrics stay
    as they are until then.
    """
    step = max((step for step in cohort_steps(run, names) if step <= last_step), default=0)
    for name in names:
        shutil.rmtree(run.final(name), ignore_errors=True)
        cut_after(run, name, step)
    return step
