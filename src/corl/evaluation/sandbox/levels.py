"""Which isolation levels work on this machine, and the choice among them.

A level counts as working only after a program really ran under it: packages,
kernels and containers claim more than they keep. Each probe runs once a process.
"""

import functools
import sys
from dataclasses import dataclass

from corl.evaluation.sandbox.interpreter import bubblewrap, find_interpreter
from corl.evaluation.sandbox.launcher import start
from corl.evaluation.sandbox.records import LEVELS, Level, Limits, SandboxError
from corl.evaluation.sandbox.watcher import watch
from corl.evaluation.sandbox.workspace import drops_uid


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What `corl doctor` prints about the sandbox."""

    level: Level
    interpreter: str
    version: str
    own_uid: bool
    missing: dict[Level, str]
    """Levels that do not work here, with the reason."""

    def lines(self) -> list[str]:
        user = "a uid of its own per run" if self.own_uid else "the user who starts it"
        lines = [
            f"isolation: {self.level}",
            f"interpreter: {self.interpreter} (Python {self.version})",
            f"runs as: {user}",
        ]
        return lines + [f"no {level}: {reason}" for level, reason in self.missing.items()]


def isolation_level() -> Level:
    """Return the strongest level that works here: "bubblewrap", "landlock" or "limits".

    "landlock" is Landlock with the seccomp filter; "bubblewrap" adds namespaces
    to them; "limits" has neither, and does not contain hostile code.
    """
    for level in reversed(LEVELS):
        if not why_not(level):
            return level
    raise SandboxError(f"no sandboxed program ends as it should: {why_not('limits')}")


def describe() -> SandboxReport:
    """Return the level in force, the interpreter, and why stronger levels are missing."""
    found = find_interpreter()
    reasons = {level: why_not(level) for level in reversed(LEVELS)}
    missing = {level: reason for level, reason in reasons.items() if reason}
    return SandboxReport(isolation_level(), found.path, found.version, drops_uid(), missing)


def choose_level(level: Level | None, minimum: Level) -> Level:
    """Return `level`, or the strongest one; refuse what does not work or is too weak."""
    for name in (level, minimum):
        if name is not None and name not in LEVELS:
            raise SandboxError(f"no isolation level {name!r}; there are {', '.join(LEVELS)}.")
    chosen = level or isolation_level()
    if level is not None and why_not(level):
        raise SandboxError(f"isolation level {level!r} does not work here: {why_not(level)}")
    if LEVELS.index(chosen) < LEVELS.index(minimum):
        reasons = "; ".join(f"{name}: {why_not(name)}" for name in LEVELS[1:] if why_not(name))
        raise SandboxError(
            f"isolation {minimum!r} is required, but {chosen!r} is in force ({reasons}). Install "
            "bubblewrap, or use a kernel with Landlock; to run code you trust, pass "
            f"minimum={chosen!r}."
        )
    return chosen


@functools.cache
def why_not(level: Level) -> str:
    """Return "" when a program really runs at this level, else the reason why not."""
    if not sys.platform.startswith("linux"):
        return f"the sandbox needs Linux, and this is {sys.platform}"
    if level == "bubblewrap" and bubblewrap() is None:
        return "bwrap is not installed (Debian's package is bubblewrap)"
    limits = Limits(wall_s=30.0, cpu_s=10.0)
    try:
        child = start(("program",), {"source": "print(6 * 7)"}, level=level, limits=limits)
        watch([child], wall_s=limits.wall_s)
    except (SandboxError, OSError) as error:
        return str(error)
    if child.code == 0 and bytes(child.stdout) == b"42\n":
        return ""
    said = bytes(child.stderr).decode(errors="replace").strip()[-300:]
    return f"a probe ended with {child.code}: {said}"
