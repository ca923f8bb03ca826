"""Drawing code inside a problem. It may hold what the words do not say, so a rewrite keeps it."""

from __future__ import annotations

import re
from collections import Counter

_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)|\\begin\{asy\}.*?(?:\\end\{asy\}|\Z)", re.S)
_LAYOUT = re.compile(r"\\\\\[[^\]\n]{0,20}\]|\\[hv]space\*?\{[^}\n]{0,20}\}|\\kern[-\d.]+\w\w")
_NUMBER = re.compile(r"\d+(?:\.\d+)?|\.\d+")


def without_drawings(text: str) -> str:
    """The wording with drawing code and layout lengths blanked, every place kept."""
    for pattern in (_DRAWING, _LAYOUT):
        text = pattern.sub(lambda match: " " * len(match[0]), text)
    return text


def drawing_fault(original: str, rewritten: str) -> str | None:
    """What happened to the drawings. Names in them may change with those in the text."""
    before, after = _DRAWING.findall(original), _DRAWING.findall(rewritten)
    if len(before) != len(after):
        return f"{len(before)} drawings became {len(after)}"
    numbers = [Counter(_NUMBER.findall(" ".join(drawings))) for drawings in (before, after)]
    return "numbers in the drawing altered" if numbers[0] != numbers[1] else None
