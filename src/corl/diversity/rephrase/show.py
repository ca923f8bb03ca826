"""What `corl rephrase` prints at its end."""

from __future__ import annotations

from rich.console import Console

from corl.diversity.rephrase.job import Outcome


def show_rephrased(console: Console, outcome: Outcome) -> None:
    """Say what came of a job and where it lies; a stopped one ends the command with code 130."""
    lines = [f"{outcome.rewritten:,} of {outcome.rows:,} prompts rewritten"]
    if outcome.is_stopped:
        lines.append(f"stopped; every reply is kept in {outcome.journal}. Run again, it continues")
    else:
        lines.append(f"prompts: {outcome.file}; both wordings: {outcome.audit}")
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if outcome.is_stopped:
        raise SystemExit(130)
