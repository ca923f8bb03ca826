"""The table of runs without held-out accuracy: training's own figures, start against end.

A figure is the mean over a tenth of the run's steps, at its start and at its end, and
over seeds. None of them says that answers are right but `accuracy`, and that only of
the prompts trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from corl.evaluation.intervals import seed_interval
from corl.report.conditions import Condition, swatch
from corl.report.html import Html, Node, brief, el, href, percent, scrolled, shown_path
from corl.report.records import Line, Run, number
from corl.report.series import METRICS, Metric

_SHOWN = {
    "accuracy": "accuracy",
    "reward_mean": "reward",
    "reward_std": "group std",
    "peer_agreement": "agreement",
    "length_mean": "length",
    "entropy": "entropy",
}


def training_table(conditions: Sequence[Condition], base: Path) -> Html | None:
    """A line per condition and agent; None where no run has metrics."""
    metrics = [metric for metric in METRICS if metric.key in _SHOWN]
    rows = [
        _row(condition, agent, metrics, base)
        for condition in conditions
        for agent in dict.fromkeys(name for run in condition.runs for name in run.metrics)
    ]
    if not rows:
        return None
    titles = ("run", "agent", *_SHOWN.values(), "read from")
    head = el("thead", el("tr", *(el("th", title, scope="col") for title in titles)))
    return scrolled(head, el("tbody", *rows), label="Training, start to end", stacks=True)


def start_and_end(lines: Sequence[Line], key: str) -> tuple[float | None, float | None]:
    """Means over the first and over the last tenth of the steps; None over nothing."""
    tenth = max(1, len(lines) // 10)
    means: list[float | None] = []
    for part in (lines[:tenth], lines[-tenth:]):
        values = [value for line in part if (value := number(line.get(key))) is not None]
        means.append(fmean(values) if values else None)
    return means[0], means[1]


def _row(condition: Condition, agent: str, metrics: Sequence[Metric], base: Path) -> Html:
    runs = [run for run in condition.runs if run.metrics.get(agent) and run.root is not None]
    return el(
        "tr",
        el("th", swatch(condition), condition.title, scope="row"),
        el("td", agent, class_="agent"),
        *(_cell(condition, runs, agent, metric) for metric in metrics),
        el("td", el("span", *(_link(run, base) for run in runs), class_="files")),
    )


def _cell(condition: Condition, runs: Sequence[Run], agent: str, metric: Metric) -> Html:
    is_share = metric.scale == "share" and not (
        metric.key == "reward_mean" and condition.has_own_scale
    )
    show = (lambda value: f"{percent(value)} %") if is_share else brief
    pairs = [start_and_end(run.metrics[agent], metric.key) for run in runs]
    starts = [start for start, _ in pairs if start is not None]
    ends = [end for _, end in pairs if end is not None]
    if not starts or not ends:
        return el("td", "–", data_label=_SHOWN[metric.key])
    interval = seed_interval(ends)
    spread: Node = None
    if interval is not None:
        low, high = (show(bound) for bound in interval)
        spread = el("span", f"{low} to {high}", class_="interval")
    said = f"{metric.key}: first and last tenth of the steps; seeds: {len(ends)}"
    figures = f"{show(fmean(starts))} → {show(fmean(ends))}"
    return el("td", el("span", figures, title=said), spread, data_label=_SHOWN[metric.key])


def _link(run: Run, base: Path) -> Html | None:
    if run.root is None:
        return None
    file = run.root / "metrics.jsonl"
    return el("a", f"seed {run.seed}", href=href(file, base), title=shown_path(file, base))
