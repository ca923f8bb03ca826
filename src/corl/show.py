"""What the command prints for a person: tables that align, next steps named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from corl.config import Recipe
from corl.run.progress import Progress

if TYPE_CHECKING:
    from corl.launch import Outcome
    from corl.launch.preflight import Preflight
    from corl.study.run import StudyOutcome


def live_progress(console: Console) -> Callable[[Recipe, int, int], Progress]:
    """A maker of progress displays on this console."""
    return lambda recipe, done_step, steps: Progress(recipe, done_step, steps, console=console)


def show_outcome(console: Console, outcome: Outcome) -> None:
    """Say where a run ended and what it left."""
    root = outcome.run.root
    if outcome.is_finished:
        after = f" after {outcome.restarts} restart(s)" if outcome.restarts else ""
        text = f"done: {outcome.total_steps} steps{after}. Models: {root}/agents/NAME/final"
    else:
        text = (
            f"stopped after step {outcome.last_step} of {outcome.total_steps}, "
            f"saved. Continue: corl resume {root}"
        )
    console.print(text, highlight=False, soft_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """Print a table; in a pipe or file as wide as it needs, for rich would cut it to 80 columns."""
    width = console.width
    if not console.is_terminal:
        natural = Measurement.get(console, console.options.update(max_width=10_000), table)
        console.width = max(width, natural.maximum)
    try:
        console.print(table)
    finally:
        console.width = width


def show_preflight(console: Console, recipe: Recipe, checked: Preflight) -> None:
    """Print what a recipe comes to on this machine."""
    table = Table(box=None, pad_edge=False)
    titles = ("agent", "model", "parameters", "device", "held", "sampling", "learning")
    for title in (*titles, "prompts", "longest"):
        table.add_column(
            title, justify="left" if title in ("agent", "model") else "right", overflow="fold"
        )
    table.add_column("graded by", overflow="fold")
    for agent in checked.agents:
        table.add_row(
            agent.name,
            agent.model.architecture,
            f"{agent.model.num_parameters:,}",
            agent.device,
            *(
                f"{need / 2**30:.2f} GiB"
                for need in (agent.memory.held, agent.memory.sampling, agent.memory.learning)
            ),
            f"{len(agent.prompts.rows):,}",
            f"{agent.longest_prompt} tokens",
            agent.graded_by,
        )
    print_table(console, table)
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


def show_study(console: Console, outcome: StudyOutcome, *, again: str) -> None:
    """Print a study's tables and where its figures lie.

    again: the command that continues it. Raises StudyError where cells failed, one line each.
    """
    from corl.study.config import StudyError
    from corl.study.table import ensembles_table, picks_table, results_table

    done = [row for row in outcome.rows if row["status"] == "done" and row["run"] is not None]
    if done:
        print_table(console, results_table(outcome.rows, title="avg@8 on held-out problems, %"))
        console.print()
        print_table(console, ensembles_table(outcome.rows))
        summary = outcome.files.pick_summary()
        if summary:
            console.print()
            print_table(console, picks_table(summary))
    said = f"figures: {outcome.files.results}"
    if outcome.is_stopped:
        said = f"stopped; what is done stands in {outcome.files.results}. Continue: {again}"
    console.print(said, highlight=False, markup=False, soft_wrap=True)
    if outcome.failed and not outcome.is_stopped:
        raise StudyError(
            "\n".join(
                f"{row['method']}, {row['setting']}, seed {row['seed']} failed: "
                f"{str(row['error']).splitlines()[0]}"
                for row in outcome.failed
            )
        )
