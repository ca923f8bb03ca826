"""Whole-cohort checkpoints without a barrier.

Each agent saves for itself and gives the finished directory its name in one
rename. A step counts for the cohort once every agent has it, so nobody waits
for anybody to save, and a crash between two saves costs nothing but the time.
Optimiser state is read with `weights_only`: a checkpoint cannot run code.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from corl.errors import CheckpointError
from corl.policy import Policy, save_merged, save_policy
from corl.run.directory import RunDirectory
from corl.run.files import publish_directory

TEACHER = "teacher"
_PREFIX = "step-"


def save_checkpoint(
    run: RunDirectory,
    name: str,
    step: int,
    *,
    policy: Policy,
    state: dict[str, Any],
    teacher: Policy | None = None,
) -> None:
    """Save one agent after a step: its model, and beside it its training state and its teacher."""
    final = run.checkpoint(name, step)
    partial = _fresh(final)
    save_policy(policy, partial)
    if teacher is not None:
        save_policy(teacher, partial / TEACHER)
    training = partial / "training"
    training.mkdir()
    torch.save(state, training / "learner.pt")
    (training / "state.json").write_text(json.dumps({"step": step, "agent": name}))
    publish_directory(partial, final)


def save_final(run: RunDirectory, name: str, policy: Policy, *, merged: bool = False) -> None:
    """Save the trained model as an ordinary Hugging Face directory, or its adapters as peft's.

    merged: fold the adapters in.
    """
    final = run.final(name)
    partial = _fresh(final)
    (save_merged if merged else save_policy)(policy, partial)
    publish_directory(partial, final)


def teacher_of(run: RunDirectory, name: str, step: int) -> Path:
    """Where the agent's teacher of that step lies. Raises CheckpointError where it has none."""
    path = run.checkpoint(name, step) / TEACHER
    if not path.is_dir():
        raise CheckpointError(
            f"checkpoint {path.parent} has no teacher, which the run's supervision needs; resume "
            "from a checkpoint of the same run"
        )
    return path


def load_training_state(run: RunDirectory, name: str, step: int) -> dict[str, Any]:
    """The learner's state after a step. Raises CheckpointError where it cannot be read."""
    path = run.checkpoint(name, step) / "training" / "learner.pt"
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(f"checkpoint {path} cannot be read: {error}") from None
    return state


def cohort_steps(run: RunDirectory, names: Sequence[str]) -> list[int]:
    """Steps that every agent has a checkpoint of, oldest first."""
    per_agent = [set(_steps_of(run, name)) for name in names]
    return sorted(set.intersection(*per_agent)) if per_agent else []


def prune(run: RunDirectory, name: str, names: Sequence[str], *, keep: int) -> None:
    """Drop the agent's checkpoints older than the cohort's `keep` newest whole ones."""
    whole = cohort_steps(run, names)
    if len(whole) < keep:
        return
    oldest_kept = whole[-keep]
    for step in _steps_of(run, name):
        if step < oldest_kept:
            shutil.rmtree(run.checkpoint(name, step))


def cut_after(run: RunDirectory, name: str, step: int) -> None:
    """Drop what an agent saved behind a step, and what a crash left half-written."""
    folder = run.agent(name)
    for path in folder.glob(".*"):
        if path.is_dir():
            shutil.rmtree(path)
    for later in _steps_of(run, name):
        if later > step:
            shutil.rmtree(run.checkpoint(name, later))


def _steps_of(run: RunDirectory, name: str) -> list[int]:
    found = run.agent(name).glob(f"{_PREFIX}*")
    numbers = [path.name.removeprefix(_PREFIX) for path in found]
    return sorted(int(number) for number in numbers if number.isdigit())


def _fresh(final: Path) -> Path:
    partial = final.with_name(f".{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    return partial
