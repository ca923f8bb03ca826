"""The headline table: every method and setting, losing ones too, before and after training.

A figure is the mean over the seeds that have it; its interval is the 95 % t-interval
over those seeds. Every mean links to the list of its seeds' values (`sources`), and
every seed's value to the row of the results file that it was read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from corl.evaluation.intervals import seed_interval
from corl.report.conditions import Condition, plain, swatch
from corl.report.html import Html, Node, el, href, join, percent, scrolled, shown_path
from corl.report.records import BASE, MEASURES, AgentResult, Run

Interval = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class SeedValue:
    """One agent of one run under one measure."""

    run: Run
    agent: AgentResult
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """One line of the table, shares in [0, 1]."""

    before: float | None
    after: float | None
    after_interval: Interval
    gain: float | None
    gain_interval: Interval
    values: tuple[SeedValue, ...]


def figures(condition: Condition, agent: str, measure: str) -> Figures:
    """Mean and interval over the seeds of a condition. A missing value is left out."""
    values = tuple(
        SeedValue(run, result, result.before[measure], result.after[measure])
        for run in condition.runs
        for result in run.results
        if result.name == agent
    )
    before = [value.before for value in values if value.before is not None]
    after = [value.after for value in values if value.after is not None]
    gains = [
        value.after - value.before
        for value in values
        if value.after is not None and value.before is not None
    ]
    return Figures(
        before=fmean(before) if before else None,
        after=fmean(after) if after else None,
        after_interval=seed_interval(after),
        gain=fmean(gains) if gains else None,
        gain_interval=seed_interval(gains),
        values=values,
    )


def measures_present(conditions: Sequence[Condition]) -> list[str]:
    """Measures that at least one row has."""
    results = [result for c in conditions for run in c.runs for result in run.results]
    return [measure for measure in MEASURES if any(result.has(measure) for result in results)]


def headline(conditions: Sequence[Condition], measure: str, base: Path) -> Html:
    """The table of one measure; `base` is the folder of the page."""
    titles = ("agent", "before", "after", "gain", "0 to 100 %", "each seed, after")
    head = el("tr", *(el("th", title, scope="col") for title in titles))
    bodies = [_body(condition, measure, base) for condition in conditions]
    title = f"Held-out accuracy, {MEASURES[measure]}, in %"
    return join(
        el("p", title, class_="note", id=f"title-{measure}"),
        el(
            "table",
            el("thead", head),
            *bodies,
            class_="headline",
            aria_labelledby=f"title-{measure}",
        ),
    )


def source_id(condition: Condition, agent_index: int) -> str:
    """The anchor of the values behind a line of the table."""
    return f"from-{condition.index}-{agent_index}"


def sources(conditions: Sequence[Condition], base: Path) -> Html:
    """Per line of the table: each seed's values and the files they stand in."""
    blocks = []
    for condition in conditions:
        for index, agent in enumerate(condition.agents()):
            lines = [
                _source_line(value, base) for value in figures(condition, agent, "avg_at_8").values
            ]
            titles = ("seed", *(MEASURES.values()), "read from", "curves from")
            blocks.append(
                el(
                    "div",
                    el("h4", swatch(condition), condition.title, el("span", agent, class_="agent")),
                    scrolled(
                        el("thead", el("tr", *(el("th", t, scope="col") for t in titles))),
                        el("tbody", *lines),
                        label=f"{condition.title}, {agent}",
                    ),
                    id=source_id(condition, index),
                    class_="source",
                    tabindex="-1",
                )
            )
    return join(*blocks)


def _body(condition: Condition, measure: str, base: Path) -> Html:
    failed = [run for run in condition.runs if run.status == "failed"]
    other = [run for run in condition.runs if run.status not in ("failed", "done")]
    alarmed = [run for run in condition.runs if any(alarm.is_alarm for alarm in run.alarms)]
    heading = el(
        "th",
        el(
            "span",
            swatch(condition),
            el("b", condition.name),
            el("span", plain(condition.setting), class_="setting"),
            class_="condition",
        ),
        el(
            "span",
            _badge(len(alarmed), "with an alarm", "alarm", "#health"),
            _badge(len(failed), "failed", "failed", "#runs"),
            _badge(len(other), "unfinished", "quiet", "#runs"),
            class_="badges",
        ),
        colspan="6",
        scope="rowgroup",
    )
    lines = [
        _line(condition, index, agent, measure, base)
        for index, agent in enumerate(condition.agents())
        if _belongs(condition, agent, measure)
    ]
    if not lines:
        lines = [el("tr", el("td", "no result", colspan="6", class_="none"))]
    return el("tbody", el("tr", heading, class_="group"), *lines)


def _belongs(condition: Condition, agent: str, measure: str) -> bool:
    """An agent always has its line, pooled votes only under the measure that they have."""
    results = [r for run in condition.runs for r in run.results if r.name == agent]
    return any(not result.is_pooled or result.has(measure) for result in results)


def _badge(count: int, words: str, kind: str, target: str) -> Html | None:
    noun = "run" if count == 1 else "runs"
    return (
        el("a", f"{count} {noun} {words}", class_=f"badge {kind}", href=target) if count else None
    )


def _line(condition: Condition, index: int, agent: str, measure: str, base: Path) -> Html:
    found = figures(condition, agent, measure)
    origin = "#" + source_id(condition, index)
    count = sum(value.after is not None for value in found.values)
    seeds = f"mean of {count} seeds" if count != 1 else "one seed"

    def figure(value: float | None, interval: Interval, what: str, *, sign: bool = False) -> Node:
        shown = percent(value, sign=sign)
        linked = el("a", shown, href=origin, class_="figure", title=f"{what}, {seeds}: where from")
        return linked if value is not None else shown, _interval(interval, sign=sign)

    is_base = condition.method == BASE
    tone = "" if is_base else _tone(found)
    return el(
        "tr",
        el("th", agent, scope="row", class_="agent"),
        el("td", figure(found.before, None, "before"), data_label="before"),
        el(
            "td",
            "–" if is_base else figure(found.after, found.after_interval, "after"),
            data_label="after",
        ),
        el(
            "td",
            "–" if is_base else figure(found.gain, found.gain_interval, "gain", sign=True),
            data_label="gain",
            class_="gain" + tone,
        ),
        el("td", _range_plot(condition, found), class_="plot", data_label="0 to 100 %"),
        el(
            "td",
            [_seed(value, measure, base) for value in found.values],
            [_lost(run) for run in condition.runs if run.status == "failed"],
            class_="seeds",
        ),
    )


def _tone(found: Figures) -> str:
    """Colour for a gain that its seeds tell from nothing, or that has one seed."""
    if found.gain is None:
        return ""
    low, high = found.gain_interval or (found.gain, found.gain)
    return " up" if low > 0 else " down" if high < 0 else ""


def _interval(interval: Interval, *, sign: bool) -> Html | None:
    if interval is None:
        return None
    low, high = (percent(bound, sign=sign) for bound in interval)
    return el("span", f"{low} to {high}", class_="interval", title="95 % t-interval over seeds")


def _seed(value: SeedValue, measure: str, base: Path) -> Html:
    is_base = value.run.method == BASE
    phase, figure = ("before", value.before) if is_base else ("after", value.after)
    name = value.agent.place(phase, measure)
    file = value.run.results_file
    if file is None or figure is None:
        return el("span", f"{value.run.seed}: –", title=f"{name}: none")
    title = f"seed {value.run.seed}: {shown_path(file, base)} rows[{value.run.row}].{name}"
    return el("a", percent(figure), href=href(file, base), title=title)


def _lost(run: Run) -> Html:
    return el("a", f"seed {run.seed} failed", href="#runs", title=(run.error or "")[:300])


def _range_plot(condition: Condition, found: Figures) -> Html | None:
    """Before (ring), after (dot), the interval and a tick for each seed, on 0 to 100 %."""
    if found.before is None and found.after is None:
        return None

    def x(share: float) -> float:
        return round(6 + 148 * min(1.0, max(0.0, share)), 1)

    marks: list[Node] = [el("path", d="M6 12H154M6 9V15M80 10V14M154 9V15", class_="axis")]
    if condition.method != BASE and found.after is not None:
        if found.after_interval is not None:
            low, high = found.after_interval
            marks.append(el("path", d=f"M{x(low)} 12H{x(high)}", class_="spread"))
        if found.before is not None:
            marks.append(el("path", d=f"M{x(found.before)} 12H{x(found.after)}", class_="move"))
        ticks = [f"M{x(v.after)} 5V19" for v in found.values if v.after is not None]
        marks.append(el("path", d="".join(ticks), class_="ticks"))
        marks.append(el("circle", cx=x(found.after), cy=12, r=4.5, class_="after"))
    if found.before is not None:
        marks.append(el("circle", cx=x(found.before), cy=12, r=4, class_="before"))
    label = f"from {percent(found.before)} to {percent(found.after)} percent"
    return el(
        "svg",
        *marks,
        class_=f"range m{condition.slot}",
        viewBox="0 0 160 24",
        role="img",
        aria_label=label,
    )


def _source_line(value: SeedValue, base: Path) -> Html:
    run = value.run
    cells = []
    for measure in MEASURES:
        before, after = value.agent.before[measure], value.agent.after[measure]
        cells.append(el("td", f"{percent(before)} → {percent(after)}"))
    row = f"rows[{run.row}].{value.agent.path}"
    origin = metrics = None
    if run.results_file is not None:
        name = shown_path(run.results_file, base)
        origin = el("a", f"{name} {row}", href=href(run.results_file, base))
    if run.root is not None and run.metrics:
        file = run.root / "metrics.jsonl"
        metrics = el("a", shown_path(file, base), href=href(file, base))
    return el("tr", el("th", run.seed, scope="row"), *cells, el("td", origin), el("td", metrics))
