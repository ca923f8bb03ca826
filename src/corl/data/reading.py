"""From a completion to its answer, by the row's own answer kind.

One run can mix kinds: each row says how its completions are read. Code rows
run in the sandbox; a user's own kind is a class named by dotted path with
`read(text, row) -> Answer | None` and `canonical(raw, row) -> Answer | None`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from corl.answers import KINDS, Answer, behaviour, canonical, read_answer
from corl.data.prompts import PromptRow
from corl.errors import RecipeError

if TYPE_CHECKING:
    from corl.evaluation.sandbox import Level


class AnswerKind(Protocol):
    """A user's own way to read answers."""

    def read(self, text: str, row: PromptRow) -> Answer | None:
        """The answer a completion states, or None."""
        ...

    def canonical(self, raw: str, row: PromptRow) -> Answer | None:
        """The answer a bare label stands for, or None."""
        ...


def read_completion(
    text: str,
    row: PromptRow,
    *,
    truncated: bool = False,
    lenient: bool = False,
    isolation: Level = "landlock",
) -> Answer | None:
    """The answer of one completion; None abstains.

    isolation: the weakest that programs may run under. Raises SandboxError where this machine has
    no such one.
    """
    if row.kind not in KINDS:
        return None if truncated else own_kind(row.kind).read(text, row)
    answer = read_answer(text, row.kind, choices=row.choices, lenient=lenient, truncated=truncated)
    return _observed(answer, row, isolation)


def read_label(row: PromptRow, *, isolation: Level = "landlock") -> Answer | None:
    """The row's label as an answer; labels are bare and never extracted again."""
    if row.label is None:
        return None
    if row.kind not in KINDS:
        return own_kind(row.kind).canonical(row.label, row)
    return _observed(canonical(row.label, row.kind, choices=row.choices), row, isolation)


def _observed(answer: Answer | None, row: PromptRow, isolation: Level) -> Answer | None:
    """A program with example calls is what it returns on them; any other answer is itself."""
    if answer is None or row.kind != "code" or not row.calls:
        return answer
    from corl.evaluation.sandbox import run_program

    return behaviour(answer.text, row.calls, partial(run_program, minimum=isolation))


def check_kinds(rows: Sequence[PromptRow], *, isolation: Level = "landlock") -> None:
    """Raise RecipeError for an answer kind that is neither built in nor importable.

    Raises SandboxError where programs would run under less isolation than asked for.
    """
    for row in rows:
        if row.kind not in KINDS:
            own_kind(row.kind)
    if any(row.kind == "code" and row.calls for row in rows):
        from corl.evaluation.sandbox.levels import choose_level

        choose_level(None, isolation)


@cache
def own_kind(path: str) -> AnswerKind:
    """The user's answer kind at a dotted path. Raises RecipeError where there is none."""
    module_name, _, class_name = path.rpartition(".")
    if not module_name:
        raise RecipeError(f"answer kind {path!r} is not known; known: {', '.join(KINDS)}")
    try:
        kind: Any = getattr(importlib.import_module(module_name), class_name)()
    except (ImportError, AttributeError) as error:
        raise RecipeError(f"answer kind {path!r} cannot be imported: {error}") from None
    if not (hasattr(kind, "read") and hasattr(kind, "canonical")):
        raise RecipeError(f"answer kind {path!r} has no `read` and `canonical`")
    return kind
