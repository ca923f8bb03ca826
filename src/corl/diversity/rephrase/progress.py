"""How far a job is, and how long the rest takes: a bar, or plain lines in a log file."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

_SECONDS_BETWEEN_LINES = 10.0


class RephraseProgress:
    """Counts rows that are decided: rewritten, or out of tries."""

    def __init__(self, total: int, done: int, *, console: Console) -> None:
        self._console, self._total = console, total
        self._first = self._done = done
        self._started = self._last_line = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("rows,"),
            TimeElapsedColumn(),
            TextColumn("gone,"),
            TimeRemainingColumn(),
            TextColumn("to go"),
            console=console,
        )
        self._task = self._bar.add_task("", total=total, completed=done)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def show(self, decided: int, what: str) -> None:
        """Take up how many rows are decided by now."""
        self._done = decided
        self._bar.update(self._task, completed=decided, description=what)
        now = time.monotonic()
        if self._console.is_terminal or now - self._last_line < _SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        new = self._done - self._first
        left = (now - self._started) / new * (self._total - self._done) if new else None
        estimate = "" if left is None else f", {left:.0f} s to go"
        self._console.print(
            f"{self._done:,}/{self._total:,} rows{estimate}: {what}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
