"""From metrics to curves: which figures are drawn, thinned to buckets, averaged over seeds.

A bucket is the mean of the steps in it, so a curve is thinned without dropping a
spike's weight. The mean of a condition stands where each of its seeds has a value, and a
failed run is drawn but not averaged: a mean never jumps because a run ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from corl.report.records import MEASURES, Line, Run, number

Point = tuple[float, float]
"""Step and value."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One chart of each agent."""

    key: str
    title: str
    says: str
    scale: Literal["share", "zero", "free"] = "zero"
    """share: 0 to 1, shown in %; zero: from 0 up; free: whatever the values span."""


HELD_OUT = Metric("held_out", "Held-out accuracy", "on problems never trained on", "share")

METRICS = (
    Metric("accuracy", "Accuracy of the samples", "no reward sees it", "share"),
    Metric("reward_mean", "Reward", "rising while accuracy falls: agreement on errors", "share"),
    Metric("reward_std", "Group std of the reward", "near 0: nothing left to learn from"),
    Metric("peer_agreement", "Agreement", "own vote equals the label", "share"),
    Metric("distinct_answers", "Distinct answers", "in a group of completions"),
    Metric("length_mean", "Length", "tokens of a completion"),
    Metric("entropy", "Entropy", "of the sampled tokens, in nats"),
)
MORE_METRICS = (
    Metric("labelled_share", "Labelled share", "prompts that have a label", "share"),
    Metric("vote_support", "Vote support", "completions behind the own vote", "share"),
    Metric("answered_share", "Answered share", "completions that state an answer", "share"),
    Metric("truncated_share", "Truncated share", "completions cut off at the cap", "share"),
    Metric("kl", "KL", "to the starting policy, per token"),
    Metric("grad_norm", "Gradient norm", "before clipping"),
)


_BENCHMARK = "benchmark:"


def benchmark_metrics(runs: Sequence[Run], agent: str) -> list[Metric]:
    """A chart for each benchmark that was measured on the agent while it trained."""
    names = dict.fromkeys(name for run in runs for name in run.benchmarks.get(agent, ()))
    return [Metric(_BENCHMARK + name, name, "benchmark, while training", "share") for name in names]


def bucket_width(runs: Sequence[Run], max_points: int) -> int:
    """Steps that go into one point so that no curve has more than `max_points`."""
    longest = max((run.last_step for run in runs), default=0)
    return max(1, -(-longest // max_points))


def points_of(run: Run, agent: str, metric: Metric, width: int) -> list[Point]:
    """The curve of one agent of one run; steps without a value leave a gap in nothing else."""
    if metric is HELD_OUT:
        return _held_out(run, agent)
    if metric.key.startswith(_BENCHMARK):
        return _benchmark(run, agent, metric.key.removeprefix(_BENCHMARK))
    buckets: dict[int, list[Point]] = {}
    for line in run.metrics.get(agent, ()):
        value = number(line.get(metric.key))
        if value is not None:
            buckets.setdefault((line["step"] - 1) // width, []).append((line["step"], value))
    return [
        (bucket * width + (width + 1) / 2, fmean(value for _, value in inside))
        for bucket, inside in sorted(buckets.items())
    ]


def mean_curve(curves: Sequence[Sequence[Point]]) -> list[Point]:
    """The mean at the steps that every curve has."""
    by_step = [dict(curve) for curve in curves if curve]
    if not by_step:
        return []
    shared = set(by_step[0]).intersection(*by_step[1:])
    return [(step, fmean(curve[step] for curve in by_step)) for step in sorted(shared)]


def value_at(points: Sequence[Point], step: float) -> Point | None:
    """The point nearest to a step."""
    return min(points, key=lambda point: abs(point[0] - step), default=None)


def held_out_measure(line: Line) -> str | None:
    """The measure that a held-out curve shows: the first of the known ones that is there."""
    return next((m for m in MEASURES if number(line.get(m)) is not None), None)


def _benchmark(run: Run, agent: str, name: str) -> list[Point]:
    """The reported figure of a benchmark at the steps where it was measured."""
    points = []
    for line in run.benchmarks.get(agent, {}).get(name, ()):
        figure = line.get(str(line.get("metric")))
        value = number(figure.get("value")) if isinstance(figure, dict) else None
        if value is not None:
            points.append((line["step"], value))
    return points


def _held_out(run: Run, agent: str) -> list[Point]:
    """Evaluations along the way, and the accuracy before and after training at the two ends."""
    points: dict[float, float] = {}
    result = next((r for r in run.results if r.name == agent), None)
    measure = None
    for line in run.evaluations.get(agent, ()):
        measure = measure or held_out_measure(line)
        value = number(line.get(measure)) if measure else None
        if value is not None:
            points[line["step"]] = value
    if result is not None:
        measure = measure or held_out_measure(result.after) or held_out_measure(result.before)
        before = result.before.get(measure or "")
        after = result.after.get(measure or "")
        if before is not None:
            points.setdefault(0, before)
        if after is not None and run.last_step:
            points.setdefault(run.last_step, after)
    return sorted(points.items())
