"""Sets of reals as sorted, disjoint spans: unions, intersections and complements.

A span runs from cut to cut. A cut is a place just before or just after a value, so
[a, b) runs from before a to before b, and neither open nor closed ends need cases.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple


class Cut(NamedTuple):
    """side is -1 and 1 at the two infinities, else 0; after is 1 behind the value, else 0."""

    side: int
    value: Fraction
    after: int


class Span(NamedTuple):
    low: Cut
    high: Cut


LOWEST = Cut(-1, Fraction(0), 0)
HIGHEST = Cut(1, Fraction(0), 0)
REALS = [Span(LOWEST, HIGHEST)]


def united(spans: Iterable[Span]) -> list[Span]:
    """The spans of a union: sorted, disjoint, with touching ones joined."""
    result: list[Span] = []
    for span in sorted(span for span in spans if span.low < span.high):
        if result and span.low <= result[-1].high:
            result[-1] = Span(result[-1].low, max(result[-1].high, span.high))
        else:
            result.append(span)
    return result


def common(left: list[Span], right: list[Span]) -> list[Span]:
    """The spans of an intersection."""
    pairs = (Span(max(a.low, b.low), min(a.high, b.high)) for a in left for b in right)
    return united(pairs)


def outside(spans: list[Span]) -> list[Span]:
    """The spans of a complement in the reals."""
    cuts = [LOWEST, *(cut for span in united(spans) for cut in span), HIGHEST]
    return united(Span(low, high) for low, high in zip(cuts[::2], cuts[1::2], strict=True))
