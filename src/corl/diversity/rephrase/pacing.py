"""When the next request may go out: rate limit, back-off, and what the server asks for."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_PAUSE = 600.0
"""Seconds; a server that asks for more gets this."""
_LONGEST_BACKOFF = 60.0


def backoff(failures: int, draw: float, *, first: float = 1.0) -> float:
    """Seconds before the next attempt: exponential with jitter, half of it fixed.

    failures: so far, 1 and more. draw: uniform in [0, 1). first: seconds after the first failure.
    """
    longest = min(first * 2.0 ** min(failures - 1, 30), _LONGEST_BACKOFF)
    return longest * (0.5 + 0.5 * draw)


def retry_after(header: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or a date; None without a sense."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            when = parsedate_to_datetime(header)
        except ValueError:
            return None
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        seconds = (when - now).total_seconds()
    return min(max(seconds, 0.0), LONGEST_PAUSE) if seconds == seconds else None


class Pace:
    """Shared by all connections: so many requests a minute, and a pause for all after a 429."""

    def __init__(self, per_minute: float | None) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._lock = threading.Lock()
        self._next = 0.0
        self._stop = threading.Event()

    def wait_for_turn(self) -> bool:
        """Wait until a request may go out; False when the job is stopping."""
        while True:
            with self._lock:
                now = time.monotonic()
                if now >= self._next:
                    self._next = now + self._gap
                    return not self._stop.is_set()
                pause = self._next - now
            if self._stop.wait(pause):
                return False

    def hold(self, seconds: float) -> None:
        """Let nobody go out for so long."""
        with self._lock:
            self._next = max(self._next, time.monotonic() + seconds)

    def sleep(self, seconds: float) -> bool:
        """Wait alone; False when the job is stopping."""
        return not self._stop.wait(seconds)

    def stop(self) -> None:
        """End all waiting."""
        self._stop.set()
