"""The example calls that a programming problem states, without what they should return."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

_MAX_CALLS = 20
_MAX_LENGTH = 2_000
"""Characters of one call."""
_MAX_TRIES = 200


def example_calls(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Calls of the named functions in a text whose arguments are all literals, each once.

    text: a prompt with examples, or assertions that it shows. At most 20, in order.
    """
    found: dict[str, None] = {}
    for name in names:
        pattern = re.compile(rf"(?<![\w.]){re.escape(name)}\s*\(")
        for tried, match in enumerate(pattern.finditer(text)):
            if tried == _MAX_TRIES or len(found) == _MAX_CALLS:
                break
            call = _call_at(text, match.start(), match.end())
            if call is not None:
                found[call] = None
    return tuple(found)


def _call_at(text: str, start: int, opened: int) -> str | None:
    """The shortest text from `start` on that is a call with literal arguments."""
    for end in _closings(text, opened):
        candidate = text[start:end]
        try:
            tree = ast.parse(candidate, mode="eval").body
            if not isinstance(tree, ast.Call):
                return None
            for argument in (*tree.args, *(keyword.value for keyword in tree.keywords)):
                ast.literal_eval(argument)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            continue
        return ast.unparse(tree)
    return None


def _closings(text: str, opened: int) -> Iterator[int]:
    """Ends behind the first few closing parentheses, nearest first."""
    within = text[opened : opened + _MAX_LENGTH]
    closings = (opened + match.end() for match in re.finditer(r"\)", within))
    for _, end in zip(range(8), closings, strict=False):
        yield end
