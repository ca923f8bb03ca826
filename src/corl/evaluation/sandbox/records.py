"""What goes into the sandbox and what comes out: limits, results, verdicts.

`RunResult.status` describes how a program ended, and a program chooses its own
exit code: only a `Verdict` says whether code is right.
"""

from dataclasses import dataclass
from typing import Literal

from corl.errors import CorlError

Level = Literal["limits", "landlock", "bubblewrap"]
LEVELS: tuple[Level, ...] = ("limits", "landlock", "bubblewrap")
"""Isolation levels, weakest first. "landlock" always includes the seccomp filter."""

Status = Literal["ok", "error", "timeout", "memory", "output_limit"]


class SandboxError(CorlError, RuntimeError):
    """The sandbox cannot run here as asked; nothing of the candidate was executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds for one sandboxed process."""

    cpu_s: float = 2.0
    """CPU seconds, all threads together, the interpreter's start included."""
    wall_s: float = 10.0
    """Wall seconds; ends sleepers. Wall time alone is never counted as CPU time."""
    memory_mb: int = 512
    """Address space, MiB."""
    output_kb: int = 256
    """Captured bytes of stdout, and of stderr, KiB each."""
    reply_kb: int = 16 << 10
    """Bytes of values that a process may send back, KiB."""
    file_mb: int = 16
    """Size of any one file, MiB."""
    disk_mb: int = 32
    """Everything in the temporary directory together, MiB."""
    num_files: int = 256
    """Entries of the temporary directory, subdirectories included."""
    num_threads: int = 64
    """Processes and threads of the run's own uid (only when started as root)."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"the sandbox limit {name} is {value!r}; give a positive number.")


@dataclass(frozen=True, slots=True)
class RunResult:
    """How one program ended.

    status: ok (exit code 0), error, timeout (CPU or wall), memory, output_limit.
    stdout, stderr: UTF-8 with replacement characters, cut at the output limit.
    cpu_s: CPU seconds of the whole process, the interpreter's start included.
    """

    status: Status
    stdout: str
    stderr: str
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a candidate passed its tests, and in words why (or "passed")."""

    passed: bool
    reason: str
