"""What `corl kappa` prints: one line a model, one a pair, one a pair without labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from corl.show import print_table

if TYPE_CHECKING:
    from corl.diversity.comparison import Pair, Probe
    from corl.diversity.intervals import Interval
    from corl.diversity.probe import ProbeOutcome


def show_kappa(console: Console, outcome: ProbeOutcome) -> None:
    """Print a probe's tables, what to know about them, and where the figures lie."""
    probe = outcome.probe
    print_table(console, _models_table(probe))
    if any(pair.overlap is not None for pair in probe.pairs):
        console.print()
        print_table(console, _overlap_table(probe))
    if probe.pairs:
        console.print()
        print_table(console, _label_free_table(probe))
    for note in [*_reasons(probe), *probe.notes]:
        _say(console, f"note: {note}")
    _say(console, f"figures: {outcome.file}")


def _models_table(probe: Probe) -> Table:
    from corl.diversity.record import accuracy

    table = _table(f"{len(probe.ids):,} problems; [95 % intervals over problems]", left=("model",))
    for title in ("samples", "accuracy, %", "no answer, %"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in probe.models:
        measured = accuracy(one, probe.labels)
        table.add_row(
            escape(one.name),
            str(one.samples),
            "-" if measured is None else _percent(*measured),
            f"{100 * one.no_answer:.1f}",
        )
    return table


def _overlap_table(probe: Probe) -> Table:
    table = _table("Error overlap", left=("model", "and"))
    for title in ("kappa", "at most", "exactly one right, %", "same wrong answer, %",
                  "at least one right, %"):  # fmt: skip
        table.add_column(title, justify="right", no_wrap=True)
    for pair in probe.pairs:
        one = pair.overlap
        assert one is not None
        table.add_row(
            *_names(pair),
            _number(one.kappa, one.kappa_interval),
            _number(one.kappa_max, None),
            _percent(one.exactly_one_right, one.exactly_one_right_interval),
            _percent(one.same_wrong_answer, one.same_wrong_answer_interval),
            _percent(one.at_least_one_right, one.at_least_one_right_interval),
        )
    return table


def _label_free_table(probe: Probe) -> Table:
    table = _table("Without labels", left=("model", "and"))
    for title in ("same answer, %", "beyond chance", "of minority answers, %", "kappa estimate"):
        table.add_column(title, justify="right", no_wrap=True)
    for pair in probe.pairs:
        free = pair.label_free
        table.add_row(
            *_names(pair),
            _percent(free.agreement, free.agreement_interval),
            _number(free.beyond_chance, None),
            _percent(free.minority_agreement, free.minority_agreement_interval),
            _number(free.kappa_estimate, None),
        )
    return table


def _reasons(probe: Probe) -> list[str]:
    """Why figures are missing; a reason that all pairs share is said once."""
    said: list[str] = []
    for pair in probe.pairs:
        where = " and ".join(dict.fromkeys((pair.a.name, pair.b.name)))
        if pair.overlap is not None and pair.overlap.kappa_reason:
            said.append(f"{where}: kappa is undefined; {pair.overlap.kappa_reason}")
        if pair.label_free.reason:
            said.append(f"no kappa estimate: {pair.label_free.reason}")
    return list(dict.fromkeys(said))


def _names(pair: Pair) -> tuple[str, str]:
    if pair.seeds == (0, 0):
        return escape(pair.a.name), escape(pair.b.name)
    first, second = pair.seeds
    return escape(pair.a.name), f"itself, seed {first} and {second}"


def _percent(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "-"
    said = f"{100 * value:.1f}"
    if interval is None:
        return said
    return escape(f"{said} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]")


def _number(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "-"
    if interval is None:
        return f"{value:.2f}"
    return escape(f"{value:.2f} [{interval.low:.2f}, {interval.high:.2f}]")


def _table(title: str, *, left: tuple[str, ...]) -> Table:
    table = Table(
        title=escape(title), title_justify="left", title_style="bold", box=None, pad_edge=False
    )
    for name in left:
        table.add_column(name, overflow="fold")
    return table


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
