"""Numbers in the wording of a problem: digits, LaTeX, number words, and words that imply one.

Drawing code is left out; `drawings` looks after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from corl.diversity.rephrase.drawings import without_drawings
from corl.diversity.rephrase.number_words import (
    FACTORS,
    FRACTIONS,
    IMPLIED,
    ORDINALS,
    SCALES,
    TENS,
    UNITS,
)

Form = Literal["digits", "word", "ordinal", "factor", "implied"]

MAX_CHARACTERS = 20_000
"""Longer texts are no wording of one problem, and are not read."""
_MOST_DIGITS = 60

_TOKEN = re.compile(
    r"(?P<frac>\\[dt]?frac\s*(?P<top>\d)\s*(?P<bottom>\d)?)"
    r"|(?P<command>\\[A-Za-z]+)"
    r"|(?P<grouped>(?<![\d.])[1-9]\d{0,2}(?:(?:,|,\\!|\{,\}|\\,)\d{3})+(?!,?\d)"
    r"(?!\s*,\s*(?:\\[lc]?dots|\.\.\.))(?:\.\d+)?)"
    r"|(?P<space>\b\d[dD]\b)"
    r"|(?P<digits>\d+(?:\.\d+)?|(?<![\w.])\.\d+)(?P<suffix>(?:st|nd|rd|th)\b)?"
    r"|(?P<word>[A-Za-z]+)"
)
_DOTS = r"(?:\\[lc]?dots[cmbi]?(?![a-z])|\.\.\.|…)"
_LINK = r"\s*(?:[,+]|\\cdot(?![a-z])|\\times(?![a-z]))\s*(?:\\ )?"
_BEFORE_DOTS = re.compile(rf"(?<!\d)(?:\d{{1,12}}{_LINK}){{2,9}}(?={_DOTS})")
_BEHIND_DOTS = re.compile(rf"{_DOTS}(?:{_LINK}\d{{1,12}}){{1,9}}(?={_LINK}\d)")
"""The start of "1, 2, 3, ..., 49, 50", and its end but for the last number."""
_SEPARATORS = re.compile(r"[^\d.]")
_GLUE = re.compile(r"[\s-]{1,3}|\s(?:and|a|of a)\s")


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number and where it stands in the text."""

    value: Fraction
    form: Form
    start: int
    end: int
    shown: str
    """As written."""


def quantities(text: str) -> list[Quantity]:
    """The numbers of a text, in order. Signs are not read: an equation may be moved about."""
    text = without_drawings(text[:MAX_CHARACTERS])
    found: list[Quantity] = []
    words: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text):
        if token["word"]:
            if words and not _GLUE.fullmatch(text, words[-1].end(), token.start()):
                found += _named(words)
                words = []
            words.append(token)
            continue
        found += _named(words)
        words = []
        found += _written(token)
    return _runs_implied(text, [*found, *_named(words)])


def _runs_implied(text: str, found: list[Quantity]) -> list[Quantity]:
    """Let all numbers around an ellipsis be implied by the first and the last."""
    spans = [(run.start(), run.end(), 1) for run in _BEFORE_DOTS.finditer(text)]
    spans += [(run.start(), run.end(), 0) for run in _BEHIND_DOTS.finditer(text)]
    for start, end, first in spans:
        inside = [one for one in found if start <= one.start < end][first:]
        found = [replace(one, form="implied") if one in inside else one for one in found]
    return found


def _written(token: re.Match[str]) -> Iterator[Quantity]:
    if token["frac"]:
        for name in ("top", "bottom"):
            if token[name]:
                yield _quantity(Fraction(token[name]), "digits", token, name)
    elif token["grouped"]:
        yield _quantity(Fraction(_SEPARATORS.sub("", token["grouped"])), "digits", token)
    elif token["digits"]:
        form: Form = "ordinal" if token["suffix"] else "digits"
        yield _quantity(Fraction(token["digits"][:_MOST_DIGITS].rstrip(".")), form, token, "digits")


def _quantity(value: Fraction, form: Form, token: re.Match[str], name: str | int = 0) -> Quantity:
    return Quantity(value, form, token.start(name), token.end(name), token[name])


def _named(words: list[re.Match[str]]) -> Iterator[Quantity]:
    """Numbers in a run of words that nothing but blanks, hyphens and "and" part."""
    names = [word[0].lower() for word in words]
    place = 0
    while place < len(words):
        value, used = _cardinal(names, place)
        if used:
            end = place + used
            if end < len(names) and names[end] in FRACTIONS:
                value, end = value / FRACTIONS[names[end]], end + 1
            elif names[end : end + 3] == ["and", "a", "half"]:
                value, end = value + Fraction(1, 2), end + 3
            yield _span(value, "word", words[place:end])
            place = end
            continue
        yield from _alone(names, words, place)
        place += 1


def _alone(names: list[str], words: list[re.Match[str]], place: int) -> Iterator[Quantity]:
    name, before = names[place], names[place - 1] if place else ""
    word = words[place : place + 1]
    if name == "half" or (name in FRACTIONS and before in ("a", "an")):
        yield _span(Fraction(1, FRACTIONS[name]), "factor", word)
    elif name in FACTORS:
        yield _span(Fraction(FACTORS[name]), "factor", word)
    elif name in ORDINALS:
        yield _span(Fraction(ORDINALS[name]), "ordinal", word)
    else:
        for implied in IMPLIED.get(name, ()):
            yield _span(Fraction(implied), "implied", word)


def _span(value: Fraction, form: Form, words: list[re.Match[str]]) -> Quantity:
    shown = " ".join(word[0] for word in words)
    return Quantity(value, form, words[0].start(), words[-1].end(), shown)


def _cardinal(names: list[str], place: int) -> tuple[Fraction, int]:
    """The cardinal that starts at a word, and how many words it takes; 0 where none does."""
    total = current = 0
    end = place
    while end < len(names):
        name = names[end]
        if (
            name in UNITS
            and current % 10 == 0
            and current % 100 != 10
            and (not current or UNITS[name])
        ):
            if current % 100 and UNITS[name] > 9:
                break
            current += UNITS[name]
        elif name in TENS and current % 100 == 0:
            current += TENS[name]
        elif name in SCALES and (end > place or name == "dozen"):
            scale = SCALES[name]
            if scale in (12, 100):
                current = max(current, 1) * scale
            else:
                total, current = total + max(current, 1) * scale, 0
        elif name == "and" and end > place and names[end - 1] in SCALES and _continues(names, end):
            pass
        else:
            break
        end += 1
    return Fraction(total + current), end - place


def _continues(names: list[str], place: int) -> bool:
    return place + 1 < len(names) and (names[place + 1] in UNITS or names[place + 1] in TENS)
