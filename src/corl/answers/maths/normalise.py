"""Spelling: what is the same mark on paper becomes the same characters.

`cleaned` is applied to every answer before anything reads it; `folded` writes the key
of what nothing could read. Both are linear scans over the text.
"""

from __future__ import annotations

import re

from corl.answers.maths.characters import LOWERED, LOWERED_RUN, RAISED, RAISED_RUN, TABLE
from corl.answers.maths.numbers import digest

_MAX_BODY = 160

# A mark between digits that only groups thousands: 80{,}000  1,\!000  1\,000  1 000.
_THOUSANDS = re.compile(
    r"(?<=[0-9])(?:\{,\}|\{,\\!\}|,\\!|\\!,|\\,|\\;|\\ |~| )\s*(?=[0-9]{3}(?![0-9]))"
)
TEXT_COMMANDS = (
    "text|textbf|textit|textrm|textsf|texttt|textnormal|textup|mbox|hbox|mathrm|operatorname|emph"
)
_SET_TEXT = re.compile(rf"\\(?:{TEXT_COMMANDS})\*?\s*\{{([^{{}}]*)\}}")
_SHELL = re.compile(r"\\\\|\\[()\[\]]|\\?\$")
_THIN = ("\\,", "\\;", "\\:", "\\!", "\\ ", "\\>")
_SPACING = re.compile(
    r"\\\\|\\[,;:!> ]|~|\s"
    r"|\\(?:left|right|displaystyle|textstyle|quad|qquad|[bB]igg?[lr]?)(?![A-Za-z])"
)
_ALIAS = re.compile(r"\\(?:dfrac|tfrac|cfrac|leq|geq|neq|dots|cdots|lt|gt)(?![A-Za-z])|\.\.\.")
_ALIASES = {
    "\\dfrac": "\\frac",
    "\\tfrac": "\\frac",
    "\\cfrac": "\\frac",
    "\\leq": "\\le",
    "\\geq": "\\ge",
    "\\neq": "\\ne",
    "\\dots": "\\ldots",
    "\\cdots": "\\ldots",
    "\\lt": "<",
    "\\gt": ">",
    "...": "\\ldots",
}
# A space says nothing, except between two digits or two letters.
_IDLE_SPACE = re.compile(r" (?![0-9])(?<![A-Za-z] )| (?<![0-9] )(?![A-Za-z])")
_BRACE = re.compile(r"\\[{}]|[{}]")
_COMMAND = re.compile(r"\\[A-Za-z]+|[{}^_]")
LETTERS = re.compile(r"[^\W\d_]+")


def cleaned(raw: str) -> str:
    """The answer with one spelling of each character and without dollar signs and edges."""
    text = raw
    if not text.isascii():
        text = RAISED_RUN.sub(lambda run: f"^{{{run[0].translate(RAISED)}}}", text)
        text = LOWERED_RUN.sub(lambda run: f"_{{{run[0].translate(LOWERED)}}}", text)
        text = text.translate(TABLE)
    if "$" in text or "\\(" in text or "\\[" in text:
        text = _SHELL.sub(lambda mark: mark[0] if mark[0] == "\\\\" else " ", text)
    text = trimmed(text)
    if text.startswith(("\\boxed{", "\\fbox{")):
        text = trimmed(unboxed(text))
    if len(text) > 4 and text.startswith("**") and text.endswith("**"):
        text = trimmed(text[2:-2])
    return _THOUSANDS.sub("", text)


def unboxed(text: str) -> str:
    """Without boxes around the whole: the last brace must close the first."""
    while text.startswith(("\\boxed{", "\\fbox{")) and text.endswith("}"):
        start = text.index("{")
        depth = 0
        for brace in _BRACE.finditer(text, start):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if depth == 0:
                break
        if depth or brace.end() != len(text):
            break
        text = text[start + 1 : -1].strip()
    return text


def trimmed(text: str) -> str:
    """Without spaces, thin spaces and stops at the ends. (A regex here would be quadratic.)"""
    while True:
        before = len(text)
        text = text.strip(" \t\r\n\f\v~").rstrip(" \t\r\n\f\v~.,;:")
        if text.startswith(_THIN):
            text = text[2:]
        if len(text) < before and text.endswith("\\"):
            # The stop belonged to a thin space, as in "5\\,"; a row mark "\\\\" stays.
            text = text[: len(text) - 1] if not text.endswith("\\\\") else text
        if len(text) == before:
            return text


def unset(text: str) -> str:
    r"""Without the \text{...} and \mbox{...} around words."""
    return _SET_TEXT.sub(r"\1", text) if "\\" in text else text


def folded(text: str) -> str:
    """The key of a text that no grammar read: spacing and variants of spelling removed.

    Prose (a word, and no command or brace) is case-folded and keeps single spaces.
    """
    inner = trimmed(unset(text))
    if not _COMMAND.search(inner) and any(len(word) > 2 for word in LETTERS.findall(inner)):
        return f"text:{bounded(' '.join(inner.casefold().split()))}"
    body = _SPACING.sub(lambda mark: "\\\\" if mark[0] == "\\\\" else " ", inner)
    body = _IDLE_SPACE.sub("", " ".join(body.split()))
    return f"string:{bounded(_ALIAS.sub(lambda name: _ALIASES[name[0]], body))}"


def folded_long(text: str) -> str:
    """The key of a text too long to be cleaned: its characters without white space."""
    body = "".join(text.split())
    return f"string:#{len(body)}.{digest(body)}"


def bounded(body: str) -> str:
    return body if len(body) <= _MAX_BODY else f"#{len(body)}.{digest(body)}"
