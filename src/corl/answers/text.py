"""Keys of answers in words: the same words, whatever their case, spacing or punctuation.

Numbers inside a text keep their sign, decimals and separators, so that "-3.5"
and "35" stay two answers.
"""

from __future__ import annotations

import re
import unicodedata

from corl.answers.answer import NO_ANSWER

MAX_TEXT = 10_000
"""Longest text, in characters, whose punctuation is normalised; beyond it only case and spaces."""

_SET_WORDS = re.compile(r"\\(?:text|textbf|textit|textrm|mbox|mathrm|mathbf)\s?\{([^{}]*)\}")
_JOINED = re.compile(r"(?<=[^\W\d_])(?:['’]|\.(?=[^\W\d_]|\s|$))")
_KEPT = re.compile(r"(?<=\d)[.,:/](?=\d)|(?<![\w)])[-−](?=\.?\d)")
_MARKUP = frozenset("`^~|<>$")


def text_body(raw: str) -> str | None:
    """The words of `raw` in lower case, one space apart; None where it has no word or symbol."""
    if len(raw) > MAX_TEXT:
        return " ".join(raw.casefold().split()) or None
    plain = _SET_WORDS.sub(r" \1 ", raw)
    plain = _JOINED.sub("", unicodedata.normalize("NFKC", plain).casefold())
    kept = {sign.start() for sign in _KEPT.finditer(plain)}
    chars = [char if _stays(char) or at in kept else " " for at, char in enumerate(plain)]
    body = " ".join("".join(chars).replace("−", "-").split())
    return body or None


def says_nothing(raw: str) -> bool:
    """Whether a bare text is empty or only says that there is no answer, such as "None"."""
    if not raw or raw.isspace():
        return True
    if len(raw) > 40:
        return False
    # Its own rule: without the stroke, "n a" is a product and "Na" is sodium.
    return text_body(raw) in NO_ANSWER or raw.strip(" \t\n.*$").casefold() == "n/a"


def _stays(char: str) -> bool:
    """Letters, marks, digits and symbols stay; punctuation, markup and spaces do not."""
    if char.isalnum() or char in "%#":
        return True
    return char not in _MARKUP and unicodedata.category(char)[0] in "MS"
