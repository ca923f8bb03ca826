"""The candidate's side of a check: load its source, answer calls with plain values.

This process is the candidate's own: it may lie about every value, and can say
nothing but values. Whether they are right is decided elsewhere.
"""

import sys
from typing import Any

from corl.evaluation.sandbox.child.wire import WireError, receive, send

LOADED, VALUE, RAISED, ENDED = "loaded", "value", "raised", "ended"
"""First field of every message from here; a second holds the value or the error."""


def main(payload: dict[str, Any]) -> None:
    calls, replies = payload["calls"], payload["replies"]
    module = type(sys)("candidate")
    sys.modules["candidate"] = module
    try:
        exec(compile(payload["source"], "candidate.py", "exec"), module.__dict__)
        missing = [name for name in payload["names"] if name not in module.__dict__]
        if missing:
            raise NameError(f"no function named {missing[0]!r}")
        send(replies, (LOADED, ""))
    except BaseException as error:
        send(replies, (ENDED, _describe(error)))
        raise
    while True:
        try:
            name, arguments, keywords = receive(calls)
        except EOFError:
            return
        _answer(replies, module.__dict__.get(name), arguments, keywords)


def _answer(replies: int, function: Any, arguments: Any, keywords: Any) -> None:
    try:
        send(replies, (VALUE, function(*arguments, **keywords)))
    except WireError as error:
        send(replies, (RAISED, ["WireError", str(error)]))
    except MemoryError as error:
        send(replies, (ENDED, _describe(error)))
    except Exception as error:
        send(replies, (RAISED, [type(error).__name__, str(error)[:500]]))
    except BaseException as error:
        send(replies, (ENDED, _describe(error)))
        raise


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]
