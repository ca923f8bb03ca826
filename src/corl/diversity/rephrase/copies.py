"""Is a rewrite the original again, or a text of quite another length?"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from corl.diversity.rephrase.drawings import without_drawings

MAX_SIMILARITY = 0.97
"""Share of words in common, in order, from which a rewrite counts as a copy."""
_LENGTHS = (0.3, 3.5)
"""Shortest and longest rewrite, in lengths of the original."""
_GRACE = 160
"""Characters that a rewrite may be longer or shorter whatever the ratio: a short prompt may grow a
sentence."""
_MOST_WORDS = 4_000

_WORD = re.compile(r"\w+|[^\w\s]")


def copy_fault(original: str, rewritten: str) -> str | None:
    """The similarity, where the wording is the original's apart from case, blanks and stops."""
    before, after = (_words(without_drawings(text)) for text in (original, rewritten))
    if before == after:
        return "a copy of the original"
    if max(len(before), len(after)) > _MOST_WORDS:
        return None
    alike = SequenceMatcher(None, before, after, autojunk=False)
    if alike.real_quick_ratio() < MAX_SIMILARITY or alike.quick_ratio() < MAX_SIMILARITY:
        return None
    share = alike.ratio()
    return f"{share:.0%} the original's words" if share >= MAX_SIMILARITY else None


def length_fault(original: str, rewritten: str) -> str | None:
    """How the length differs, where it is out of proportion. Drawing code counts as nothing."""
    before, after = (
        len(" ".join(without_drawings(text).split())) for text in (original, rewritten)
    )
    shortest, longest = _LENGTHS
    if after < shortest * before - _GRACE / 4 or after > longest * before + _GRACE:
        return f"{after} characters for {before}"
    return None


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in ".,;:!?"]
