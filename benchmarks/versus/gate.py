"""How a worker is driven: it announces that it is ready, then trains a step a command.

Both sides stay loaded, and only one pair works at a time, so what a step costs is measured
alternately and start-up never is.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch


class Gate:
    """A worker's end of the pipe."""

    def __init__(self, pipe: Connection, *, device: str) -> None:
        self._pipe = pipe
        self._device = torch.device(device)
        self._started: float | None = None
        self._resident = 0

    def step_begins(self) -> bool:
        """Say that the worker is ready and wait for a command; false when it is to end."""
        if self._started is None:
            self._resident = resident_bytes()
        self._pipe.send({"ready": True})
        if self._pipe.recv() == "stop":
            self._pipe.send(self.memory())
            return False
        self._started = time.perf_counter()
        return True

    def step_ends(self, **figures: float) -> None:
        """Report what the step took; `figures` are the side's own phases."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        assert self._started is not None
        self._pipe.send({"step_s": time.perf_counter() - self._started, **figures})

    def memory(self) -> dict[str, float]:
        """Bytes: resident before the first step, and the peak."""
        if self._device.type == "cuda":
            peak = torch.cuda.max_memory_reserved(self._device)
            return {"loaded_bytes": 0, "peak_bytes": peak}
        return {"loaded_bytes": self._resident, "peak_bytes": peak_bytes()}


class Stopwatch:
    """Adds up the seconds spent inside wrapped functions."""

    def __init__(self, device: str) -> None:
        self.seconds = 0.0
        self._device = torch.device(device)

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = self._now()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += self._now() - start

        return timed

    def take(self) -> float:
        """The sum since the last time it was taken."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def peak_bytes() -> int:
    """Largest resident memory of this process; `getrusage` would begin at its parent's."""
    with open("/proc/self/status") as fields:
        line = next(line for line in fields if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def resident_bytes() -> int:
    """Resident memory of this process now."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * resource.getpagesize()
