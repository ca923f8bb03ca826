"""How far an evaluation is, and how long the rest takes: a bar, or plain lines in a log file."""

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


class EvalProgress:
    """Counts completions, over all models and benchmarks."""

    def __init__(self, total: int, *, console: Console) -> None:
        self._console, self._total = console, total
        self._done = self._done_now = 0
        self._started = self._last_line = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("completions,"),
            TimeElapsedColumn(),
            TextColumn("gone,"),
            TimeRemainingColumn(),
            TextColumn("to go"),
            console=console,
        )
        self._task = self._bar.add_task("", total=total)

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

    def skip(self, completions: int) -> None:
        """Count what an earlier start did; it says nothing about pace."""
        self._done += completions
        self._bar.update(self._task, completed=self._done)

    def advance(self, completions: int, what: str) -> None:
        """Count what was done now."""
        self._done += completions
        self._done_now += completions
        self._bar.update(self._task, completed=self._done, description=what)
        now = time.monotonic()
        is_due = now - self._last_line >= _SECONDS_BETWEEN_LINES
        if not self._console.is_terminal and is_due:
            self._last_line = now
            left = (now - self._started) / self._done_now * (self._total - self._done)
            self._console.print(
                f"{self._done:,}/{self._total:,} completions, {left:.0f} s to go: {what}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
