"""What `corl eval` and `corl doctor` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from corl.show import print_table

if TYPE_CHECKING:
    from corl.doctor import Finding
    from corl.evaluation.suite import Outcome


def show_scores(console: Console, outcome: Outcome) -> None:
    """Print an evaluation's tables, what to know about them, and where the figures lie."""
    from corl.evaluation.suite.tables import comparisons_table, scores_table

    print_table(console, scores_table(outcome.scores))
    if outcome.comparisons:
        console.print()
        print_table(console, comparisons_table(outcome.comparisons))
    for note in outcome.notes:
        _say(console, f"note: {note}")
    for name, scores in outcome.scores.items():
        for one in scores:
            unjudged = one.verdicts["timeout"] + one.verdicts["error"]
            if unjudged:
                _say(
                    console,
                    f"note: {name}, {one.benchmark}: {one.verdicts['timeout']} completions ran out "
                    f"of time and {one.verdicts['error']} ended their grader; none counts as right",
                )
    _say(console, f"figures: {outcome.results}")


def show_findings(console: Console, findings: list[Finding]) -> None:
    """Print what a machine has, then what it lacks and what to do about it."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in findings:
        table.add_row(one.name, one.value)
    print_table(console, table)
    advice = [one for one in findings if one.advice]
    if advice:
        console.print()
    for one in advice:
        _say(console, f"{one.name}: {one.advice}")


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
