"""Run one program on one input, and say how it ended.

A wall time-out is tried once more with no other sandboxed run of this process
beside it: only then is it the program that sleeps, and not the machine that is
full.
"""

import contextlib
import resource
import signal
import threading
from collections.abc import Iterator

from corl.evaluation.sandbox.child.program import OUT_OF_MEMORY
from corl.evaluation.sandbox.launcher import start
from corl.evaluation.sandbox.levels import choose_level
from corl.evaluation.sandbox.records import Level, Limits, RunResult, Status
from corl.evaluation.sandbox.watcher import Child, watch


class _Gate:
    """Lets runs pass together, or one alone; one that waits to be alone goes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._num_inside = 0
        self._num_alone = 0

    @contextlib.contextmanager
    def enter(self, *, alone: bool) -> Iterator[None]:
        with self._changed:
            if alone:
                self._num_alone += 1
                self._changed.wait_for(lambda: self._num_inside == 0)
            else:
                self._changed.wait_for(lambda: self._num_alone == 0)
            self._num_inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._num_inside -= 1
                self._num_alone -= alone
                self._changed.notify_all()


GATE = _Gate()


def run_program(
    source: str,
    *,
    stdin: str = "",
    cpu_s: float = 2.0,
    wall_s: float = 10.0,
    memory_mb: int = 512,
    minimum: Level = "landlock",
    level: Level | None = None,
) -> RunResult:
    """Run a Python program in the sandbox.

    cpu_s: CPU seconds, decides "timeout" together with wall_s, which ends sleepers.
    memory_mb: address space, MiB.
    minimum: weakest isolation accepted; level: a fixed one instead of the strongest.
    Raises `SandboxError` when the sandbox cannot be set up; never for what the
    program does.
    """
    chosen = choose_level(level, minimum)
    limits = Limits(cpu_s=cpu_s, wall_s=wall_s, memory_mb=memory_mb)
    child = _run(source, stdin, limits, chosen, alone=False)
    if child.stopped == "wall":
        child = _run(source, stdin, limits, chosen, alone=True)
    out, err = (bytes(part).decode(errors="replace") for part in (child.stdout, child.stderr))
    return RunResult(status_of(child), out, err, child.cpu_s)


def _run(source: str, stdin: str, limits: Limits, level: Level, *, alone: bool) -> Child:
    payload = {"source": source.encode("utf-8", "replace")}
    data = stdin.encode("utf-8", "surrogatepass")
    with GATE.enter(alone=alone):
        child = start(("program",), payload, level=level, limits=limits, stdin=data)
        watch([child], wall_s=limits.wall_s)
    return child


def status_of(child: Child) -> Status:
    """Say how an ended process ended; CPU over its limit is a time-out however it ended."""
    code = child.code or 0
    if child.level == "bubblewrap" and code > 128:
        code = 128 - code  # bwrap reports a signal the way a shell does
    if child.stopped in ("cpu", "wall") or child.cpu_s > child.limits.cpu_s:
        return "timeout"
    if child.stopped in ("output", "disk"):
        return "output_limit"
    if code == -signal.SIGXCPU:
        return "timeout"
    if code == OUT_OF_MEMORY or _killed_for_memory(code, child):
        return "memory"
    return "ok" if code == 0 else "error"


def _killed_for_memory(code: int, child: Child) -> bool:
    """Whether a kill looks like the kernel's own: the program held much memory.

    A child's peak starts at that of the process that started it (Linux keeps it across exec), so
    only what lies above our own is evidence.
    """
    ours_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return code == -signal.SIGKILL and child.max_rss_mb > max(
        child.limits.memory_mb / 2, 1.01 * ours_mb
    )
