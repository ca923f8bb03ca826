"""What `corl eval` prints; pure but for rich."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from corl.evaluation.suite.scores import Score, plain_average


def scores_table(scores: Mapping[str, Sequence[Score]]) -> Table:
    """One line a model and benchmark, percentages with their 95 % intervals by problem."""
    ks = sorted({one.samples for ours in scores.values() for one in ours})
    size = str(ks[0]) if len(ks) == 1 else "k"
    table = _table("Scores, % [95 % interval over problems]", left=("model", "benchmark"))
    for title in ("rows", "k", "greedy", f"avg@{size}", f"maj@{size}", f"pass@{size}",
                  "no answer", "cut"):  # fmt: skip
        table.add_column(title, justify="right", no_wrap=True)
    for name, ours in scores.items():
        for index, one in enumerate(ours):
            k = one.samples
            total = sum(one.verdicts.values())
            table.add_row(
                name if index == 0 else "",
                one.benchmark,
                f"{len(one.ids):,}",
                str(k) if k else "-",
                *(_shown(one, figure) for figure in
                  ("greedy", f"avg@{k}", f"maj@{k}", f"pass@{k}")),
                f"{100 * one.verdicts['no_answer'] / total:.1f}",
                f"{100 * one.truncated:.1f}",
            )  # fmt: skip
        if len(ours) > 1:
            mean = plain_average(ours)
            table.add_row("", f"mean of {len(ours)}", "", "", "", _figure(mean), "", "", "", "")
    return table


def comparisons_table(entries: Sequence[Mapping[str, Any]]) -> Table:
    """Differences of two models, paired by problem."""
    table = _table("Differences, points, paired by problem", left=("a", "b", "benchmark"))
    for title in ("a - b", "95 % interval", "p", "problems"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in entries:
        ends = one["interval"]
        table.add_row(
            one["a"],
            one["b"],
            one["benchmark"],
            f"{100 * one['difference']:+.1f}",
            "-" if ends is None else f"[{100 * ends[0]:+.1f}, {100 * ends[1]:+.1f}]",
            "-" if one["p_value"] is None else f"{one['p_value']:.3f}",
            f"{one['problems']:,}",
        )
    return table


def _table(title: str, *, left: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in left:
        table.add_column(name, overflow="fold")
    return table


def _shown(one: Score, name: str) -> str:
    return _figure(one.figures[name].to_json()) if name in one.figures else "-"


def _figure(figure: Mapping[str, Any]) -> str:
    ends = figure["interval"]
    text = f"{100 * figure['value']:.1f}"
    return text if ends is None else f"{text} [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"
