"""Options of a choice: their texts in letter order, and the letter of the right one."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Sequence
from typing import Any

from corl.answers import canonical
from corl.answers.options import ALPHABET

_LETTERED = re.compile(r"(?:^|[;\n]|(?<=\s))\s*\(?([A-Z])[.:)]\s*", re.MULTILINE)


_LONGEST_LITERAL = 20_000


def order_by_id(identity: str, count: int) -> list[int]:
    """Places 0 to count - 1 in an order that only the item's id decides.

    Data sets that name the right option apart put it first: every letter must become as likely.
    The order is by SHA-256 of id and place, so no machine, Python version or rerun changes it.
    """
    return sorted(
        range(count), key=lambda place: hashlib.sha256(f"{identity}\0{place}".encode()).digest()
    )


def option_texts(value: Any, *, marker: str = "") -> tuple[str, ...]:
    """Option texts of a list, or of one text such as "A. 3; B. 4"; () where there are none.

    marker: in a text, options stand behind its last occurrence, and there are none without it.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        _, found, rest = value.rpartition(marker) if marker else ("", "all", value)
        return _from_text(rest) if found else ()
    if isinstance(value, dict):
        return tuple(str(value[key]) for key in sorted(value))
    return tuple(_without_label(str(text), place) for place, text in enumerate(value))


def _from_text(text: str) -> tuple[str, ...]:
    if (
        text.lstrip().startswith("[") and len(text) <= _LONGEST_LITERAL
    ):  # a list that was written as a text
        try:
            return option_texts(ast.literal_eval(text.strip()))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
    starts: list[re.Match[str]] = []
    for match in _LETTERED.finditer(text):
        if match[1] == ALPHABET[len(starts)]:
            starts.append(match)
            if len(starts) == len(ALPHABET):
                break
    if len(starts) < 2:
        return ()
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return tuple(
        text[match.end() : end].strip().rstrip(";").strip()
        for match, end in zip(starts, ends, strict=True)
    )


def _without_label(text: str, place: int) -> str:
    """ "B. 12" without its own letter."""
    label = re.match(r"\s*\(?([A-Z])[.:)]\s+", text)
    return text[label.end() :] if label and ALPHABET.find(label[1]) == place else text


def right_letter(gold: Any, choices: Sequence[str], written_as: str) -> str | None:
    """The letter of the gold; None where it names none of the options."""
    letters = ALPHABET[: len(choices)]
    if written_as in ("auto", "index") and isinstance(gold, int) and not isinstance(gold, bool):
        return letters[gold] if 0 <= gold < len(letters) else None
    text = str(gold).strip()
    if written_as == "index":
        return letters[int(text)] if text.isdigit() and int(text) < len(letters) else None
    if written_as in ("auto", "letter"):
        bare = text.strip("().").upper()
        if bare in tuple(letters):
            return bare
        if written_as == "letter":
            return None
    exact = [letter for letter, choice in zip(letters, choices, strict=True) if choice == text]
    if len(exact) == 1:
        return exact[0]
    found = canonical(text, "choice", choices=choices)
    return None if found is None else found.text


def lettered(choices: Sequence[str]) -> str:
    """The options as a model reads them, one a line."""
    return "\n".join(f"{letter}. {text}" for letter, text in zip(ALPHABET, choices, strict=False))
