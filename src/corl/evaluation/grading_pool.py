"""Worker processes that run math-verify, and a pool that kills the stuck ones.

math-verify's own alarm needs a main thread, cannot interrupt C code and raises a
BaseException; here it is off, and a worker that does not answer in time is
killed, reaped and replaced. Workers are fresh interpreters: nothing is forked,
and a caller's script needs no main guard.
"""

import contextlib
import json
import os
import queue
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from corl.errors import CorlError

_START_WITHIN_S = 120.0
_WALL_FACTOR = 4
_WORKER_MEMORY_BYTES = 4 << 30
_TINY = 1e-4
"""math-verify rounds to 6 decimals: below this, different numbers can round to one."""


class GradingError(CorlError, RuntimeError):
    """math-verify cannot be used here."""


class _Budget:
    """Seconds for one question: CPU seconds of the worker, and wall time as the outer bound.

    On a full machine a worker that has not had its CPU time yet gets more wall time.
    """

    def __init__(self, pid: int, timeout_s: float) -> None:
        self._pid, self._timeout_s = pid, timeout_s
        self._cpu_start_s = self._cpu_s()
        now = time.monotonic()
        self.deadline, self._last = now + timeout_s, now + _WALL_FACTOR * timeout_s

    def extended(self) -> bool:
        """Move the deadline by the CPU time that is left; False when nothing is."""
        left = self._timeout_s - (self._cpu_s() - self._cpu_start_s)
        now = time.monotonic()
        if left < 0.05 * self._timeout_s or now >= self._last:
            return False
        self.deadline = min(now + left, self._last)
        return True

    def _cpu_s(self) -> float:
        try:
            return time.clock_gettime((~self._pid << 3) | 2)  # the kernel's clock of that pid
        except OSError:
            return float("inf")


class Worker:
    """One process that grades pairs, started when first needed."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._lock = threading.Lock()
        self._is_closed = False

    def ask(self, gold: str, answer: str) -> dict[str, Any]:
        """Grade one pair; what was not answered in time is missing from the reply.

        Returns fields of `compare`; the worker's death counts as running out of time
        only when the time is over, else the field "error" says how it died.
        """
        process = self._ensure()
        assert process.stdin is not None
        reply: dict[str, Any] = {}
        try:
            process.stdin.write(json.dumps([gold, answer]).encode() + b"\n")
            process.stdin.flush()
            budget = _Budget(process.pid, self.timeout_s)
            while "done" not in reply:
                message = self._line(budget.deadline)
                if message is None and budget.extended():
                    continue
                if message is None:
                    self.kill()
                    return reply
                reply.update(message)
        except (OSError, EOFError) as error:
            self.kill()
            return {**reply, "error": f"the worker died ({error or 'no output'})"}
        return reply

    def _ensure(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise GradingError("the grading pool is closed; open a new one.")
            if self._process is not None:
                return self._process
            path = [entry for entry in sys.path if entry]
            code = f"import sys; sys.path[:] = {path!r}; import corl.evaluation.grading_pool as p"
            self._pending = b""
            self._process = process = subprocess.Popen(
                [sys.executable, "-c", f"{code}; p.work()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        try:
            ready = self._line(time.monotonic() + _START_WITHIN_S) or {}
        except EOFError:
            ready = {}
        if "ready" not in ready:
            self.kill()
            said = ready.get("error", "it ended without a message")
            raise GradingError(
                f"a math-verify worker did not start: {said}. Install corl[grading]."
            )
        return process

    def _line(self, deadline: float) -> dict[str, Any] | None:
        """Return the worker's next message, or None when the time is over."""
        process = self._process
        if process is None or process.stdout is None:
            raise EOFError("it was ended")
        descriptor = process.stdout.fileno()
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return None
            part = os.read(descriptor, 1 << 16)
            if not part:
                raise EOFError(f"exit code {process.wait()}")
            self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def kill(self) -> None:
        """End the process at once and reap it; the next question starts another."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def close(self) -> None:
        self._is_closed = True
        self.kill()


class GradingPool:
    """A few workers behind one `compare_all`; closing it never waits for a stuck one."""

    def __init__(self, *, workers: int = 2, timeout_s: float = 5.0) -> None:
        if workers < 1 or timeout_s <= 0:
            raise ValueError(
                f"grading with workers={workers}, timeout_s={timeout_s}; both must be positive."
            )
        self._workers = [Worker(timeout_s) for _ in range(workers)]

    def __enter__(self) -> "GradingPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill every worker."""
        for worker in self._workers:
            worker.close()

    def compare_all(self, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        """Return one reply per pair, in order. Raises `GradingError` when no worker starts."""
        todo: queue.SimpleQueue[int] = queue.SimpleQueue()
        for index in range(len(pairs)):
            todo.put(index)
        replies: list[dict[str, Any]] = [{} for _ in pairs]
        failures: list[BaseException] = []

        def serve(worker: Worker) -> None:
            with contextlib.suppress(queue.Empty):
                while not failures:
                    index = todo.get_nowait()
                    try:
                        replies[index] = worker.ask(*pairs[index])
                    except BaseException as error:
                        failures.append(error)

        used = self._workers[: max(1, len(pairs))]
        threads = [threading.Thread(target=serve, args=(one,), daemon=True) for one in used]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return replies


def work() -> None:
    """The worker: read pairs from stdin, write messages to stdout, until stdin ends."""
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a stray print of a library must not look like a message

    def say(message: dict[str, Any]) -> None:
        output.write(json.dumps(message).encode() + b"\n")

    try:
        _limit_memory()
        # Loads what math-verify imports on first use, outside of any question's time.
        list(compare("(x+1)^2", "x^2+2x+1"))
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})
        return
    say({"ready": True})
    for line in sys.stdin:
        gold, answer = json.loads(line)
        try:
            for message in compare(gold, answer):
                say(message)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # TimeoutException of math-verify is no Exception
            say({"error": f"{type(error).__name__}: {error}"[:300]})
        say({"done": True})


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or hard > _WORKER_MEMORY_BYTES:
            resource.setrlimit(resource.RLIMIT_AS, (_WORKER_MEMORY_BYTES, hard))


def compare(gold: str, answer: str) -> Iterator[dict[str, Any]]:
    """Yield what math-verify says, each field as soon as it is known.

    unread: a side has no value; forward: verify(gold, answer); backward: the other
    order; tiny: both are numbers near zero, where rounding joins different ones.
    """
    from math_verify import parse, verify

    sides = [
        parse(_wrapped(text), parsing_timeout=None, raise_on_error=True) for text in (gold, answer)
    ]
    yield {"unread": not all(any(not isinstance(v, str) for v in side) for side in sides)}
    for name, order in (("forward", sides), ("backward", sides[::-1])):
        yield {name: bool(verify(*order, timeout_seconds=None, raise_on_error=True))}
    yield {"tiny": all(_is_tiny(side) for side in sides)}


def _wrapped(text: str) -> str:
    is_marked = "\\boxed" in text or re.search(r"(?<!\\)\$", text)
    return text if is_marked else f"\\boxed{{{text}}}"


def _is_tiny(side: list[Any]) -> bool:
    value: Any = next((v for v in side if not isinstance(v, str)), None)
    if not getattr(value, "is_number", False):
        return False
    number = value.evalf(15)
    return bool(number != 0) and abs(complex(number)) < _TINY
