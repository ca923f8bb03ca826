"""Read completions and labels into answers, one kind of task at a time.

A completion is searched for its answer; a label is bare and never searched, for
a second search would read the "2" out of a fraction. What reading gives can be
read again with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from corl.answers.answer import Answer, bounded, digest
from corl.answers.bare import unwrapped
from corl.answers.choices import read_letter
from corl.answers.code import normal_source, read_code
from corl.answers.extract import extract
from corl.answers.maths import maths_key
from corl.answers.options import bare_letter, options_of
from corl.answers.text import says_nothing, text_body
from corl.errors import RecipeError

KINDS = ("math", "choice", "code", "text")
"""The kinds of answer that can be read."""

MAX_REMEMBERED = 200
"""Longest extracted text, in characters, whose answer is remembered."""


def read_answer(
    text: str,
    kind: str = "math",
    *,
    choices: Sequence[str] | None = None,
    lenient: bool = False,
    truncated: bool = False,
) -> Answer | None:
    """The answer that a completion states; None where it abstains.

    choices: the option texts in letter order, for kind "choice". lenient: fall back
    to the last number (or, for choices, the last letter that stands alone).
    truncated: the completion hit its length cap. No string raises; an unknown kind
    or more options than letters raise RecipeError (a ValueError).
    """
    _check_kind(kind)
    if kind == "choice":
        letter = read_letter(text, choices, lenient=lenient, truncated=truncated)
        return None if letter is None else Answer.of(letter, "choice", letter)
    if kind == "code":
        program = read_code(text, truncated=truncated)
        # A block that would not be read again is no program, whatever its fence says.
        return _code_answer(program if program and read_code(program) == program else None)
    raw = extract(text, lenient=lenient, truncated=truncated, prose=kind == "text")
    if raw is None:
        return None
    return _stated(raw, kind) if len(raw) <= MAX_REMEMBERED else _stated.__wrapped__(raw, kind)


def canonical(
    raw: str, kind: str = "math", *, choices: Sequence[str] | None = None
) -> Answer | None:
    """The answer that a bare answer or label stands for; None where it is no answer.

    Nothing is searched for: `raw` is the answer, at most inside one box, one pair
    of answer tags or dollar signs. Raises as `read_answer` does.
    """
    _check_kind(kind)
    if kind == "choice":
        letter = bare_letter(raw, options_of(None if choices is None else tuple(choices)))
        return None if letter is None else Answer.of(letter, "choice", letter)
    if kind == "code":
        return _code_answer(raw if raw.strip() else None)
    key = math_answer if kind == "math" else text_answer
    return key(unwrapped(raw))


def math_answer(raw: str) -> Answer | None:
    """The answer of a bare mathematical text."""
    text = raw.strip()
    if says_nothing(text):
        return None
    key = maths_key(text)
    if key is None:
        return None
    kind, _, body = key.partition(":")
    return Answer.of(text, kind, body)


def text_answer(raw: str) -> Answer | None:
    """The answer of a bare text in words."""
    body = None if says_nothing(raw) else text_body(raw)
    if body is None:
        return None
    return Answer.of(raw.strip(), "text", bounded(body))


def _code_answer(program: str | None) -> Answer | None:
    """A program keyed by its source; `behaviour` gives the key that votes should use."""
    if program is None:
        return None
    return Answer.of(program, "code", digest(normal_source(program)))


@lru_cache(maxsize=8192)
def _stated(raw: str, kind: str) -> Answer | None:
    """The answer of extracted text, shown by a text that reads as itself.

    Remembered, for the completions of a group repeat each other's answers. None
    where it is no answer, or where no marking makes it read as itself.
    """
    key = math_answer if kind == "math" else text_answer
    answer, prose = key(raw), kind == "text"
    if answer is None:
        return None
    for shown in (answer.text, f"\\boxed{{{answer.text}}}", f"<answer>{answer.text}</answer>"):
        again = extract(shown, prose=prose)
        if again is not None and (again == answer.text or key(again) == answer):
            return Answer(text=shown, key=answer.key)
    return None


def _check_kind(kind: str) -> None:
    """Raise RecipeError, naming the kinds, for a kind that is not known."""
    if kind not in KINDS:
        raise RecipeError(f"answer kind {kind!r} is not known; use one of: {', '.join(KINDS)}")
