"""pass@k and maj@k from more samples than k, without bias. Pure; exact for any number of samples.

n: samples of one problem. k: how many of them a user would draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from math import comb

Key = str | None
"""What equal answers share; None where no answer was stated."""


def pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that k of n samples hold a right one, c of the n being right.

    1 - C(n-c, k) / C(n, k), Chen et al. 2021, equation 1. Raises ValueError unless
    0 <= c <= n and 1 <= k <= n.
    """
    if not 0 <= c <= n:
        raise ValueError(f"{c} right samples of {n} are not possible")
    _check_size(n, k)
    return 1.0 - comb(n - c, k) / comb(n, k)


def maj_at_k(counts: Mapping[Key, int], right: str | Collection[str] | None, k: int) -> float:
    """Probability that the majority of k samples, drawn without replacement, is right.

    counts: answer key -> samples of one problem; None counts abstentions, which take a place among
    the k and no vote. right: the right key, or several keys that all count as right. A first place
    that is shared has no majority and is wrong, as `votes.ties: abstain`; so is one with a right
    key among those that share it.
    Raises ValueError for a negative count or a k that the samples do not allow.
    """
    if any(count < 0 for count in counts.values()):
        raise ValueError(f"negative counts of samples: {dict(counts)}")
    total = sum(counts.values())
    _check_size(total, k)
    winners = {right} if isinstance(right, str) else set(right or ())
    answers = Counter({key: count for key, count in counts.items() if key is not None and count})
    won = sum(
        comb(answers[winner], votes)
        * _subsets_below(
            [count for key, count in answers.items() if key != winner],
            silent=total - sum(answers.values()),
            size=k - votes,
            most=votes - 1,
        )
        for winner in winners & answers.keys()
        for votes in range(1, min(answers[winner], k) + 1)
    )
    return won / comb(total, k)


def _subsets_below(others: list[int], *, silent: int, size: int, most: int) -> int:
    """How many subsets of `size` hold at most `most` samples of each other answer."""
    ways = [comb(silent, taken) for taken in range(size + 1)]
    for count in others:
        choices = [comb(count, votes) for votes in range(min(count, most, size) + 1)]
        ways = [
            sum(
                choices[votes] * ways[taken - votes]
                for votes in range(min(taken + 1, len(choices)))
            )
            for taken in range(size + 1)
        ]
    return ways[size]


def _check_size(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k is {k}, and there are {n} samples: it takes 1 to {n}")
