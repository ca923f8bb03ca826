"""How much a completion repeats itself: the share of its n-grams that it has said before.

Loops are the usual end of a policy that is rewarded for its own certainty: a phrase said twice is
more certain the third time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def repeated_share(completions: Iterable[Sequence[int]], *, n: int = 4) -> float | None:
    """Share of n-grams of token ids that stood earlier in the same completion, over all of them.

    completions: token ids, one sequence a completion; those shorter than n have no n-gram.
    Returns a share in [0, 1), or None where no completion is n tokens long. A sequence that loops
    with period p from its start has the share 1 - p / (T - n + 1).
    """
    grams = repeated = 0
    for ids in completions:
        num_grams = len(ids) - n + 1
        if num_grams > 0:
            shifted = (ids[start : start + num_grams] for start in range(n))
            grams += num_grams
            repeated += num_grams - len(set(zip(*shifted, strict=True)))
    return repeated / grams if grams else None
