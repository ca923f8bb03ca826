"""How well the label-free pick chooses, measured on a finished cell.

The prompts measured along the way are split: choosing sees the even ones (without labels; the
upper bound sees their labels too), accuracy is taken on the odd ones, which neither has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from corl.evaluation.accuracy import AnswerSheet, Key, grade
from corl.evaluation.intervals import seed_interval
from corl.evaluation.selection import cohort_signals, pick_by_labels, pick_checkpoint

Sheets = Mapping[int, Mapping[str, AnswerSheet]]
"""Step -> agent -> its answers; step 0 holds the untrained agents."""

PICKS = ("label_free", "last", "labelled", "first")

_CHOOSING, _MEASURED = slice(0, None, 2), slice(1, None, 2)


def measure_picks(
    sheets: Sheets, true_keys: Sequence[Key], *, first_alarms: Mapping[str, int]
) -> list[dict[str, Any]]:
    """One entry an agent: the step and the avg@8 of each pick, and the signals behind the choice.

    first_alarms: agent -> step of its first health alarm, where it had one.
    """
    choosing = {
        step: {name: sheet.rows(_CHOOSING) for name, sheet in by_name.items()}
        for step, by_name in sheets.items()
    }
    signals = cohort_signals(choosing)
    entries = []
    for name in sheets[0]:
        seen = {
            step: grade(by_name[name], true_keys[_CHOOSING]).avg_at_8
            for step, by_name in choosing.items()
        }
        unseen = {
            step: grade(by_name[name].rows(_MEASURED), true_keys[_MEASURED]).avg_at_8
            for step, by_name in sheets.items()
        }
        steps = {
            "label_free": pick_checkpoint(signals[name], first_alarm=first_alarms.get(name)),
            "last": max(sheets),
            "labelled": pick_by_labels(seen),
            "first": 0,
        }
        entries.append(
            {
                "name": name,
                "picks": {
                    pick: {"step": step, "avg_at_8": round(unseen[step], 6)}
                    for pick, step in steps.items()
                },
                "checkpoints": [
                    {**one.to_json(), "avg_at_8": round(unseen[one.step], 6)}
                    for one in signals[name]
                ],
            }
        )
    return entries


def summarise_picks(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Per method and setting: mean accuracy of each pick over agents and seeds.

    rows: {"method", "setting", "seed", "agents": entries of `measure_picks`}. `regret` is what the
    label-free pick loses against the labelled one; its interval is over seeds (agents averaged).
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["method"], row["setting"]), []).append(row)
    return [
        {
            "method": method,
            "setting": setting,
            "seeds": [row["seed"] for row in group],
            **{pick: _mean_of(group, pick) for pick in PICKS},
            "regret": round(fmean(_regrets(group)), 6),
            "regret_interval": seed_interval(_regrets(group)),
        }
        for (method, setting), group in groups.items()
    ]


def _mean_of(rows: Sequence[Mapping[str, Any]], pick: str) -> float:
    return round(
        fmean(agent["picks"][pick]["avg_at_8"] for row in rows for agent in row["agents"]), 6
    )


def _regrets(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    return [
        fmean(
            agent["picks"]["labelled"]["avg_at_8"] - agent["picks"]["label_free"]["avg_at_8"]
            for agent in row["agents"]
        )
        for row in rows
    ]
