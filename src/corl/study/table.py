"""A study's rows as the tables that the terminal shows; pure but for rich."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from rich.table import Table

from corl.evaluation.intervals import seed_interval
from corl.study.config import UNTRAINED
from corl.study.picks import PICKS

Row = Mapping[str, Any]
Groups = dict[tuple[str, str], list[Row]]


def results_table(rows: Sequence[Row], *, title: str) -> Table:
    """avg@8 before and after per method, setting and agent, with its interval over seeds.

    The column "of gt" is the gain as a share of the gain that ground truth reached on the same
    model, in the same setting or, where that was not run, in another one.
    """
    table = _table(
        title,
        left=("method", "setting", "agent"),
        right=("before", "after", "gain", "95 % interval", "of gt", "greedy", "pass@8", "seeds"),
    )
    table.add_column("alarms")
    done = grouped([row for row in rows if row["status"] == "done" and row["method"] != UNTRAINED])
    for (method, setting), group in done.items():
        for index, agent in enumerate(group[0]["agents"]):
            gains = _gains(group, index)
            interval = seed_interval(gains)
            truth = _truth_gain(done, setting, agent)
            table.add_row(
                method if index == 0 else "",
                setting if index == 0 else "",
                agent["name"],
                percent(agent["before"]["avg_at_8"]),
                percent(_mean_after(group, index, "avg_at_8")),
                signed(fmean(gains)),
                shown_interval(interval),
                "-" if not truth or truth <= 0 else f"{100 * fmean(gains) / truth:.0f} %",
                percent(_mean_after(group, index, "greedy")),
                percent(_mean_after(group, index, "pass_at_8")),
                str(len(group)),
                _alarms(group, agent["name"]),
            )
    return table


def picks_table(summary: Sequence[Row]) -> Table:
    """Accuracy of the checkpoint that each rule picks, means over agents and seeds."""
    table = _table(
        "avg@8 of the checkpoint picked, %",
        left=("method", "setting"),
        right=("untrained", "last", "label-free", "labelled", "lost to labelled", "95 % interval"),
    )
    for one in summary:
        free, last, labelled, first = (one[pick] for pick in PICKS)
        table.add_row(
            one["method"],
            one["setting"],
            *(percent(value) for value in (first, last, free, labelled, one["regret"])),
            shown_interval(one["regret_interval"]),
        )
    return table


def ensembles_table(rows: Sequence[Row]) -> Table:
    """maj@8 of completions pooled over a cohort's agents, beside its agents alone."""
    table = _table(
        "maj@8, %: 8 completions of one agent, or pooled in equal parts from all",
        left=("method", "setting"),
        right=("best agent alone", "pooled", "pooled before", "gain", "95 % interval"),
    )
    done = [row for row in rows if row["status"] == "done" and row["method"] != UNTRAINED]
    for (method, setting), group in grouped(done).items():
        pooled = [row["ensemble_maj_at_8"] for row in group]
        gains = [one["after"] - one["before"] for one in pooled]
        alone = fmean(max(a["after"]["maj_at_8"] for a in row["agents"]) for row in group)
        table.add_row(
            method,
            setting,
            percent(alone),
            percent(fmean(one["after"] for one in pooled)),
            percent(fmean(one["before"] for one in pooled)),
            signed(fmean(gains)),
            shown_interval(seed_interval(gains)),
        )
    return table


def grouped(rows: Sequence[Row]) -> Groups:
    """Rows by method and setting, in order of appearance."""
    groups: Groups = {}
    for row in rows:
        groups.setdefault((row["method"], row["setting"]), []).append(row)
    return groups


def percent(value: float) -> str:
    """A share as a percentage without its sign."""
    return f"{100 * value:.1f}"


def signed(value: float) -> str:
    """A difference of shares in points, with its sign."""
    return f"{100 * value:+.1f}"


def shown_interval(interval: Sequence[float] | None) -> str:
    """An interval in points; a dash where one seed has none."""
    return "-" if interval is None else f"{signed(interval[0])} to {signed(interval[1])}"


def _table(title: str, *, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", overflow="fold")
    return table


def _gains(group: Sequence[Row], index: int) -> list[float]:
    return [
        row["agents"][index]["after"]["avg_at_8"] - row["agents"][index]["before"]["avg_at_8"]
        for row in group
    ]


def _mean_after(group: Sequence[Row], index: int, metric: str) -> float:
    return fmean(row["agents"][index]["after"][metric] for row in group)


def _truth_gain(done: Groups, setting: str, agent: Mapping[str, Any]) -> float | None:
    """Mean gain of ground truth on this model; a model is known by its name and its start."""
    here = done.get(("ground_truth", setting), [])
    elsewhere = [
        row for (method, _), rows in done.items() if method == "ground_truth" for row in rows
    ]
    for rows in (here, elsewhere):
        gains = [
            other["after"]["avg_at_8"] - other["before"]["avg_at_8"]
            for row in rows
            for other in row["agents"]
            if other["name"] == agent["name"] and other["before"] == agent["before"]
        ]
        if gains:
            return fmean(gains)
    return None


def _alarms(group: Sequence[Row], agent: str) -> str:
    """Seeds with an alarm of this agent, and the earliest step of one."""
    steps = [
        [int(alarm["step"]) for alarm in row["alarms"] if alarm["agent"] == agent] for row in group
    ]
    alarmed = [min(found) for found in steps if found]
    return f"{len(alarmed)} of {len(group)}, step {min(alarmed)}" if alarmed else "none"
