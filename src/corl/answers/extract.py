"""Find the one answer that a completion states, or none.

Markers in order of trust: the last balanced `\\boxed`/`\\fbox`, the last `<answer>`
element, the last `####` line, the last "answer is" phrase; then a text that is
wholly one answer, and, only when lenient, the last number. The kind decides, not
the position: a box earlier in the text beats a phrase after it. Every scan is
linear in the text, and the phrases that are tried are a fixed number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from corl.answers.bare import MAX_WORDS, is_bare, last_side, trim
from corl.answers.completion import completion_body
from corl.answers.phrases import (
    MAX_PHRASES,
    MAX_SENTENCE,
    affirmed,
    answer_part,
    phrase_starts,
    sentence_at,
)

WINDOW = 4_000
"""Characters at the end of a text in which a number or letter that nothing marks counts."""

_BOX_TOKEN = re.compile(
    r"\\{0,2}(?<![A-Za-z])(?:boxed|fbox|framebox)(?![A-Za-z])|\x08oxed(?![A-Za-z])|\\.|[{}]", re.S
)
_SPACE = re.compile(r"\s*")
_UNBRACED = re.compile(r"[^$\n]{1,80}?(?=\$|\n|\\\)|\\\]|[.,;]\s|[.,;]?$)")
_TAG = re.compile(r"<(/?)(?:final[ _-]?)?ans(?:wer)?[ \t]{0,4}>", re.IGNORECASE)
_ANNOTATION = re.compile(r"<<[^<>\n]{0,200}>>")
_PLACEHOLDER = re.compile(
    r"(?:\\text\{)?\s*(?:\.{2,}|…|\\[lc]?dots|\\square|_+|"
    r"(?:your|the|final)?[ _]?answer(?: here)?)?\s*\}?",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"(?:step|case|part|section|method|approach|solution|explanation|conclusion|summary|answer|"
    r"final|verification|check|given|proof|example|note|problem|question|result)s?\b",
    re.IGNORECASE,
)

_LAST_NUMBER = re.compile(
    r"(?<![\w^.\\])(?<!\^\{)(?<!_\{)(?:[-+−]?\\?[dt]?frac\{\d+\}\{\d+\}|"
    r"(?:(?<![\d)\]}] )(?<![)\]}])[-+−])?(?:\\?[$€£]\s?[-−]?)?"
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:/\d+(?![\d/]))?(?:\s?\\?%)?)"
)


class Found(NamedTuple):
    """Text that a marker points at."""

    text: str
    """The answer as written, stripped; None of its markers is left in it."""

    is_open: bool
    """Whether it runs to the very end of the text, so that a truncated one may be cut short."""


def extract(
    text: str, *, lenient: bool = False, truncated: bool = False, prose: bool = False
) -> str | None:
    """The one answer a completion states, or None for an abstention.

    truncated: the completion hit its length cap; an answer that is not closed, or
    that only is the whole text, then abstains. prose: see `marked`.
    """
    body = completion_body(text)
    if body is None or not body.text:
        return None
    truncated = truncated and not body.is_cut
    visible = without_annotations(body.text)
    found = marked(visible, truncated=truncated, prose=prose)
    if found is not None:
        return None if truncated and found.is_open else found.text
    if not truncated:
        whole = last_side(trim(visible)) if len(visible) <= MAX_SENTENCE else ""
        if is_bare(whole, allow_article=prose, max_words=8 if prose else MAX_WORDS):
            return whole
    return last_number(visible) if lenient else None


def without_annotations(text: str) -> str:
    """The text without calculator annotations such as `<<3+4=7>>`."""
    return _ANNOTATION.sub("", text) if "<<" in text else text


def marked(body: str, *, truncated: bool = False, prose: bool = False) -> Found | None:
    """The answer that the most trusted marker points at; None without a usable marker.

    prose: keep a sentence after an answer phrase even where it is more than one answer.
    """
    box = last_box(body, truncated=truncated)
    if box is None:
        box = last_tag(body, truncated=truncated)
    if box is not None:
        return box
    line = last_hash_line(body)
    if line is not None:
        return line
    return next(phrases(body, prose=prose), None)


def last_box(body: str, *, truncated: bool = False) -> Found | None:
    """The content of the last balanced box, the inner one of two nested.

    A later box that never closes leaves the last balanced one standing, marked open;
    in a truncated text an open box counts even where none is balanced.
    """
    first = min((at for at in (body.find("oxed"), body.find("box")) if at >= 0), default=-1)
    if first < 0:
        return None
    stack: list[int] = []
    opens_at, last, unbraced = -1, (-1, -1), -1
    for token in _BOX_TOKEN.finditer(body, max(0, first - 8)):
        symbol = token[0]
        if symbol == "{":
            stack.append(token.end() if token.start() == opens_at else -1)
        elif symbol == "}":
            start = stack.pop() if stack else -1
            if start > last[0] and not _is_placeholder(body, start, token.start()):
                last = (start, token.start())
        elif symbol.endswith(("oxed", "box")):
            after = _SPACE.match(body, token.end())
            at = after.end() if after else token.end()
            if body.startswith("{", at):
                opens_at = at
            elif symbol[0] in "\\\x08" and body[at : at + 1] not in ("", "[", "}"):
                unbraced = at
    is_open = any(start > last[0] for start in stack)
    if unbraced > last[0] and (plain := _UNBRACED.match(body, unbraced)):
        part = answer_part(plain[0])
        return Found(part, plain.end() == len(body)) if part else None
    if last[0] < 0:
        return Found("", is_open) if is_open and truncated else None
    return Found(_inner(body[last[0] : last[1]]), is_open)


def last_tag(body: str, *, truncated: bool = False) -> Found | None:
    """The content of the last `<answer>` element that says something.

    A sole element without its end reads to the end of the text: engines strip the
    stop string that closed it.
    """
    opened, last = -1, (-1, -1)
    for tag in _TAG.finditer(body):
        if not tag[1]:
            opened = tag.end()
        elif opened >= 0:
            if not _is_placeholder(body, opened, tag.start()):
                last = (opened, tag.start())
            opened = -1
    if last[0] >= 0:
        return Found(_inner(body[last[0] : last[1]]), is_open=opened >= 0)
    if opened >= 0 and (truncated or is_bare(trim(body[opened : opened + MAX_SENTENCE]))):
        return Found(_inner(body[opened:]), is_open=True)
    return None


def last_hash_line(body: str) -> Found | None:
    """What follows `####` on the last line where that is an answer and not a heading."""
    end = len(body)
    for _ in range(MAX_PHRASES):
        at = body.rfind("####", 0, end)
        if at < 0:
            break
        line_end = body.find("\n", at)
        line_end = len(body) if line_end < 0 else line_end
        start = body.rfind("\n", 0, at) + 1
        said = body[start:line_end].rstrip("# \t").rpartition("####")[2]
        text = last_side(trim(said.strip("# \t"))) if len(said) <= MAX_SENTENCE else ""
        if not _HEADING.match(text) and is_bare(text, allow_article=True):
            return Found(text, is_open=line_end == len(body))
        end = start
    return None


def phrases(body: str, *, prose: bool = False) -> Iterator[Found]:
    """The answers after "answer is", "Answer:", "Antwort:" and their like, last first."""
    for start in phrase_starts(body):
        sentence = sentence_at(body, start)
        said = affirmed(sentence)
        if said is None:
            continue
        text = answer_part(said)
        if text is None and prose:
            text = trim(said) or None
        if text is not None:
            yield Found(text, is_open=start + len(sentence) >= len(body))


def last_number(body: str) -> str | None:
    """The last number of a text, with its sign, separators, decimals and percent mark."""
    last = None
    for last in _LAST_NUMBER.finditer(body, max(0, len(body) - WINDOW)):  # noqa: B007
        pass
    return None if last is None else last[0].strip()


def _inner(content: str) -> str:
    """Marked content, read through an answer phrase inside it."""
    text = trim(content)
    if not is_bare(text) and (found := next(phrases(text), None)) is not None:
        return found.text
    return last_side(text)


def _is_placeholder(body: str, start: int, end: int) -> bool:
    """Whether marked text is empty or only repeats the instruction, such as `\\boxed{...}`."""
    return end - start <= 40 and _PLACEHOLDER.fullmatch(body, start, end) is not None
