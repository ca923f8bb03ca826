"""What the command prints for a person: tables that align, next steps named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from corl.config import Recipe
from corl.run.progress import Progress

if TYPE_CHECKING:
    from corl.launch import Outcome
    from corl.launch.preflight import Preflight


def live_progress(console: Console) -> Callable[[Recipe, int, int], Progress]:
    """A maker of progress displays on this console."""
    return lambda recipe, done_step, steps: Progress(recipe, done_step, steps, console=console)


def show_outcome(console: Console, outcome: Outcome) -> None:
    """Say where a run ended and what it left."""
    root = outcome.run.root
    if outcome.is_finished:
        text = f"done: {outcome.total_steps} steps. Models: {root}/agents/NAME/final"
    else:
        text = (
            f"stopped after step {outcome.last_step} of {outcome.total_steps}, "
            f"saved. Continue: corl resume {root}"
        )
    console.print(text, highlight=False, soft_wrap=True)


def show_preflight(console: Console, recipe: Recipe, checked: Preflight) -> None:
    """Print what a recipe comes to on this machine."""
    table = Table(box=None, pad_edge=False)
    for title in ("agent", "model", "parameters", "device", "memory", "prompts", "longest"):
        table.add_column(title, justify="left" if title in ("agent", "model") else "right")
    table.add_column("graded by")
    for agent in checked.agents:
        table.add_row(
            agent.name,
            agent.model.architecture,
            f"{agent.model.num_parameters:,}",
            agent.device,
            f"{agent.memory.total / 2**30:.2f} GiB",
            f"{len(agent.prompts.rows):,}",
            f"{agent.longest_prompt} tokens",
            ", ".join(agent.graders) or "itself",
        )
    console.print(table)
    threads = ", ".join(f"{name} {count}" for name, count in checked.threads.items())
    batch = recipe.batch
    console.print(
        f"{recipe.supervision.method}, {checked.steps} steps of {batch.prompts} prompts x "
        f"{batch.completions} completions; launch {checked.launcher}; threads: {threads}",
        highlight=False,
        soft_wrap=True,
    )
    for warning in checked.warnings:
        console.print(f"warning: {warning}", highlight=False, soft_wrap=True)
    console.print("the recipe holds together", highlight=False)
