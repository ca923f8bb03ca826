"""Call a candidate's functions on given arguments and send every outcome back."""

import sys
from typing import Any

from corl.evaluation.sandbox.child.wire import WireError, decode, send

VALUE, RAISED = "value", "raised"


def main(payload: dict[str, Any]) -> None:
    module = type(sys)("candidate")
    sys.modules["candidate"] = module
    exec(compile(payload["source"], "candidate.py", "exec"), module.__dict__)
    for name, arguments in decode(payload["calls"]):
        try:
            send(payload["reply"], (VALUE, find(module.__dict__, name)(*arguments)))
        except WireError as error:
            send(payload["reply"], (RAISED, f"WireError: {error}"))
        except Exception as error:
            send(payload["reply"], (RAISED, f"{type(error).__name__}: {error}"[:500]))


def find(space: dict[str, Any], name: str) -> Any:
    """Return a function by name; "Solution.solve" is a method of a fresh instance."""
    head, _, method = name.partition(".")
    if head not in space:
        raise NameError(f"no function named {head!r}")
    return getattr(space[head](), method) if method else space[head]
