"""What the measuring verbs print: `eval`, `ensemble`, `comas`, `contamination`, `doctor`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from corl.errors import CheckpointError
from corl.run.files import write_atomically
from corl.show import print_table

if TYPE_CHECKING:
    from corl.doctor import Finding
    from corl.evaluation.contamination import Contamination
    from corl.evaluation.suite import Figure, Outcome
    from corl.evaluation.suite.ensembles import EnsembleScore


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


def show_ensembles(console: Console, scores: Sequence[EnsembleScore], file: Path) -> None:
    """Print members and ensemble of each benchmark, and write all figures."""
    table = Table(title="majorities, % [95 % interval over problems]", title_justify="left",
                  box=None, pad_edge=False)  # fmt: skip
    table.add_column("benchmark")
    for title in ("problems", *scores[0].members, "pooled", "pooled - best", "p"):
        table.add_column(title, justify="right", overflow="fold")
    for one in scores:
        against = one.against_best
        table.add_row(
            one.benchmark,
            f"{one.problems:,}",
            *(_figure(figure) for figure in (*one.members.values(), one.ensemble)),
            f"{100 * against.difference:+.1f}",
            "-" if against.p_value is None else f"{against.p_value:.3f}",
        )
    print_table(console, table)
    _write(console, file, {one.benchmark: one.to_json() for one in scores})


def show_comas(console: Console, scores: Mapping[str, Mapping[str, Figure]], file: Path) -> None:
    """Print one line a model, and write all figures."""
    from corl.evaluation.suite.comas import SEVEN, seven_mean

    names = list(dict.fromkeys(name for ours in scores.values() for name in ours))
    table = Table(title="consistency of five samples, % [95 % interval over problems]",
                  title_justify="left", box=None, pad_edge=False)  # fmt: skip
    table.add_column("model", overflow="fold")
    for title in (*names, "mean of the seven"):
        table.add_column(title, justify="right")
    means = {model: seven_mean(ours) for model, ours in scores.items()}
    for model, ours in scores.items():
        mean = means[model]
        table.add_row(
            model,
            *(_figure(ours[name]) if name in ours else "-" for name in names),
            "-" if mean is None else f"{100 * mean:.1f}",
        )
    print_table(console, table)
    missing = [name for name in SEVEN if name not in names]
    if missing:
        _say(console, f"note: no mean of the seven without {', '.join(missing)}")
    content = {
        model: {
            "benchmarks": {name: figure.to_json() for name, figure in ours.items()},
            "mean_of_seven": means[model],
        }
        for model, ours in scores.items()
    }
    _write(console, file, content)


def show_contamination(console: Console, found: Mapping[str, Contamination], file: Path) -> None:
    """Print the counts and the most alike pairs, and write every match."""
    table = Table(box=None, pad_edge=False)
    table.add_column("benchmark")
    for title in ("problems", "word for word", "nearly", "siblings"):
        table.add_column(title, justify="right")
    for name, one in found.items():
        counts = (one.problems, one.exact_problems, one.near_problems, len(one.siblings))
        table.add_row(name, *(f"{count:,}" for count in counts))
    print_table(console, table)
    for name, one in found.items():
        for match in (*one.exact, *one.near)[:5]:
            _say(console, f"{name} {match.benchmark_id} ~ {match.train_id}: {match.similarity:.2f}")
            _say(console, f"  benchmark: {_brief(match.benchmark_text)}")
            _say(console, f"  training:  {_brief(match.train_text)}")
    _write(console, file, {name: one.to_json() for name, one in found.items()})


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


def _write(console: Console, file: Path, content: Any) -> None:
    try:
        write_atomically(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise CheckpointError(f"{file} cannot be written: {error.strerror}") from None
    _say(console, f"figures: {file}")


def _figure(figure: Figure) -> str:
    shown = f"{100 * figure.mean:.1f}"
    if figure.interval is None:
        return shown
    return f"{shown} [{100 * figure.interval[0]:.1f}, {100 * figure.interval[1]:.1f}]"


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else f"{line[:157]}..."


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
