"""Ending a run early, at the same step for every agent.

SIGTERM, Ctrl-C and the run's own health policy ask for a stop. Agents in one
process stop before the next step. Agents in processes of their own may be
steps apart, so the launcher names a last step that none has passed, and all
train up to it: then the cohort has one checkpoint that everybody shares.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STOP_KEY = "stop/last_step"


class StopRequest:
    """Whether anything asked for a stop. A second signal ends the process at once."""

    def __init__(self) -> None:
        self.requested = False
        self._signalled = False

    def ask(self) -> None:
        """Ask from within. A signal that follows is still the first one."""
        self.requested = True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take the two signals over meanwhile. Only a process's main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, self._on_signal) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._signalled:
            raise KeyboardInterrupt
        self._signalled = self.requested = True


class LocalControl:
    """Stops all agents of this process before their next step."""

    def __init__(self, request: StopRequest) -> None:
        self._request = request

    def ends_before(self, step: int, names: Sequence[str]) -> bool:
        """Whether a stop was asked for."""
        return self._request.requested


class StoreControl:
    """An agent's side of a stop agreed on through the store."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def ends_before(self, step: int, names: Sequence[str]) -> bool:
        """Say which step is about to start, then whether it lies behind the agreed last one."""
        for name in names:
            self._store.set(f"at/{name}", str(step))
        return self._store.check([_STOP_KEY]) and step > int(self._store.get(_STOP_KEY))


def agree_on_stop(store: Any, names: Sequence[str]) -> int:
    """Name the last step of a run that is to end early: one past the furthest agent's.

    Between the read and the write no agent can start two steps, so none has
    passed the step that is named.
    """
    at = [int(store.get(f"at/{name}")) if store.check([f"at/{name}"]) else 0 for name in names]
    last_step = max(at) + 1
    store.set(_STOP_KEY, str(last_step))
    return last_step
