"""The answer that most of a problem's completions agree on, and how often that is right.

Pure. Two policies for a shared first place, neither of which depends on the order of completions:
`abstain` (no answer, wrong: the policy of votes and of maj@k) and `share` (each of those answers
counts in equal parts: what taking the first seen comes to on average).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

Key = str | None
"""What equal answers share; None where no answer was stated."""

_SAME = 1e-9
"""Sums of weights that differ by less are equal."""


def leading_answers(keys: Sequence[Key], weights: Sequence[float] | None = None) -> list[str]:
    """The answers with the most votes, sorted; none where nothing was answered.

    weights: of each completion's vote; 1 where left out. Raises ValueError for a weight that is
    negative or not finite.
    """
    given = [1.0] * len(keys) if weights is None else list(weights)
    if not all(0 <= weight < float("inf") for weight in given):
        raise ValueError(f"weights of votes must be finite and not negative: {given}")
    votes: dict[str, float] = defaultdict(float)
    for key, weight in zip(keys, given, strict=True):
        if key is not None:
            votes[key] += weight
    most = max(votes.values(), default=0.0)
    if most <= 0:
        return []
    return sorted(key for key, vote in votes.items() if vote >= most - _SAME * max(1.0, most))


def consistency_score(
    keys: Sequence[Key], right: Sequence[bool], *, ties: Literal["abstain", "share"] = "share"
) -> float:
    """How right the leading answer is, 0 to 1.

    keys, right: one entry a completion. Members of one answer may differ in being right (programs
    that behave alike on the examples and not in the tests): the mean over them is what one of
    them, drawn at random, scores.
    """
    leaders = leading_answers(keys)
    if not leaders or (ties == "abstain" and len(leaders) > 1):
        return 0.0
    return fmean(
        fmean(hit for key, hit in zip(keys, right, strict=True) if key == leader)
        for leader in leaders
    )
