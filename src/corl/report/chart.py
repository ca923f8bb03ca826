"""One chart as static SVG. The script of the page only adds a reading line to it.

Drawn in a box of 360 x 210 units, which is about its size on a page in pixels, so that
type keeps its size in wide and narrow windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corl.report.html import Html, Node, brief, el, percent
from corl.report.series import Metric, Point

_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 350, 10, 184
_WIDTH, _HEIGHT = 360, 210
_FEW = 24
"""Curves of no more points than this show them as dots."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An alarm on a seed's curve."""

    step: float
    value: float
    message: str


@dataclass(slots=True)
class Curve:
    """One condition in a chart: its mean and its seeds."""

    name: str
    slot: int
    dash: str | None
    condition: int
    mean: list[Point]
    seeds: list[list[Point]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


def draw(curves: Sequence[Curve], metric: Metric, *, last_step: int, agent: str) -> Html:
    """The figure; `last_step` is the right end of the axis, the same in all charts."""
    values = [value for curve in curves for line in (curve.mean, *curve.seeds) for _, value in line]
    low, high, ticks = _axis(values, metric)
    steps = _step_ticks(max(1, last_step))

    def x(step: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * step / max(1, last_step)

    def y(value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (value - low) / (high - low)

    def path(points: Sequence[Point]) -> str:
        return "M" + "L".join(f"{x(step):.1f} {y(value):.1f}" for step, value in points)

    show = (lambda v: f"{100 * v:.0f} %") if metric.scale == "share" else brief
    nodes: list[Node] = [
        el("path", d="".join(f"M{_LEFT} {y(t):.1f}H{_RIGHT}" for t in ticks), class_="grid"),
        [el("text", show(t), x=_LEFT - 5, y=f"{y(t) + 3.5:.1f}", text_anchor="end") for t in ticks],
        [
            el(
                "text",
                f"step {s}" if s == steps[-1] else s,
                x=f"{x(s):.1f}",
                y=_BOTTOM + 17,
                text_anchor="end" if s == steps[-1] else "middle",
            )
            for s in steps
        ],
    ]
    # The first conditions matter most and lie on top.
    nodes += [_group(curve, path, x, y) for curve in reversed(curves)]
    nodes.append(el("path", class_="reading", d=""))
    return el(
        "svg",
        *nodes,
        class_="chart",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        tabindex="0",
        aria_label=_summary(curves, metric, agent),
        data_scale=metric.scale,
        data_low=f"{low:.6g}",
        data_high=f"{high:.6g}",
        data_last=max(1, last_step),
    )


def _group(
    curve: Curve,
    path: Callable[[Sequence[Point]], str],
    x: Callable[[float], float],
    y: Callable[[float], float],
) -> Html:
    parts: list[Node] = []
    if len(curve.seeds) > 1 or not curve.mean:
        parts.append(
            el("path", d="".join(path(points) for points in curve.seeds if points), class_="seed")
        )
    if curve.mean:
        parts.append(
            el(
                "path",
                d=path(curve.mean),
                class_="mean",
                stroke_dasharray=curve.dash,
                data_name=curve.name,
            )
        )
        if len(curve.mean) <= _FEW:
            dots = "".join(f"M{x(s):.1f} {y(v):.1f}h0" for s, v in curve.mean)
            parts.append(el("path", d=dots, class_="dots"))
    for mark in curve.marks:
        cross = f"M{x(mark.step) - 4:.1f} {y(mark.value) - 4:.1f}l8 8m0 -8l-8 8"
        parts.append(
            el(
                "g",
                el("title", mark.message),
                el("path", d=cross, class_="halo"),
                el("path", d=cross, class_="mark"),
            )
        )
    return el("g", *parts, class_=f"curve m{curve.slot} c{curve.condition}")


def _summary(curves: Sequence[Curve], metric: Metric, agent: str) -> str:
    """The chart in words, for those who do not see it."""
    show = percent if metric.scale == "share" else brief
    unit = " percent" if metric.scale == "share" else ""
    parts = []
    for curve in curves:
        line = next((points for points in (curve.mean, *curve.seeds) if points), None)
        if line:
            parts.append(f"{curve.name} from {show(line[0][1])} to {show(line[-1][1])}{unit}")
    return f"{metric.title} of {agent}. " + "; ".join(parts)


def _axis(values: Sequence[float], metric: Metric) -> tuple[float, float, list[float]]:
    """Ends of the value axis, and its ticks: round numbers from end to end."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if metric.scale == "share" and low >= 0 and high <= 1:
        return 0.0, 1.0, [0, 0.25, 0.5, 0.75, 1.0]
    if metric.scale != "free":
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-9 * max(abs(high), abs(low)):
        spread = abs(high) or 1.0
        low, high = (low if metric.scale != "free" else low - spread / 2), high + spread / 2
    step = _nice_step((high - low) / 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [index * step for index in range(first, last + 1)]
    return ticks[0], ticks[-1], ticks


def _step_ticks(last_step: int) -> list[int]:
    """About four round steps from 0 on."""
    step = max(1, int(_nice_step(last_step / 4)))
    return list(range(0, last_step + 1, step))


def _nice_step(raw: float) -> float:
    """The round number that is not below `raw`."""
    scale = 10.0 ** math.floor(math.log10(raw))
    return next((m * scale for m in (1, 2, 2.5, 5) if m * scale >= raw * (1 - 1e-9)), 10 * scale)
