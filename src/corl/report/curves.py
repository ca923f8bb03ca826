"""The section of curves: a panel per agent, a chart per metric, all conditions in it.

An agent is a name and the model it started from: conditions that train the same model
are drawn together, whatever they were paired with. A reward that is no share is never
drawn on one axis with votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from corl.report.chart import Curve, Mark, draw
from corl.report.conditions import Condition, swatch
from corl.report.html import Html, el
from corl.report.records import Run
from corl.report.series import (
    HELD_OUT,
    METRICS,
    MORE_METRICS,
    Metric,
    Point,
    benchmark_metrics,
    bucket_width,
    mean_curve,
    points_of,
    value_at,
)

_POINTS_OF_ALL = 60_000
_ALWAYS = (HELD_OUT, *METRICS, *MORE_METRICS)
_OWN_SCALE_KEYS = ("reward_mean", "reward_std")


def curves_section(conditions: Sequence[Condition], *, max_points: int = 80) -> Html | None:
    """Tabs of agents; None where no run has metrics."""
    runs = [run for condition in conditions for run in condition.runs if run.metrics]
    if not runs:
        return None
    num_curves = sum(len(run.metrics) for run in runs) * len(_ALWAYS)
    width = bucket_width(runs, max(12, min(max_points, _POINTS_OF_ALL // num_curves)))
    last_step = max(run.last_step for run in runs)
    panels = [
        _panel(index, key, title, conditions, width, last_step)
        for index, (key, title) in enumerate(_agents(runs))
    ]
    tabs = [
        el(
            "button",
            title,
            role="tab",
            id=f"tab-agent-{index}",
            aria_controls=f"agent-{index}",
            type="button",
        )
        for index, (_, title) in enumerate(_agents(runs))
    ]
    note = "Thick lines are means over seeds, thin lines the seeds, ✕ a run's first alarm."
    if width > 1:
        note += f" A point is the mean of {width} steps."
    return el(
        "div",
        el("p", note, " ", el("a", "Files of each run", href="#runs"), class_="note"),
        el("div", *tabs, role="tablist", aria_label="Agent", class_="tabs"),
        *panels,
        class_="tabbed",
    )


def _agents(runs: Sequence[Run]) -> list[tuple[tuple[str, str], str]]:
    """Name and model of every agent, and what to call it."""
    keys = list(
        dict.fromkeys((name, run.models.get(name, "")) for run in runs for name in run.metrics)
    )
    names = [name for name, _ in keys]
    return [
        ((name, model), f"{name} ({model})" if names.count(name) > 1 and model else name)
        for name, model in keys
    ]


def _panel(
    index: int,
    key: tuple[str, str],
    title: str,
    conditions: Sequence[Condition],
    width: int,
    last_step: int,
) -> Html:
    name, model = key
    here = []
    for condition in conditions:
        runs = [
            run
            for run in condition.runs
            if name in run.metrics and run.models.get(name, "") == model
        ]
        if runs:
            here.append((condition, runs))
    legend = [
        el(
            "button",
            swatch(condition),
            condition.title,
            el("small", f"{len(runs)} seeds" if len(runs) != 1 else "1 seed"),
            type="button",
            aria_pressed="true",
            data_condition=condition.index,
        )
        for condition, runs in here
    ]
    measured = benchmark_metrics([run for _, runs in here for run in runs], name)
    charts = _charts([HELD_OUT, *measured, *METRICS], here, name, width, last_step)
    more = _charts(MORE_METRICS, here, name, width, last_step)
    return el(
        "div",
        el("h3", title, class_="panel-title"),
        el("div", *legend, class_="legend", role="group", aria_label="Show or hide"),
        el("div", *charts, class_="charts"),
        el("details", el("summary", "More curves"), el("div", *more, class_="charts"))
        if more
        else None,
        role="tabpanel",
        id=f"agent-{index}",
        aria_labelledby=f"tab-agent-{index}",
    )


def _charts(
    metrics: Sequence[Metric],
    here: Sequence[tuple[Condition, list[Run]]],
    agent: str,
    width: int,
    last_step: int,
) -> list[Html]:
    figures = []
    own_scale = {condition.index for condition, _ in here if condition.has_own_scale}
    for metric in metrics:
        curves = [_curve(condition, runs, agent, metric, width) for condition, runs in here]
        curves = [curve for curve in curves if any(curve.seeds)]
        apart: list[Curve] = []
        if metric.key in _OWN_SCALE_KEYS:
            apart = [curve for curve in curves if curve.condition in own_scale]
            curves = [curve for curve in curves if curve.condition not in own_scale]
        if curves:
            figures.append(_figure(metric, metric.title, curves, agent, last_step))
        for curve in apart:
            own = replace(metric, says="on its own scale")
            if metric.key == "reward_mean":
                own = replace(own, scale="free")
            title = f"{metric.title}, {curve.name}"
            figures.append(_figure(own, title, [curve], agent, last_step))
    return figures


def _figure(metric: Metric, title: str, curves: Sequence[Curve], agent: str, last: int) -> Html:
    return el(
        "figure",
        el("figcaption", el("b", title), el("span", metric.says)),
        draw(curves, metric, last_step=last, agent=agent),
        el("div", class_="tip", hidden=True),
    )


def _curve(
    condition: Condition, runs: Sequence[Run], agent: str, metric: Metric, width: int
) -> Curve:
    lines: list[list[Point]] = []
    marks: list[Mark] = []
    for run in runs:
        points = points_of(run, agent, metric, width)
        lines.append(points)
        mark = _first_alarm(run, agent, points)
        if mark is not None:
            marks.append(mark)
    whole = [line for run, line in zip(runs, lines, strict=True) if run.status != "failed"]
    return Curve(
        name=condition.title,
        slot=condition.slot,
        dash=condition.dash,
        condition=condition.index,
        mean=mean_curve(whole),
        seeds=lines,
        marks=marks if metric is not HELD_OUT or any(len(line) > 2 for line in lines) else [],
    )


def _first_alarm(run: Run, agent: str, points: Sequence[Point]) -> Mark | None:
    alarms = [alarm for alarm in run.alarms if alarm.is_alarm and alarm.agent in (agent, "")]
    first = min(alarms, key=lambda alarm: alarm.step, default=None)
    near = value_at(points, first.step) if first else None
    if first is None or near is None:
        return None
    return Mark(near[0], near[1], f"seed {run.seed}, step {first.step}: {first.message}")
