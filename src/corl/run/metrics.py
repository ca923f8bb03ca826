"""One agent's metrics of one step: every figure of `metrics.jsonl`, by its definition.

Shapes: P prompts, K completions per prompt. Shares lie in [0, 1] and are None
where they would be over nothing. All that depends on the clock is under `time`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from corl.answers import Answer, Vote
from corl.rollout.rollout import Rollout
from corl.run.health.repetition import repeated_share
from corl.supervision import Rewards


@dataclass(slots=True)
class StepTimes:
    """Seconds of one step by phase."""

    sample: float = 0.0
    sampled_tokens: int = 0
    """Tokens sampled in `sample` seconds, those included that voted only."""
    read: float = 0.0
    """Reading answers and voting."""
    voted_at: float = 0.0
    """When the vote stood, on the process's clock."""
    wait: float = 0.0
    """From the own vote to having the peers'; in one process this is the others' turn."""
    learn: float = 0.0
    updates_behind: int = 0
    """Own updates between sampling and learning: how far the agent ran ahead of its peers."""


def step_record(
    *,
    agent: str,
    step: int,
    rollout: Rollout,
    answers: Sequence[Sequence[Answer | None]],
    votes: Sequence[Vote | None],
    true_keys: Sequence[str | None],
    rewards: Rewards,
    learned: dict[str, float],
    times: StepTimes,
) -> dict[str, Any]:
    """The line that one agent writes for one step.

    true_keys: [P] keys of the labels, for the diagnostic `accuracy` alone.
    """
    lengths = [len(ids) for group in rollout.token_ids for ids in group]
    own_keys = [None if vote is None else vote.answer.key for vote in votes]
    both_voted = [
        own == label
        for own, label in zip(own_keys, rewards.labels, strict=True)
        if own is not None and label is not None
    ]
    return {
        "step": step,
        "agent": agent,
        "reward_mean": _mean(value for group in rewards.rewards for value in group),
        "reward_std": _mean(stdev(group) for group in rewards.rewards),
        "vote_support": _mean(vote.support for vote in votes if vote is not None),
        "voted_share": _mean(vote is not None for vote in votes),
        "peer_agreement": _mean(both_voted),
        "labelled_share": _mean(rewards.labelled),
        "flat_share": _mean(len(set(group)) == 1 for group in rewards.rewards),
        "answered_share": _mean(answer is not None for group in answers for answer in group),
        "distinct_answers": _mean(
            len({answer.key for answer in group if answer is not None}) for group in answers
        ),
        "accuracy": _accuracy(answers, true_keys),
        "length_mean": _mean(lengths),
        "length_max": max(lengths),
        "repetition": repeated_share(ids for group in rollout.token_ids for ids in group),
        "truncated_share": _mean(cut for group in rollout.truncated for cut in group),
        "entropy": _finite_mean(rollout.entropy.flatten().tolist()),
        "self_certainty": _finite_mean(rollout.self_certainty.flatten().tolist()),
        "nonfinite_tokens": rollout.num_nonfinite,
        **learned,
        "time": {
            "sample": round(times.sample, 4),
            "read": round(times.read, 4),
            "wait": round(times.wait, 4),
            "updates_behind": times.updates_behind,
            "learn": round(times.learn, 4),
            "sampled_tokens_per_second": round(times.sampled_tokens / max(times.sample, 1e-9), 1),
        },
    }


def _accuracy(
    answers: Sequence[Sequence[Answer | None]], true_keys: Sequence[str | None]
) -> float | None:
    return _mean(
        answer is not None and answer.key == true_key
        for group, true_key in zip(answers, true_keys, strict=True)
        if true_key is not None
        for answer in group
    )


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return fmean(listed) if listed else None


def _finite_mean(values: Iterable[float]) -> float | None:
    return _mean(value for value in values if math.isfinite(value))
