"""From graded samples to the figures that are reported, with intervals over problems.

Pure. Shapes: P problems, K completions of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import Any

from corl.errors import CheckpointError
from corl.evaluation.benchmarks import Benchmark, Item
from corl.evaluation.estimators import maj_at_k, pass_at_k
from corl.evaluation.graders import VERDICTS
from corl.evaluation.resampling import problem_interval
from corl.evaluation.suite.answering import Record


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over problems, in [0, 1]."""

    values: tuple[float, ...]
    """[P]"""
    interval: tuple[float, float] | None
    """95 % over problems; None for a single one."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        return cls(tuple(values), problem_interval(values))

    @property
    def mean(self) -> float:
        return fmean(self.values)

    def to_json(self) -> dict[str, Any]:
        interval = None if self.interval is None else [round(end, 6) for end in self.interval]
        return {"value": round(self.mean, 6), "interval": interval}


@dataclass(frozen=True, slots=True)
class Score:
    """One model on one benchmark."""

    benchmark: str
    ids: tuple[str, ...]
    """[P]"""
    samples: int
    """K; 0 where only the most probable completion was taken."""
    figures: dict[str, Figure]
    """greedy, avg@K, and maj@k and pass@k for k = 2, 4, ... and K."""
    headline: str
    """The figure that is reported and averaged."""
    verdicts: dict[str, int]
    """How many completions were right, wrong, without answer, ..."""
    truncated: float
    """Share of completions that the length limit cut."""

    @property
    def main(self) -> Figure:
        """The reported figure."""
        return self.figures[self.headline]

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": len(self.ids),
            "samples": self.samples,
            "metric": self.headline,
            **{name: figure.to_json() for name, figure in self.figures.items()},
            "verdicts": self.verdicts,
            "truncated": round(self.truncated, 6),
        }


def score(
    benchmark: Benchmark,
    items: Sequence[Item],
    sampled: Sequence[Record],
    greedy: Sequence[Record] = (),
) -> Score:
    """Figures of a benchmark's records, [P x K] and [P], in the items' order.

    avg@K is the mean share of right completions; pass@k is Chen et al. 2021's unbiased estimate;
    maj@k is the expectation over subsets of k of the K, a tie or no answer at all being wrong.
    Programs have no key to vote by, so code has no maj@k here.
    """
    figures: dict[str, Figure] = {}
    if greedy:
        _require_order(items, greedy, 1)
        figures["greedy"] = Figure.of([float(one.right) for one in greedy])
    num_samples = len(sampled) // len(items)
    if num_samples:
        _require_order(items, sampled, num_samples)
        groups = [
            sampled[start : start + num_samples] for start in range(0, len(sampled), num_samples)
        ]
        figures.update(_sampled_figures(groups, has_votes=benchmark.answer.kind != "code"))
    headline = f"avg@{num_samples}"
    if "greedy" in figures and (benchmark.metric == "greedy" or not num_samples):
        headline = "greedy"
    every = [*sampled, *greedy]
    counts = Counter(one.verdict for one in every)
    return Score(
        benchmark=benchmark.name,
        ids=tuple(item.id for item in items),
        samples=num_samples,
        figures=figures,
        headline=headline,
        verdicts={verdict: counts[verdict] for verdict in VERDICTS},
        truncated=fmean(one.truncated for one in every),
    )


def _sampled_figures(groups: Sequence[Sequence[Record]], *, has_votes: bool) -> dict[str, Figure]:
    num_samples = len(groups[0])
    hits = [sum(one.right for one in group) for group in groups]
    figures = {f"avg@{num_samples}": Figure.of([hit / num_samples for hit in hits])}
    for k in _sizes(num_samples):
        if has_votes:
            figures[f"maj@{k}"] = Figure.of([_majority_share(group, k) for group in groups])
        figures[f"pass@{k}"] = Figure.of([pass_at_k(num_samples, hit, k) for hit in hits])
    return figures


def _sizes(num_samples: int) -> list[int]:
    """2, 4, 8, ... and K."""
    powers = [1 << bit for bit in range(1, 12) if 1 << bit < num_samples]
    return [*powers, num_samples] if num_samples > 1 else []


def _majority_share(group: Sequence[Record], k: int) -> float:
    counts = Counter(one.key for one in group)
    return float(maj_at_k(counts, right_keys(group), k))


def right_keys(group: Sequence[Record]) -> set[str]:
    """Keys of one problem that count as right.

    math-verify can differ on two texts of one key: a key is right when most of its members are.
    """
    members: dict[str, list[bool]] = {}
    for one in group:
        if one.key is not None:
            members.setdefault(one.key, []).append(one.right)
    return {key for key, right in members.items() if 2 * sum(right) > len(right)}


def plain_average(scores: Sequence[Score]) -> dict[str, Any]:
    """The plain mean of the benchmarks' reported figures.

    Benchmarks share no problem, so the squared reaches of their intervals add up, below the mean
    and above it (Zou and Donner 2008).
    """
    mean = fmean(one.main.mean for one in scores)
    interval = None
    ends = [(one.main.mean, one.main.interval) for one in scores if one.main.interval]
    if len(ends) == len(scores):
        below = sqrt(sum((value - low) ** 2 for value, (low, _) in ends)) / len(scores)
        above = sqrt(sum((high - value) ** 2 for value, (_, high) in ends)) / len(scores)
        interval = [round(max(0.0, mean - below), 6), round(min(1.0, mean + above), 6)]
    return {
        "value": round(mean, 6),
        "interval": interval,
        "benchmarks": [one.benchmark for one in scores],
    }


def _require_order(items: Sequence[Item], records: Sequence[Record], samples: int) -> None:
    expected = [(item.id, number) for item in items for number in range(samples)]
    if [(one.id, one.sample) for one in records] != expected:
        raise CheckpointError(
            f"{len(records)} records do not stand in the order of {len(items)} items with "
            f"{samples} completions each"
        )
