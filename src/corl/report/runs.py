"""The sections of runs and of training health: what ran, what failed, what detectors said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corl.report.conditions import Condition, swatch
from corl.report.html import Html, Node, el, href, join, scrolled, shown_path
from corl.report.records import BASE, Alarm, Run

_FILES = ("metrics.jsonl", "recipe.yaml", "health.jsonl", "evaluations.jsonl")
_MAX_ALARMS = 400

_Finding = tuple[Condition, Run, Alarm]


def runs_section(conditions: Sequence[Condition], base: Path) -> Html:
    """Every run with its state, its error and its files."""
    head = el("tr", *(el("th", t, scope="col") for t in ("run", "seed", "state", "steps", "files")))
    rows = [
        _run_row(condition, run, base)
        for condition in conditions
        if condition.method != BASE
        for run in condition.runs
    ]
    return scrolled(el("thead", head), el("tbody", *rows), label="Runs", stacks=True)


def health_section(conditions: Sequence[Condition]) -> Html:
    """The first alarm of every agent; later ones and information folded away."""
    found = [
        (condition, run, alarm)
        for condition in conditions
        for run in condition.runs
        for alarm in sorted(run.alarms, key=lambda alarm: alarm.step)
    ]
    first: list[_Finding] = []
    later: list[_Finding] = []
    warned: set[tuple[int, str]] = set()
    for finding in found:
        _, run, alarm = finding
        if alarm.is_alarm:
            (later if (id(run), alarm.agent) in warned else first).append(finding)
            warned.add((id(run), alarm.agent))
    infos = [finding for finding in found if not finding[2].is_alarm]
    said_later = f"Later alarms of the same agents ({len(later)})"
    said_infos = f"Information ({len(infos)}): seen in success as well as in failure"
    return el(
        "div",
        _alarm_table(first) if first else el("p", "No detector raised an alarm.", class_="none"),
        _folded(said_later, later),
        _folded(said_infos, infos),
    )


def _folded(title: str, findings: Sequence[_Finding]) -> Html | None:
    return el("details", el("summary", title), _alarm_table(findings)) if findings else None


def _alarm_table(entries: Sequence[_Finding]) -> Html:
    titles = ("run", "seed", "agent", "step", "detector", "what it saw")
    rows = [
        el(
            "tr",
            el("th", swatch(condition), condition.title, scope="row"),
            el("td", run.seed, data_label="seed"),
            el("td", alarm.agent),
            el("td", alarm.step or "–", data_label="step"),
            el("td", alarm.detector),
            el("td", alarm.message, class_="message"),
        )
        for condition, run, alarm in entries[:_MAX_ALARMS]
    ]
    left = len(entries) - len(rows)
    head = el("thead", el("tr", *(el("th", title, scope="col") for title in titles)))
    note = el("p", f"{left} more in the runs' health.jsonl", class_="note") if left else None
    return join(scrolled(head, el("tbody", *rows), label="What detectors said", stacks=True), note)


def _run_row(condition: Condition, run: Run, base: Path) -> Html:
    state: list[Node] = [el("span", run.status, class_=f"badge {_tone(run.status)}")]
    if run.error:
        state.append(el("span", run.error[:2000], class_="error"))
    files: list[Node] = []
    root = run.root
    if root is not None:
        for name in _FILES:
            if (root / name).is_file():
                files.append(el("a", name, href=href(root / name, base)))
        files.append(el("small", shown_path(root, base)))
    if run.results_file is not None:
        title = f"{shown_path(run.results_file, base)} rows[{run.row}]"
        files.insert(0, el("a", title, href=href(run.results_file, base)))
    return el(
        "tr",
        el("th", swatch(condition), condition.title, scope="row"),
        el("td", run.seed, data_label="seed"),
        el("td", *state),
        el("td", run.last_step or "–", data_label="steps"),
        el("td", el("span", *files, class_="files")),
    )


def _tone(status: str) -> str:
    return {"done": "agree", "failed": "failed"}.get(status, "quiet")
