"""Conditions: the runs that share a method and a setting, one colour for each method.

Seeds of a condition are averaged; nothing is averaged across conditions. A method
keeps its colour in every report: it is tied to the way of rewarding that the recipe names, so
that a study's variants of one method share a colour and differ in dashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from corl.report.html import Html, el
from corl.report.records import BASE, Run

# Name for people, slot of the palette in report.css. The order is that of the page.
_KNOWN = {
    BASE: ("Untrained", 9),
    "ground_truth": ("Ground truth", 0),
    "peer": ("Co-RL", 1),
    "all_peers": ("Co-RL, all peers", 2),
    "self_vote": ("TTRL", 3),
    "co_rewarding_1": ("Co-rewarding I", 4),
    "co_rewarding_2": ("Co-rewarding II", 5),
    "self_certainty": ("Intuitor", 6),
    "entropy": ("RENT", 7),
}
_OTHER_SLOTS = (8, 10, 11)
_DASHES = (None, "7 4", "2 3", "9 3 2 3", "12 4", "5 2 1 2", "1 5", "10 2 2 2 2 2")

OWN_SCALE = frozenset({"self_certainty", "entropy"})
"""Methods whose reward is no share: their curves get an axis of their own."""


@dataclass(slots=True)
class Condition:
    """All runs of one method in one setting."""

    index: int
    method: str
    setting: str
    slot: int
    """Colour: class `mN` of the style sheet."""
    dash: str | None
    """Tells settings and variants of one method apart where colour cannot."""
    rewards_by: str
    """The supervision method; a study may call a variant of it otherwise."""
    runs: list[Run] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The method, for people."""
        if self.rewards_by not in _KNOWN:
            return self.method
        known = _KNOWN[self.rewards_by][0]
        if self.method == self.rewards_by:
            return known
        variant = self.method.removeprefix(f"{self.rewards_by}_")
        return f"{known}, {plain(variant)}"

    @property
    def title(self) -> str:
        """Method and setting."""
        return f"{self.name} · {plain(self.setting)}" if self.setting else self.name

    @property
    def has_own_scale(self) -> bool:
        """The reward leaves [0, 1], as intrinsic rewards do."""
        return self.rewards_by in OWN_SCALE or any(
            not 0 <= line["reward_mean"] <= 1
            for run in self.runs
            for lines in run.metrics.values()
            for line in lines
            if isinstance(line.get("reward_mean"), int | float)
        )

    def agents(self) -> list[str]:
        """Names of the agents, in ring order."""
        names = [result.name for run in self.runs for result in run.results]
        return list(dict.fromkeys(names))


def group_runs(runs: Iterable[Run]) -> list[Condition]:
    """Conditions in the order of the page: known methods first, settings as they came."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.method, run.setting), []).append(run)
    rewards_by = {key: _rewards_by(key[0], found[key]) for key in found}
    ranks = {method: rank for rank, method in enumerate(_KNOWN)}
    ordered = sorted(
        found, key=lambda key: (ranks.get(rewards_by[key], len(ranks)), key[0] not in ranks)
    )
    others = [method for method in dict.fromkeys(rewards_by.values()) if method not in _KNOWN]
    num_seen: Counter[str] = Counter()
    conditions: list[Condition] = []
    for key in ordered:
        method = rewards_by[key]
        if method in _KNOWN:
            slot = _KNOWN[method][1]
        else:
            slot = _OTHER_SLOTS[others.index(method) % len(_OTHER_SLOTS)]
        conditions.append(
            Condition(
                index=len(conditions),
                method=key[0],
                setting=key[1],
                slot=slot,
                dash=_DASHES[num_seen[method] % len(_DASHES)],
                rewards_by=method,
                runs=sorted(found[key], key=_seed_order),
            )
        )
        num_seen[method] += 1
    return conditions


def _rewards_by(method: str, runs: Sequence[Run]) -> str:
    if method in _KNOWN:
        return method
    return next((run.supervision for run in runs if run.supervision), method)


def plain(setting: str) -> str:
    """A setting's key as words."""
    return setting.replace("_", " ")


def swatch(condition: Condition) -> Html:
    """A short stroke in the condition's colour and dashes."""
    return el(
        "svg",
        el("path", d="M1 5H27", stroke_dasharray=condition.dash),
        class_=f"swatch m{condition.slot}",
        viewBox="0 0 28 10",
        aria_hidden="true",
    )


def _seed_order(run: Run) -> tuple[int, str]:
    return (int(run.seed), "") if run.seed.isdecimal() and run.seed.isascii() else (10**9, run.seed)
