"""Answers that are words: Friday, no solution, CBAD."""

from __future__ import annotations

import re

from corl.answers.maths.lexer import split_name
from corl.answers.maths.normalise import LETTERS, bounded, unset
from corl.answers.maths.vocabulary import MATHS_NAMES, SHORT_WORDS

_MARKS = r"\s.,'\"()/&!?*;-"
_ONLY_LETTERS = re.compile(rf"[{_MARKS}]*[^\W\d_]+(?:[{_MARKS}]+[^\W\d_]+)*[{_MARKS}]*")
_CONNECTIVES = frozenset({"and", "or"})
# Words for what has a notation.
_NAMED_SETS = {
    "all real numbers": "tuple:(-infinity,infinity)",
    "all reals": "tuple:(-infinity,infinity)",
    "empty set": "set:{}",
    "the empty set": "set:{}",
}


def word_key(text: str) -> str | None:
    """The key of an answer in words, or None for symbols, products of them and formulas.

    Single letters and runs of up to three small letters are symbols unless they are
    listed words; runs of capitals (a permutation CBAD, an initial pair VW) are words.
    """
    inner = unset(text)
    if "\\" in inner or not _ONLY_LETTERS.fullmatch(inner):
        return None
    words = LETTERS.findall(inner)
    telling = [word for word in words if word.casefold() not in _CONNECTIVES]
    if any(word.casefold() in MATHS_NAMES or split_name(word) for word in telling):
        return None
    if not any(_is_word(word) for word in telling):
        return None
    body = " ".join(word.casefold() for word in words)
    return _NAMED_SETS.get(body, f"text:{bounded(body)}")


def _is_word(run: str) -> bool:
    if len(run) == 1:
        return not run.isascii()
    return len(run) > 3 or not run.islower() or run in SHORT_WORDS or not run.isascii()
