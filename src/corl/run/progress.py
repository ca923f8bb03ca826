"""Live progress with an estimate: a bar and one line per agent, or plain lines in a log file."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table

from corl.config import Recipe

_COLUMNS = (
    ("reward", "reward_mean"),
    ("group std", "reward_std"),
    ("agreement", "peer_agreement"),
    ("labelled", "labelled_share"),
    ("flat", "flat_share"),
    ("tokens", "length_mean"),
    ("entropy", "entropy"),
)
_SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Shows a run as its records come in."""

    def __init__(self, recipe: Recipe, done_step: int, steps: int, *, console: Console) -> None:
        self._console = console
        self._names = [agent.name for agent in recipe.agents]
        self._steps = steps
        self._paced_from: tuple[int, float] | None = None
        self._latest: dict[str, dict[str, Any]] = {}
        self._last_line = 0.0
        self._bar = Bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps,"),
            TimeElapsedColumn(),
            TextColumn("gone,"),
            TimeRemainingColumn(),
            TextColumn("to go"),
            console=console,
        )
        self._task = self._bar.add_task(recipe.name, total=steps, completed=done_step)
        self._live = (
            Live(get_renderable=self._render, console=console, refresh_per_second=4)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, record: dict[str, Any]) -> None:
        """Take up one agent's step."""
        self._latest[record["agent"]] = record
        if record["agent"] == self._names[-1]:
            self._bar.update(self._task, completed=record["step"])
            if not self._live:
                self._print_line(record["step"])

    def _print_line(self, step: int) -> None:
        now = time.monotonic()
        if step < self._steps and now - self._last_line < _SECONDS_BETWEEN_LINES:
            return
        self._last_line = now
        pace = self._seconds_a_step(step, now)
        agents = "; ".join(
            f"{name} reward {_shown(self._latest[name].get('reward_mean'))} "
            f"agreement {_shown(self._latest[name].get('peer_agreement'))}"
            for name in self._names
            if name in self._latest
        )
        self._console.print(
            f"step {step}/{self._steps}, {pace * (self._steps - step):.0f} s to go: {agents}",
            highlight=False,
            soft_wrap=True,
        )

    def _seconds_a_step(self, step: int, now: float) -> float:
        """From the first step that was seen on: what came before it is loading."""
        if self._paced_from is None:
            self._paced_from = step, now
            spent = self._latest[self._names[-1]].get("time", {})
            return sum(spent.get(phase, 0.0) for phase in ("sample", "read", "wait", "learn"))
        first, started = self._paced_from
        return (now - started) / max(step - first, 1)

    def _render(self) -> Group:
        table = Table(box=None, pad_edge=False)
        table.add_column("agent")
        for title, _ in _COLUMNS:
            table.add_column(title, justify="right")
        for name in self._names:
            record = self._latest.get(name, {})
            table.add_row(name, *(_shown(record.get(key)) for _, key in _COLUMNS))
        return Group(self._bar, table)


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}" if abs(value) < 100 else f"{value:.0f}"
