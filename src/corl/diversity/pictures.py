"""Pictures of a probe as PNG or SVG: kappa heat map, phase portrait, table of pairs.

matplotlib (extra `plots`) is imported inside. Equal input gives equal bytes: no clock, no global
state, no display.

Shapes: N models, P problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corl.diversity.dynamics import peer_drift
from corl.errors import RecipeError

DPI = 150
FORMATS = (".png", ".svg")
CLIMBS, FALLS, STAYS = "#1a7f5a", "#c0392b", "#8a8a8a"

_INK, _FLOW = "#222222", "#b9c4d0"
_JITTER = 0.012


@dataclass(frozen=True, slots=True)
class Places:
    """Problems on a phase portrait."""

    first: Sequence[float]
    """[P] chance of a right answer of the agent on the horizontal axis."""
    second: Sequence[float]
    """[P] of the one on the vertical axis."""
    ends: Sequence[float]
    """[P] mean share of right answers at the end, which decides the colour."""


def heat_map(
    path: Path,
    names: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    title: str = "Cohen's kappa of right and wrong",
    limits: tuple[float, float] = (-1.0, 1.0),
) -> Path:
    """A square table in colours. values: [N][N], None where there is no figure."""
    size = len(names)
    shown = np.array([[np.nan if v is None else v for v in row] for row in values], dtype=float)
    if shown.shape != (size, size):
        raise RecipeError(f"{size} names and a table of {shown.shape}: a heat map is square")
    figure = _figure(path, max(4.0, 1.2 + 0.85 * size), max(3.4, 0.9 + 0.75 * size))
    axes = figure.add_subplot()
    image = axes.imshow(shown, cmap="RdBu_r", vmin=limits[0], vmax=limits[1])
    axes.set_xticks(range(size), names, rotation=35, ha="right")
    axes.set_yticks(range(size), names)
    middle, reach = (limits[0] + limits[1]) / 2, (limits[1] - limits[0]) / 2
    for row, column in np.ndindex(size, size):
        value = shown[row, column]
        is_dark = abs(value - middle) > 0.6 * reach
        axes.text(
            column, row, "-" if np.isnan(value) else f"{value:.2f}",
            ha="center", va="center", fontsize=9, color="white" if is_dark else _INK,
        )  # fmt: skip
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_facecolor("#f2f2f2")
    figure.colorbar(image, ax=axes, shrink=0.85)
    axes.set_title(title, fontsize=11, color=_INK)
    return _save(figure, path)


def phase_portrait(
    path: Path,
    *,
    completions: int,
    names: tuple[str, str] = ("A", "B"),
    places: Places | None = None,
) -> Path:
    """The flow of two agents that label each other, its separatrix, and problems on it.

    The flow and the line are the two-answer theory's; the colours of the problems are the
    many-answer prediction, so a dot may stand below the line and yet climb.
    """
    figure = _figure(path, 6.0, 6.2)
    axes = figure.add_subplot()
    grid = np.linspace(0.0, 1.0, 21)
    first, second = np.meshgrid(grid, grid)
    axes.streamplot(
        grid, grid,
        peer_drift(first, second, completions), peer_drift(second, first, completions),
        color=_FLOW, density=1.1, linewidth=0.8, arrowsize=0.9,
    )  # fmt: skip
    axes.plot([0, 1], [1, 0], "--", color=_INK, linewidth=1.2, label="separatrix")
    for corner in (0, 1):
        axes.plot(
            corner, corner, "o", color=_INK, markersize=9, clip_on=False, zorder=4,
            markerfacecolor=_INK if corner else "white",
        )  # fmt: skip
    if places is not None:
        _scatter(axes, places)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel(f"{names[0]}: chance of a right answer")
    axes.set_ylabel(f"{names[1]}: chance of a right answer")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("Two agents that label each other", fontsize=11, color=_INK, pad=12)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4, frameon=False, fontsize=8.5
    )
    return _save(figure, path)


def table(
    path: Path, headings: Sequence[str], rows: Sequence[Sequence[str]], *, title: str
) -> Path:
    """Rows of text as a picture; the first column on the left, others on the right."""
    columns = list(zip(headings, *rows, strict=True))
    widths = [max(map(len, column)) + 3 for column in columns]
    height = 0.28 * (len(rows) + 1) + 0.5
    figure = _figure(path, max(3.0, 0.085 * sum(widths) + 0.3), height)
    axes = figure.add_subplot()
    axes.axis("off")
    axes.set_title(title, fontsize=11, color=_INK, loc="left")
    drawn = axes.table(
        [list(row) for row in rows],
        colLabels=list(headings),
        colWidths=[width / sum(widths) for width in widths],
        loc="upper left",
        edges="horizontal",
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    for (row, column), cell in drawn.get_celld().items():
        cell.set_text_props(
            ha="left" if column == 0 else "right", weight="bold" if row == 0 else "normal"
        )
        cell.set_edgecolor("#d0d0d0")
        cell.PAD = 0.04
        cell.set_height(1 / (len(rows) + 1))
    return _save(figure, path)


def _scatter(axes: Any, places: Places) -> None:
    first, second = np.asarray(places.first), np.asarray(places.second)
    ends = np.asarray(places.ends)
    # Few samples put many problems on one spot.
    noise = np.random.default_rng(0).normal(0, _JITTER, size=(2, len(first)))
    is_right, is_wrong = ends > 0.75, ends < 0.25
    for chosen, colour, says in (
        (is_right, CLIMBS, "ends right"),
        (is_wrong, FALLS, "ends wrong"),
        (~is_right & ~is_wrong, STAYS, "undecided"),
    ):
        if chosen.any():
            axes.scatter(
                np.clip(first + noise[0], 0, 1)[chosen],
                np.clip(second + noise[1], 0, 1)[chosen],
                s=13, color=colour, alpha=0.65, linewidths=0, zorder=3, clip_on=False,
                label=f"{says}: {int(chosen.sum())}",
            )  # fmt: skip


def _figure(path: Path, width: float, height: float) -> Any:
    """An empty figure of so many inches. Raises RecipeError without matplotlib."""
    if path.suffix not in FORMATS:
        raise RecipeError(f"{path} is no picture that can be drawn; name it {' or '.join(FORMATS)}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise RecipeError(
            "drawing pictures needs matplotlib; install corl[plots], or leave out --out"
        ) from None
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def _save(figure: Any, path: Path) -> Path:
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a salt and with a date, every SVG would differ.
    with rc_context({"svg.hashsalt": "corl", "svg.fonttype": "none"}):
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": "corl"}
        figure.savefig(path, metadata=metadata, facecolor="white")
    return path
