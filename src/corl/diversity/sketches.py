"""Pictures for a terminal: a heat map as a coloured table, a phase portrait as a grid of signs.

Both read without colour. Shapes: N models, P problems.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from corl.diversity.dynamics import peer_drift
from corl.diversity.pictures import Places

CELLS = 21
"""Cells along each axis of a portrait; odd, so that the line meets the middle of one."""

_ARROWS = "→↗↑↖←↙↓↘"
_SEPARATRIX, _EMPTY = "\\", "·"


def heat_table(
    names: Sequence[str], values: Sequence[Sequence[float | None]], *, title: str
) -> Table:
    """A square table whose cells are shaded by their figure, -1 blue to 1 red.

    values: [N][N], None where there is no figure.
    """
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for name, row in zip(names, values, strict=True):
        table.add_row(name, *(_shaded(value) for value in row))
    return table


def portrait(*, completions: int, places: Places | None = None) -> Text:
    """The unit square of two agents' chances, the first to the right and the second upwards.

    Without problems every cell shows where the flow leads; with them, how many stand in it (+ for
    more than 9), green where most end right and red where they end wrong. `\\` is the separatrix.
    """
    counts, ends = _cells(places)
    text = Text(no_wrap=True)
    for row in range(CELLS):
        height = CELLS - 1 - row
        text.append(f"{height / (CELLS - 1):.2f}" if height % 5 == 0 else "    ")
        for column in range(CELLS):
            number = counts[height, column]
            if number:
                is_right = ends[height, column] >= 0.5 * number
                text.append(
                    f" {number if number <= 9 else '+'}", style="green" if is_right else "red"
                )
            elif height + column == CELLS - 1:
                text.append(f" {_SEPARATRIX}")
            elif places is None:
                text.append(f" {_arrow(column, height, completions)}", style="dim")
            else:
                text.append(f" {_EMPTY}", style="dim")
        text.append("\n")
    text.append(
        "     " + "".join(f"{column / (CELLS - 1):<10.2f}" for column in range(0, CELLS, 5))
    )
    return text


def _arrow(column: int, height: int, completions: int) -> str:
    first, second = column / (CELLS - 1), height / (CELLS - 1)
    right = float(peer_drift(first, second, completions))
    up = float(peer_drift(second, first, completions))
    if right == up == 0:
        return "o"
    eighth = round(float(np.arctan2(up, right)) / (np.pi / 4))
    return _ARROWS[eighth % 8]


def _cells(places: Places | None) -> tuple[np.ndarray, np.ndarray]:
    """[height, column] number of problems at each cell, and the sum of their ends."""
    counts, ends = np.zeros((CELLS, CELLS), dtype=int), np.zeros((CELLS, CELLS))
    if places is not None:
        columns = np.rint(np.asarray(places.first) * (CELLS - 1)).astype(int)
        heights = np.rint(np.asarray(places.second) * (CELLS - 1)).astype(int)
        np.add.at(counts, (heights, columns), 1)
        np.add.at(ends, (heights, columns), np.asarray(places.ends))
    return counts, ends


def _shaded(value: float | None) -> Text:
    if value is None:
        return Text("-", style="dim")
    faded = round(255 * (1 - min(abs(value), 1.0)))
    colour = (255, faded, faded) if value > 0 else (faded, faded, 255)
    return Text(f" {value:.2f} ", style=f"black on rgb({colour[0]},{colour[1]},{colour[2]})")
