"""One agent's figures over time: medians of its first steps and of its latest.

A step's figures are means over a small batch, so a single step proves nothing. Both sides of every
comparison are medians, which one odd step cannot move. Missing values, NaN and infinities are left
out; a side with fewer than half of its steps has no median, and nothing is concluded from it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

Record = Mapping[str, Any]


class History:
    """The first `warmup` and the last `window` records of one agent."""

    def __init__(self, *, warmup: int, window: int) -> None:
        self._warmup = warmup
        self._first: list[Record] = []
        self._latest: deque[Record] = deque(maxlen=window)
        self._seen = 0

    def add(self, record: Record) -> None:
        """Take up the agent's next step."""
        self._seen += 1
        if len(self._first) < self._warmup:
            self._first.append(record)
        self._latest.append(record)

    @property
    def is_ready(self) -> bool:
        """Whether the latest steps are full in number and none of them is one of the first."""
        return self._seen >= self._warmup + (self._latest.maxlen or 0)

    def start(self, key: str) -> float | None:
        """Median of a figure over the first steps."""
        return _median(self._first, key)

    def now(self, key: str) -> float | None:
        """Median of a figure over the latest steps."""
        return _median(self._latest, key)

    def ratio(self, key: str) -> float | None:
        """`now` over `start`, for figures that are never negative."""
        start, now = self.start(key), self.now(key)
        return None if start is None or now is None or start <= 0 else now / start

    def rise(self, key: str) -> float | None:
        """`now` minus `start`."""
        start, now = self.start(key), self.now(key)
        return None if start is None or now is None else now - start

    def is_absent(self, key: str) -> bool:
        """Whether a figure has no value in any of these steps."""
        return not _finite(self._first, key) and not _finite(self._latest, key)

    def lies_above(self, key: str) -> bool:
        """Whether every one of the latest steps is above every one of the first.

        For small changes: of unchanged noise, 4 and 4 steps do so once in 70 times,
        whatever its size.
        """
        first, latest = _finite(self._first, key), _finite(self._latest, key)
        return bool(first and latest) and min(latest) > max(first)


def _median(records: Sequence[Record] | deque[Record], key: str) -> float | None:
    found = _finite(records, key)
    return median(found) if found and 2 * len(found) >= len(records) else None


def _finite(records: Iterable[Record], key: str) -> list[float]:
    values = (record.get(key) for record in records)
    return [
        float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)
    ]
