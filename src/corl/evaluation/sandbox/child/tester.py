"""The tests' side of a check: run them against a candidate in another process.

The tests see the candidate as a function that sends its arguments away and gets
plain values back. Nothing of the candidate runs here, so nothing here can be
patched, walked or ended by it; a candidate that dies or breaks the protocol
fails the check even where a test would swallow the exception.
"""

import sys
from typing import Any

from corl.evaluation.sandbox.child.wire import WireError, receive, send

# What a test may expect by `except`. No StopIteration or AssertionError: they bend
# the tests' own control flow.
_RAISABLE: tuple[type[Exception], ...] = (
    ValueError, TypeError, KeyError, IndexError, ZeroDivisionError, OverflowError,
    ArithmeticError, LookupError, AttributeError, NameError, NotImplementedError,
    RuntimeError, RecursionError, UnicodeError, OSError,
)  # fmt: skip


class CandidateError(Exception):
    """The candidate raised something that has no plain counterpart here."""


class CandidateGone(BaseException):
    """The candidate exited, died or broke the protocol; tests cannot catch this by accident."""


class Candidate:
    """The functions of one candidate process."""

    def __init__(self, calls: int, replies: int) -> None:
        self.calls, self.replies = calls, replies
        self.gone = ""

    def function(self, name: str) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            return self.call(name, arguments, keywords)

        call.__name__ = name
        return call

    def call(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        kind, value = self.exchange((name, arguments, keywords))
        if kind == "value":
            return value
        if kind != "raised" or not _is_error(value):
            self.leave(f"the candidate ended in a call: {value}"[:500])
        known = {error.__name__: error for error in _RAISABLE}
        error = known.get(value[0])
        raise error(value[1]) if error else CandidateError(": ".join(value))

    def exchange(self, message: Any) -> tuple[Any, Any]:
        """Send one message (None: none) and return the two fields of the reply."""
        if self.gone:
            self.leave(self.gone)
        try:
            if message is not None:
                send(self.calls, message)
            reply = receive(self.replies)
        except (OSError, EOFError, WireError) as error:
            self.leave(f"the candidate process ended or broke the protocol ({error})")
        if type(reply) is not tuple or len(reply) != 2:
            self.leave("the candidate process broke the protocol")
        return reply[0], reply[1]

    def leave(self, reason: str) -> Any:
        self.gone = reason
        raise CandidateGone(reason)


def _is_error(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and all(type(part) is str for part in value)


def main(payload: dict[str, Any]) -> None:
    candidate = Candidate(payload["calls"], payload["replies"])
    reason = "passed"
    try:
        kind, text = candidate.exchange(None)
        if kind != "loaded":
            candidate.leave(f"the candidate did not load: {text}"[:500])
        _run_tests(payload, candidate)
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"[:500]
    if candidate.gone:
        reason = candidate.gone
    send(payload["reply"], (reason == "passed" and not candidate.gone, reason))


def _run_tests(payload: dict[str, Any], candidate: Candidate) -> None:
    module = type(sys)("tests")
    sys.modules["tests"] = module
    space = module.__dict__
    if "random" in payload["tests"]:
        import random

        random.seed(0)  # tests that draw their inputs draw the same ones every time
    exec(compile(payload["helpers"], "helpers.py", "exec"), space)
    space.update({name: candidate.function(name) for name in payload["names"]})
    exec(compile(payload["tests"], "tests.py", "exec"), space)
