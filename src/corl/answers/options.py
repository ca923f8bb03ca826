"""The options of one multiple-choice item, and bare answers to it.

"C", "(C)", "C. text", a boxed C and the text of option C are one answer. An
option's own text beats a reading as a letter ("D. H. Lawrence"), except for one
capital alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from corl.answers.maths import maths_key
from corl.answers.text import text_body
from corl.errors import RecipeError

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DEFAULT_LETTERS = ALPHABET[:10]
"""Letters that count where the item's own options are not known."""

MARKUP = 40
"""Characters by which a text may be longer than the longest option and still say the same."""

NOUNS = r"(?:option|choice|answer|letter|alternative|statement|number)"
"""Words before a letter that mark it as one."""

_SET_TEXT = re.compile(
    r"\\(?:text|textbf|textit|textrm|mbox|mathrm|mathbf|mathit|boxed|fbox)\s?\{([^{}]*)\}"
)
_GAP = re.compile(r"\\[ ,;:!()\[\]]|\\quad|\\qquad|~")
_ALONE = re.compile(
    rf"(?:{NOUNS}\s*:?\s+)?[(\[{{<$]*\s*([A-Za-z])\s*[)\]}}>$]*[.:,;!?]?", re.IGNORECASE
)
_INLINE_LABEL = re.compile(r"(?<!\w)[A-Z](?:[:：]|\))\s")
_LABELLED = re.compile(
    rf"(?:{NOUNS}\s+)?(?:[(\[]\s?([A-Za-z])\s?[)\]]|([A-Z])"
    r"(?:[)\]]|\s?[.:：](?=\s)|\s+[-–—](?=\s)|(?=\s+(?:because|since)\b)))"
)


class Options(NamedTuple):
    """The options of one item."""

    letters: str
    """The letters that may be answered, in order."""

    by_text: dict[str, str]
    """Letter of each normalised option text; texts that two options share are left out."""

    by_value: dict[str, str]
    """Letter of each option's mathematical key; keys that two options share are left out."""

    max_length: int
    """Longest text, in characters, that is compared with the options."""


@lru_cache(maxsize=1024)
def options_of(choices: tuple[str, ...] | None) -> Options:
    """The letters of an item's options and what each option says.

    None gives A to J without texts. Raises RecipeError for more options than letters.
    """
    if choices is None:
        return Options(DEFAULT_LETTERS, {}, {}, 0)
    if len(choices) > len(ALPHABET):
        raise RecipeError(
            f"an item has {len(choices)} options, but choices are lettered A to Z; "
            "give it 26 or fewer, or read it as kind 'text'"
        )
    letters = ALPHABET[: len(choices)]
    texts = [text_body(choice) for choice in choices]
    values = [maths_key(choice.strip()) for choice in choices]
    longest = max((len(choice) for choice in choices), default=0) + MARKUP
    return Options(letters, _only_once(texts, letters), _only_once(values, letters), longest)


def bare_letter(raw: str, options: Options) -> str | None:
    """The letter that a text without a sentence around it stands for, or None."""
    return exact_letter(raw, options) or label_letter(unmarked(raw), options)


def exact_letter(raw: str, options: Options) -> str | None:
    """The letter of a text that is a letter alone or exactly what one option says."""
    plain = unmarked(raw)
    if len(plain) == 1 and plain in options.letters:
        return plain
    return letter_by_text(raw, options) or alone_letter(plain, options)


def alone_letter(plain: str, options: Options) -> str | None:
    """The letter of "C", "(c)", "option C": a letter and nothing else."""
    alone = _ALONE.fullmatch(plain)
    return _known(alone[1], options) if alone else None


def label_letter(plain: str, options: Options) -> str | None:
    """The letter of "C. text", "(C) text", "C because": a letter that labels what follows."""
    label = _LABELLED.match(plain)
    return _known(label[1] or label[2], options) if label else None


def num_labels(plain: str) -> int:
    """How many letters label something in one line, as in "A: no. B: yes."."""
    return len(_INLINE_LABEL.findall(plain))


def is_own_option(plain: str, options: Options) -> bool:
    """Whether "C. text" carries the text of option C, or any short one where none is known."""
    label = _LABELLED.match(plain)
    if label is None:
        return False
    rest = plain[label.end() :].strip()
    if not options.by_text:
        return len(rest) <= 80
    return not rest or letter_by_text(rest, options) == (label[1] or label[2]).upper()


def letter_by_text(raw: str, options: Options) -> str | None:
    """The letter of the option that says the same, in words or as a mathematical value."""
    if len(raw) > options.max_length:
        return None
    letter = options.by_text.get(text_body(raw) or "")
    if letter is not None:
        return letter
    value = maths_key(raw.strip())
    return None if value is None else options.by_value.get(value)


def unmarked(raw: str) -> str:
    """The text without set-text commands, boxes, dollar signs, bold marks and quotes."""
    text = raw.strip()
    if "\\" in text or "~" in text:
        for _ in range(3):
            text = _SET_TEXT.sub(r"\1", text)
        text = _GAP.sub(" ", text)
    return text.replace("**", "").strip(" \t\n$`'\"“”*_{}").strip()


def _known(letter: str, options: Options) -> str | None:
    """The letter in upper case where the item has it."""
    return letter.upper() if letter.upper() in options.letters else None


def _only_once(bodies: Sequence[str | None], letters: str) -> dict[str, str]:
    """Letter by body, without the bodies that are missing or shared."""
    return {
        body: letter
        for body, letter in zip(bodies, letters, strict=True)
        if body is not None and bodies.count(body) == 1
    }
