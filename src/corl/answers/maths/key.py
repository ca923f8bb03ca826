"""maths_key: the key of a bare maths answer, as "<type>:<body>".

Most answers are a whole number, a decimal or a simple fraction: those take one regular
expression. The others are cleaned, recognised as words, or parsed; what cannot be parsed
or evaluated within the budgets is keyed by its normalised text, never partly read.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from corl.answers.maths.brackets import AnswerParser
from corl.answers.maths.budgets import MAX_CHARS, MAX_CLEANED_CHARS, Unreadable
from corl.answers.maths.clauses import listing_key
from corl.answers.maths.lexer import lexed
from corl.answers.maths.normalise import (
    cleaned,
    folded,
    folded_long,
    unset,
)
from corl.answers.maths.numbers import decimal_literal, digest, plain, written
from corl.answers.maths.scalar import Reading
from corl.answers.maths.terms import based_body
from corl.answers.maths.words import word_key

_LONGEST_REMEMBERED = 256
_LONGEST_KEY = 1000

_SIMPLE = re.compile(
    r"""(-?)(?:
        ([0-9]{1,15}|[1-9][0-9]{0,2}(?:,[0-9]{3}){1,4})(?:\.([0-9]{1,12}))?
      | \\[dt]?frac\{(-?)([0-9]{1,15})\}\{([0-9]{1,15})\}
    )""",
    re.VERBOSE,
)
_CLOCK = re.compile(
    r"([0-9]{1,2})(?::([0-5][0-9]))?(?::([0-5][0-9]))?(?:([ap])\.?m\.?)?", re.IGNORECASE
)
_BASED = re.compile(
    r"(-?)([0-9A-Z]*[0-9][0-9A-Z]*(?:\.[0-9A-Z]+)?)_(?:([0-9]{1,2})|\{([0-9]{1,2})\})"
)
_INVISIBLE = re.compile(r"\\[,;:!> ]|[\s~]")


def maths_key(raw: str) -> str | None:
    """The key of a bare answer; None if the text is empty after cleaning, or "None".

    Never raises; at most a few milliseconds for any text of any length.
    """
    match = _SIMPLE.fullmatch(raw)
    if match is not None:
        key = _simple_key(match)
        if key is not None:
            return key
    if len(raw) <= _LONGEST_REMEMBERED:
        return _remembered(raw)
    text = raw.strip()
    return folded_long(text) if len(text) > MAX_CLEANED_CHARS else _read(text)


def _simple_key(match: re.Match[str]) -> str | None:
    sign, whole, places, inner_sign, above, below = match.groups()
    if whole is not None:
        digits = whole.replace(",", "")
        if places is None:
            value: int | Fraction = int(digits)
        else:
            value = decimal_literal(digits + places, places=len(places))
    else:
        denominator = int(below)
        if not denominator:
            return None
        value = plain(Fraction(int(above), denominator))
        if inner_sign:
            value = -value
    return f"number:{written(-value if sign else value)}"


def _read(raw: str) -> str | None:
    text = cleaned(raw)
    inner = unset(text).strip() if "\\" in text else text
    if not inner or inner == "None":
        return None
    if len(text) > MAX_CHARS:
        return folded(text)
    match = _SIMPLE.fullmatch(text)
    key = _simple_key(match) if match is not None else None
    return _shortened(key or word_key(text) or _marked_key(inner) or _parsed_key(text))


_remembered = lru_cache(maxsize=16384)(_read)


def _shortened(key: str) -> str:
    """A long list or matrix by its type and digest: keys cross between agents."""
    return key if len(key) <= _LONGEST_KEY else f"{key.partition(':')[0]}:#{digest(key)}"


def _marked_key(inner: str) -> str | None:
    """Times of day and literals whose base has letters for digits: shapes, not expressions."""
    if ":" in inner or inner[-1:] in "mM.":
        compact = _INVISIBLE.sub("", inner)
        match = _CLOCK.fullmatch(compact)
        if match is not None and (match[2] or match[4]):
            hour, minute, second, half = match.groups()
            time = f"{int(hour)}:{minute or '00'}{':' + second if second else ''}"
            return f"clock:{time}{half.lower() + 'm' if half else ''}"
    if "_" in inner:
        match = _BASED.fullmatch(_INVISIBLE.sub("", inner))
        if match is not None and not match[2].replace(".", "").isdigit():
            return f"based:{match[1]}{based_body(match[2], match[3] or match[4])}"
    return None


def _parsed_key(text: str) -> str:
    try:
        parser = AnswerParser(lexed(text))
        listing = parser.answer()
        return listing_key(listing, Reading(has_signs=parser.num_signs > 0))
    except (Unreadable, ArithmeticError, RecursionError):
        return folded(text)
