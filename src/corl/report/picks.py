"""The section of chosen checkpoints: what choosing without labels kept, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corl.report.conditions import Condition, plain, swatch
from corl.report.html import Html, el, href, join, percent, scrolled, shown_path
from corl.report.records import number

_PICKS = {
    "first": "untrained",
    "label_free": "picked without labels",
    "last": "last step",
    "labelled": "picked with labels",
}
_NOTE = (
    "avg@8 in % on held-out prompts that no pick has seen, mean over agents and seeds. Cost: what "
    "the pick without labels loses against the one with labels; 95 % t-interval over seeds."
)


@dataclass(frozen=True, slots=True)
class PickLine:
    """One method and setting of a `selection.json`."""

    file: Path
    index: int
    """Place in the file's `summary`."""
    method: str
    setting: str
    accuracy: dict[str, float | None]
    """By pick, shares in [0, 1]."""
    regret: float | None
    interval: tuple[float, float] | None


def load_picks(file: Path) -> list[PickLine]:
    """The summary of a selection file; what cannot be read is left out."""
    try:
        summary: Any = json.loads(file.read_text(encoding="utf-8", errors="replace"))["summary"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []
    return [
        PickLine(
            file=file,
            index=index,
            method=str(row.get("method") or "unknown"),
            setting=str(row.get("setting") or ""),
            accuracy={pick: number(row.get(pick)) for pick in _PICKS},
            regret=number(row.get("regret")),
            interval=_interval(row.get("regret_interval")),
        )
        for index, row in enumerate(summary if isinstance(summary, list) else [])
        if isinstance(row, dict)
    ]


def picks_section(
    lines: Sequence[PickLine], conditions: Sequence[Condition], base: Path
) -> Html | None:
    """The table; None where no study chose."""
    if not lines:
        return None
    titles = ("method", *_PICKS.values(), "cost")
    head = el("tr", *(el("th", title, scope="col") for title in titles))
    named = {(run.method, run.setting): one for one in conditions for run in one.runs}
    rows = [_row(line, named.get((line.method, line.setting)), base) for line in lines]
    table = scrolled(el("thead", head), el("tbody", *rows), label="Checkpoints chosen", stacks=True)
    return join(el("p", _NOTE, class_="note"), table)


def _row(line: PickLine, condition: Condition | None, base: Path) -> Html:
    where = f"{shown_path(line.file, base)} summary[{line.index}]"
    cells = [
        el(
            "td",
            el("a", percent(value), href=href(line.file, base), title=f"{where}.{pick}"),
            data_label=_PICKS[pick],
        )
        for pick, value in line.accuracy.items()
    ]
    spread = None
    if line.interval is not None:
        low, high = (percent(bound, sign=True) for bound in line.interval)
        spread = el("span", f"{low} to {high}", class_="interval")
    name = f"{line.method} · {plain(line.setting)}" if condition is None else condition.title
    mark = None if condition is None else swatch(condition)
    return el(
        "tr",
        el("th", mark, name, scope="row"),
        *cells,
        el("td", percent(line.regret, sign=True), spread, data_label="cost"),
    )


def _interval(value: object) -> tuple[float, float] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    low, high = map(number, value)
    return None if low is None or high is None else (low, high)
