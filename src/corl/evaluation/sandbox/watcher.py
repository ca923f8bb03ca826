"""Watch sandboxed processes against their limits, end them, and leave nothing behind.

CPU time is read from the kernel's clock of each process, not guessed from wall
time, so that a busy machine does not fail a slow program. Ending waits until
every process of the run is gone and reaped.
"""

import contextlib
import errno
import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from corl.evaluation.sandbox.records import Level, Limits, SandboxError
from corl.evaluation.sandbox.workspace import Workspace, exceeds, removed_bytes

Stop = Literal["", "cpu", "wall", "output", "disk"]

_LOOK_EVERY_S = 0.02
_READY_WITHIN_S = 60.0
_READY = b"ready"


@dataclass(slots=True)
class Child:
    """One sandboxed process, its captured output and, once ended, how it ended."""

    process: subprocess.Popen[bytes]
    limits: Limits
    level: Level
    workspace: Workspace
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    control: bytearray = field(default_factory=bytearray)
    reply: bytearray = field(default_factory=bytearray)
    """What the process wrote to its reply pipe, where it has one."""
    control_file: BinaryIO | None = None
    reply_file: BinaryIO | None = None
    stopped: Stop = ""
    cpu_s: float = 0.0
    max_rss_mb: float = 0.0
    code: int | None = None
    """Exit code, or minus the signal; None while it runs."""


def _await_ready(child: Child) -> None:
    """Wait until the child says that its limits are set. Raises what it said instead."""
    if child.control_file is None:
        return
    deadline = time.monotonic() + _READY_WITHIN_S
    with child.control_file as file:
        while bytes(child.control) != _READY:
            if not _readable(file.fileno(), deadline - time.monotonic()):
                break
            part = os.read(file.fileno(), 4096)
            child.control += part
            if not part or len(child.control) > 4096:
                break
    child.control_file = None
    if bytes(child.control) != _READY:
        end([child])
        said = (bytes(child.control) or bytes(child.stderr)).decode(errors="replace").strip()
        raise SandboxError(
            f"the sandbox could not be locked down at level {child.level!r}: "
            f"{said or f'its process ended with {child.code}'}"
        )


def _readable(descriptor: int, timeout_s: float) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(max(0.0, timeout_s) * 1000))


def watch(children: list[Child], *, wall_s: float) -> None:
    """Pump output until the first child ends or any child breaks a limit; then end all.

    Wall time counts from the moment when every child is locked down. Raises
    `SandboxError` when one could not be; then no candidate has run.
    """
    try:
        for child in children:
            _await_ready(child)
        deadline = time.monotonic() + wall_s
        with selectors.DefaultSelector() as selector:
            ended = os.pidfd_open(children[0].process.pid)
            selector.register(ended, selectors.EVENT_READ, None)
            for child in children:
                for stream, buffer in _streams(child):
                    os.set_blocking(stream, False)
                    selector.register(stream, selectors.EVENT_READ, (child, buffer))
            try:
                _loop(selector, children, deadline)
            finally:
                os.close(ended)
    finally:
        end(children)


def _loop(selector: selectors.BaseSelector, children: list[Child], deadline: float) -> None:
    look_at = 0.0
    while True:
        for key, _ in selector.select(_LOOK_EVERY_S):
            if key.data is None:
                return
            child, buffer = key.data
            if not _pump(key.fd, buffer, child):
                selector.unregister(key.fd)
        now = time.monotonic()
        if now >= look_at:
            look_at = now + _LOOK_EVERY_S
            for child in children:
                _look(child)
        if now >= deadline:
            children[0].stopped = children[0].stopped or "wall"
        if any(child.stopped for child in children):
            return


def _streams(child: Child) -> Iterator[tuple[int, bytearray]]:
    process = child.process
    files = ((process.stdout, child.stdout), (process.stderr, child.stderr))
    for file, buffer in (*files, (child.reply_file, child.reply)):
        if file is not None and not file.closed:
            yield file.fileno(), buffer


def _pump(descriptor: int, buffer: bytearray, child: Child) -> bool:
    """Move what a pipe holds into its buffer; False at its end."""
    try:
        part = os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return True
    buffer += part
    limit = child.limits.reply_kb if buffer is child.reply else child.limits.output_kb
    limit <<= 10
    if len(buffer) > limit:
        del buffer[limit:]
        child.stopped = child.stopped or "output"
    return bool(part)


def _look(child: Child) -> None:
    """Read the CPU clock and the directory's size, and mark a broken limit."""
    limits = child.limits
    pids = _pids(child)
    child.cpu_s = max(child.cpu_s, sum(_cpu_s(pid) for pid in pids))
    if child.cpu_s > limits.cpu_s:
        child.stopped = child.stopped or "cpu"
    elif exceeds(
        child.workspace.directory,
        num_bytes=limits.disk_mb << 20, num_files=limits.num_files, beside=removed_bytes(pids),
    ):  # fmt: skip
        child.stopped = child.stopped or "disk"


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process; the kernel keeps a clock for every pid."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _pids(child: Child) -> list[int]:
    """Return the process and, where it can have any, its descendants."""
    found = [child.process.pid]
    if child.level != "landlock":  # there the filter allows no second process
        for pid in found:
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
                found += [int(word) for word in text.split()]
    return found


def end(children: list[Child]) -> None:
    """Kill what still runs, wait until it is gone, reap it and remove its directory."""
    with contextlib.ExitStack() as stack:
        for child in children:
            if child.code is None:
                stack.callback(_clear, child)
                stack.callback(_kill, child)


def _clear(child: Child) -> None:
    for descriptor, buffer in _streams(child):
        _drain(descriptor, buffer, child)
    process = child.process
    for file in (process.stdout, process.stderr, child.control_file, child.reply_file):
        if file is not None:
            file.close()
    child.workspace.close()


def _drain(descriptor: int, buffer: bytearray, child: Child) -> None:
    """Take what a dead process left in its pipe."""
    os.set_blocking(descriptor, False)
    before = -1
    while len(buffer) != before:
        before = len(buffer)
        _pump(descriptor, buffer, child)


def _kill(child: Child) -> None:
    """End a child and everything in it, innermost first, so that each parent reaps its own."""
    pid = child.process.pid
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        pids = _pids(child)
        child.cpu_s = max(child.cpu_s, sum(_cpu_s(one) for one in pids))
        with contextlib.ExitStack() as stack:
            handles = [handle for one in pids[1:] if (handle := _open_pid(one, stack)) is not None]
            for handle in handles:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            outer = _open_pid(pid, stack)
            if not handles or outer is None or not _readable(outer, 2.0):
                os.kill(pid, signal.SIGKILL)  # Popen.kill would reap it
            for handle in handles:
                _readable(handle, 5.0)
    _, status, usage = os.wait4(pid, 0)
    child.code = child.process.returncode = os.waitstatus_to_exitcode(status)
    child.cpu_s = max(child.cpu_s, usage.ru_utime + usage.ru_stime)
    child.max_rss_mb = usage.ru_maxrss / 1024
    _end_strays(child)


def _open_pid(pid: int, stack: contextlib.ExitStack) -> int | None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    stack.callback(os.close, handle)
    return handle


def _end_strays(child: Child) -> None:
    """At the weakest level: kill what left the process tree, by group and by uid."""
    if child.level != "limits":
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process.pid, signal.SIGKILL)
    if child.workspace.uid is None:
        return
    for _ in range(20):
        strays = [int(path.name) for path in _processes() if _owner(path) == child.workspace.uid]
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not strays:
            return
        time.sleep(0.01)


def _processes() -> Iterator[Path]:
    return (path for path in Path("/proc").iterdir() if path.name.isdigit())


def _owner(path: Path) -> int | None:
    try:
        if ") Z" in (path / "stat").read_text():
            return None
        return path.stat().st_uid
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ESRCH):
            raise
        return None
