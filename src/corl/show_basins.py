"""What `corl basin` and `corl pair` print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from corl.show import print_table

if TYPE_CHECKING:
    from corl.diversity.basins import Prediction
    from corl.diversity.forecast import Forecast
    from corl.diversity.pairing import Pairing

_SHOWN_IDS = 4


def show_theory(console: Console, completions: int, written: Sequence[Path]) -> None:
    """Print the portrait of two agents that label each other, without any problem on it."""
    from corl.diversity.sketches import portrait

    _say(console, f"two agents that label each other, {completions} completions, two answers:")
    console.print(portrait(completions=completions))
    _say(console, "A to the right, B upwards. Above the line \\ both climb to 1, below they fall.")
    _say_written(console, written)


def show_forecast(console: Console, found: Forecast, written: Sequence[Path]) -> None:
    """Print predicted ceilings, the portrait of the first pair, and what is lost where."""
    from corl.diversity.pair_figures import kappa_table
    from corl.diversity.sketches import heat_table, portrait

    num_problems = len(found.probed.ids)
    table = Table(
        title=f"predicted ceilings on {num_problems} problems, %", title_justify="left",
        box=None, pad_edge=False,
    )  # fmt: skip
    for title in ("method", "pupil", "teacher"):
        table.add_column(title, overflow="fold")
    for title in ("start", "ceiling", "95 % interval", "signal", "gained", "lost"):
        table.add_column(title, justify="right")
    table.add_column("lost are", overflow="fold")
    groups: list[tuple[str, Sequence[Prediction]]] = [
        ("self-reward", found.alone),
        ("Co-RL, pair", [one for two in found.pairs for one in two]),
        ("Co-RL, ring", found.ring),
    ]
    for method, group in groups:
        for index, one in enumerate(group):
            table.add_row(method if index == 0 else "", *_row(one))
    print_table(console, table)
    if len(found.alone) > 2 and found.overlaps:
        names = [one.pupil for one in found.alone]
        title = "Cohen's kappa of right and wrong"
        console.print()
        print_table(console, heat_table(names, kappa_table(names, found.overlaps), title=title))
    first, second = found.pairs[0] if found.pairs else (None, None)
    if first is not None and second is not None:
        console.print()
        _say(console, f"{first.pupil} to the right, {second.pupil} upwards; problems in each cell:")
        console.print(portrait(completions=found.completions, places=found.places(0)))
    _say(
        console,
        "Ceilings take each problem to be moved by itself alone; a network generalises, for good "
        "and for ill. Beware of a signal below 50 %.",
    )
    _say_written(console, written)


def show_pairing(console: Console, pairing: Pairing, written: Path | None) -> None:
    """Print the ring a probe favours, its teachers and what to beware of."""
    _say(console, "ring: " + " -> ".join((*pairing.names, pairing.names[0])))
    table = Table(box=None, pad_edge=False)
    for title in ("teacher", "right", "pupil", "right", "signal"):
        is_text = title in ("teacher", "pupil")
        table.add_column(
            title,
            justify="left" if is_text else "right",
            overflow="fold" if is_text else "ellipsis",
        )
    for edge in pairing.edges:
        table.add_row(
            edge.teacher, f"{100 * edge.teacher_accuracy:.1f}",
            edge.pupil, f"{100 * edge.pupil_accuracy:.1f}", f"{100 * edge.signal:.1f}",
        )  # fmt: skip
    print_table(console, table)
    how = "of all rings" if pairing.is_exhaustive else "found by search"
    _say(console, f"mean signal {100 * pairing.worth:.1f} %, the best {how}")
    for names, worth in pairing.others:
        _say(console, f"  {100 * worth:.1f} %  " + " -> ".join((*names, names[0])))
    for warning in pairing.warnings:
        _say(console, f"warning: {warning}")
    if written is not None:
        _say(console, f"recipe: {written}")


def _row(one: Prediction) -> list[str]:
    more = len(one.lost) - _SHOWN_IDS
    lost = " ".join(one.lost[:_SHOWN_IDS]) + (f" and {more} more" if more > 0 else "")
    return [
        one.pupil,
        "itself" if one.teacher == one.pupil else one.teacher,
        f"{100 * one.start:.1f}",
        f"{100 * one.ceiling:.1f}",
        f"{100 * one.interval[0]:.1f} to {100 * one.interval[1]:.1f}",
        "-" if math.isnan(one.signal) else f"{100 * one.signal:.0f}",
        str(len(one.gained)),
        str(len(one.lost)),
        lost,
    ]


def _say_written(console: Console, written: Sequence[Path]) -> None:
    if written:
        _say(console, "written: " + ", ".join(map(str, written)))


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
