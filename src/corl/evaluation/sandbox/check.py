"""Judge generated code by tests that it cannot reach.

Two sandboxed processes: one holds the candidate and answers calls, the other
holds the tests and sees the candidate only as a function that returns plain
values. The verdict is the tester's, read from a pipe that the candidate does not
have: exit codes, output, files and patched built-ins decide nothing.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from corl.evaluation.sandbox.assemble import assemble, compiles, stub
from corl.evaluation.sandbox.child.wire import WireError, decode, encode
from corl.evaluation.sandbox.launcher import start
from corl.evaluation.sandbox.levels import choose_level
from corl.evaluation.sandbox.program import GATE, status_of
from corl.evaluation.sandbox.records import Level, Limits, Verdict
from corl.evaluation.sandbox.watcher import Child, end, watch


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call gave: a plain value, an error's text, or nothing ("none")."""

    kind: Literal["value", "raised", "none"]
    value: Any = None


def check_humaneval(
    prompt: str,
    completion: str,
    test: str,
    entry_point: str,
    *,
    cpu_s: float = 5.0,
    wall_s: float = 20.0,
    memory_mb: int = 512,
    minimum: Level = "landlock",
    level: Level | None = None,
) -> Verdict:
    """Judge one completion of a HumanEval problem.

    completion: a body, a whole function, or a chat answer with a fenced block.
    cpu_s: CPU seconds for the candidate, all calls together.
    Raises `SandboxError` when the sandbox cannot be set up; never for the candidate.
    """
    return check_tests(
        assemble(prompt, completion, entry_point),
        f"{test}\n\ncheck({entry_point})\n",
        names=[entry_point],
        helpers=stub(prompt),
        limits=Limits(cpu_s=cpu_s, wall_s=wall_s, memory_mb=memory_mb),
        minimum=minimum,
        level=level,
    )


def check_tests(
    source: str,
    tests: str,
    *,
    names: Sequence[str],
    helpers: str = "",
    limits: Limits | None = None,
    minimum: Level = "landlock",
    level: Level | None = None,
) -> Verdict:
    """Judge a candidate's source by the source of its tests.

    names: functions of the candidate that the tests call.
    helpers: trusted source that the tests need, run beside them.
    A wall time-out is tried once more, alone.
    """
    chosen = choose_level(level, minimum)
    limits = limits or Limits(cpu_s=5.0, wall_s=20.0)
    if not compiles(source):
        return Verdict(False, "the candidate is not valid Python")
    sources = {"source": source, "tests": tests, "helpers": helpers, "names": list(names)}
    verdict, slept = _check(sources, limits, chosen, alone=False)
    if slept:
        verdict, _ = _check(sources, limits, chosen, alone=True)
    return verdict


def _check(
    sources: dict[str, Any], limits: Limits, level: Level, *, alone: bool
) -> tuple[Verdict, bool]:
    """Return the verdict, and whether wall time alone ended the check."""
    with GATE.enter(alone=alone), _pair(sources, limits, level) as (tester, candidate):
        watch([tester, candidate], wall_s=limits.wall_s)
    return _verdict(tester, candidate), tester.stopped == "wall"


@contextlib.contextmanager
def _pair(sources: dict[str, Any], limits: Limits, level: Level) -> Iterator[tuple[Child, Child]]:
    """Start both processes with a pipe each way, and close our ends of the pipes."""
    calls_read, calls_write = os.pipe()
    replies_read, replies_write = os.pipe()
    given = {"names": sources["names"], "source": sources["source"]}
    tests = {name: sources[name] for name in ("names", "tests", "helpers")}
    try:
        candidate = start(
            ("wire", "serve"),
            {**given, "calls": calls_read, "replies": replies_write},
            level=level, limits=limits, descriptors=(calls_read, replies_write),
        )  # fmt: skip
        try:
            tester = start(
                ("wire", "tester"),
                {**tests, "calls": calls_write, "replies": replies_read},
                level=level, limits=limits, descriptors=(calls_write, replies_read), reply=True,
            )  # fmt: skip
        except BaseException:
            end([candidate])
            raise
    finally:
        for descriptor in (calls_read, calls_write, replies_read, replies_write):
            os.close(descriptor)
    yield tester, candidate


def _verdict(tester: Child, candidate: Child) -> Verdict:
    status = status_of(candidate)
    if status in ("timeout", "output_limit"):
        return Verdict(False, f"{status}: the candidate broke a limit")
    if tester.stopped or status_of(tester) != "ok":
        said = bytes(tester.stderr).decode(errors="replace").strip()[-200:]
        return Verdict(False, f"{status_of(tester)}: the tests did not finish {said}".strip())
    message = _frames(tester.reply)
    if len(message) != 1 or type(message[0]) is not tuple or len(message[0]) != 2:
        return Verdict(False, "the tests ended without a verdict")
    passed, reason = message[0]
    if passed is not True and status == "memory":
        reason = f"memory: {reason}"
    return Verdict(passed is True, str(reason))


def run_calls(
    source: str,
    calls: Sequence[tuple[str, tuple[Any, ...]]],
    *,
    limits: Limits | None = None,
    minimum: Level = "landlock",
    level: Level | None = None,
) -> list[Outcome]:
    """Call functions of a program, in order, in one process; one outcome a call.

    calls: pairs of a name ("f", or "Solution.f" for a method) and plain arguments.
    The outcomes are the program's own words: compare them, trust nothing else. A
    call that was not reached before a limit or an exit is Outcome("none").
    """
    chosen = choose_level(level, minimum)
    limits = limits or Limits()
    payload = {"source": source, "calls": encode(list(calls))}
    with GATE.enter(alone=False):
        child = start(("wire", "batch"), payload, level=chosen, limits=limits, reply=True)
        watch([child], wall_s=limits.wall_s)
    outcomes = [_outcome(frame) for frame in _frames(child.reply)[: len(calls)]]
    return outcomes + [Outcome("none")] * (len(calls) - len(outcomes))


def _outcome(frame: Any) -> Outcome:
    if type(frame) is tuple and len(frame) == 2 and frame[0] in ("value", "raised"):
        return Outcome(*frame)
    return Outcome("none")


def _frames(data: bytearray) -> list[Any]:
    """Split framed values; stop at the first that is malformed."""
    found, at = [], 0
    while at + 4 <= len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if end > len(data):
            break
        try:
            found.append(decode(bytes(data[at + 4 : end])))
        except WireError:
            break
        at = end
    return found
