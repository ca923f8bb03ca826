"""When a piece of text is one answer and nothing else.

A completion without any marker is read only if all of it is one answer, and
the words after "the answer is" only as far as they are one. Both need the same
judgement: short, one line, closed brackets, no sentence around it. Words inside
`\\text{...}` were set as part of the answer and are not prose.
"""

from __future__ import annotations

import re

MAX_LENGTH = 400
"""Longest bare answer, in characters; the longest gold of MATH has 160."""

MAX_WORDS = 4
"""Most plain words of a bare answer, names of functions not counted."""

_SET_WORDS = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|textnormal|mbox|mathrm|mathbf|mathit|mathsf|operatorname)"
    r"\*?\s?\{[^{}]*\}"
)
_COMMAND = re.compile(r"\\(?:begin|end)\s?\{[^{}]{0,20}\}|\\[A-Za-z]+|\\.")
_ESCAPED = re.compile(r"\\.", re.S)
_BRACE = re.compile(r"[{}]")
_WORD = re.compile(r"[^\W\d_]{2,}")
_RELATION = re.compile(r"(?<![<>!=:])=(?!=)")
_UNIT = re.compile(r"(?<=[\d%}])\s+(?!and\b)[^\W\d_]{3,}")
_TIMES = re.compile(r"(?<=\d) x (?=\d)")
_LIST = re.compile(r",(?!\d{3})")
_LABEL = re.compile(r"[A-Za-z]\s?[:：]\s|[^\W\d_]{3,}[:：]")
_ENDLESS = re.compile(
    r"(?:[=+*/^_(\[{,<>&-]|\\(?:times|cdot|div|frac|pm|cup|cap|le|ge|to)|\b(?:of|to|for|in|on|at|and|or))\s*$"
)
# "Pages 3 and 4": a plain word that introduces numbers.
_NAMED_NUMBER = re.compile(
    r"\s*(?!(?:sin|cos|tan|cot|sec|csc|arc\w+|log|sqrt|exp|gcd|lcm|min|max|det)\b)[^\W\d_]{3,}"
    r"[\s,]+[-−$]?\d|\s*(?:at|on|of|to|for)\s",
    re.IGNORECASE,
)
_MARKS = re.compile(r"oxed|fbox|i\.e|e\.g|####|```|</?[a-z_]{3,}>|[?？！]", re.IGNORECASE)
_NONE_EXISTS = re.compile(r"no (?:\w+ )?(?:solutions?|answers exist)", re.IGNORECASE)
_NEXT_SENTENCE = re.compile(r"[.。]\s+[^\W\d_]")
_OUTER = re.compile(r"\$\$[^$]+\$\$|\$[^$]+\$|\\\((?:(?!\\\)).)+\\\)|\\\[(?:(?!\\\]).)+\\\]", re.S)
_BOLD = re.compile(r"(?<![\w)}])\*\*|\*\*(?![\w({\\])")

_WRAPPER = re.compile(
    r"\\{1,2}(?:boxed|fbox|framebox)\s*\{|<(?:final[ _-]?)?answer>", re.IGNORECASE
)

_FUNCTION_WORDS = """
sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp lg det max min gcd lcm mod
sqrt cbrt frac dfrac tfrac pi theta alpha beta gamma infinity infty cup cap union and or in deg rad
cm mm km kg mg ft hr am pm mph sq
"""
_FUNCTIONS = frozenset(_FUNCTION_WORDS.split())
_ARTICLES = frozenset(("the", "an"))
_PROSE_WORDS = """
i we you he she it they me us them him her your my our its his their this that these those there
here is are was were be been being isn aren wasn don doesn didn have has had do does did can
could cannot will would shall should must might think thought know known believe guess let lets so
thus therefore hence because since then first second next now finally step case part section not
but however although while when where which who what how why if as by using given into from with
about after before solve solving find finding found compute computing calculate get gets got give
gives equals obtained solution answer question problem note recall consider suppose assume check
wait hmm well sure okay ok hello hi sorry thanks thank please great correct incorrect wrong unclear
times plus minus divided multiplied more less than total
depending around roughly maybe perhaps each every for
altogether overall together approximately respectively rounded exactly probably likely
"""
# Verbs, pronouns and connectives: with one of them a text is a sentence about an answer.
_PROSE = frozenset(_PROSE_WORDS.split())


def is_bare(text: str, *, max_words: int = MAX_WORDS, allow_article: bool = False) -> bool:
    """Whether `text` is one answer with nothing around it.

    allow_article: accept a leading article and a name before a number ("the empty
    set", "October 30"): answers after a marker, likely fragments of prose elsewhere.
    """
    if not 0 < len(text) <= MAX_LENGTH or _MARKS.search(text) or _ENDLESS.search(text):
        return False
    if not is_balanced(text):
        return False
    if _NONE_EXISTS.fullmatch(text):
        return True
    plain = _COMMAND.sub(" ", _SET_WORDS.sub(" ", text))
    if _LABEL.search(plain) or _NEXT_SENTENCE.search(plain):
        return False
    if "\n" in plain and "\\begin" not in text:
        return False
    words = [word.casefold() for word in _WORD.findall(plain)]
    if any(word in _PROSE or len(word) > 24 for word in words):
        return False
    if _ARTICLES.intersection(words[1:] if allow_article else words):
        return False
    if not allow_article and _NAMED_NUMBER.match(plain):
        return False
    if sum(word not in _FUNCTIONS and word not in _ARTICLES for word in words) > max_words:
        return False
    return any(char.isalnum() or char in "∞∅" for char in text)


def is_balanced(text: str) -> bool:
    """Whether braces pair up and round and square brackets open as often as they close.

    Round and square ones may pair with each other, as in half-open intervals.
    """
    plain = _ESCAPED.sub("", text) if "\\" in text else text
    opens = plain.count("(") + plain.count("[")
    return opens == plain.count(")") + plain.count("]") and has_paired_braces(plain)


def has_paired_braces(text: str) -> bool:
    """Whether every brace that is not escaped has its partner inside the text."""
    plain = _ESCAPED.sub("", text) if "\\" in text else text
    if plain.count("{") != plain.count("}"):
        return False
    depth = 0
    for brace in _BRACE.findall(plain):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return True


def trim(text: str) -> str:
    """The answer without what only surrounds it: spaces, bold marks, quotes, a full stop, `$`."""
    for _ in range(4):
        before = text
        text = _BOLD.sub("", text).strip().strip('`"“”').strip()
        text = text.rstrip(".,;:。，；：*").rstrip()
        text = text.removesuffix("\\!").rstrip("\\").rstrip()
        if text[:1] in "*_>~" or (text[:1] == "=" and text[1:2] != "="):
            text = text.lstrip("*_>~=").lstrip()
        if text.endswith(")") and text.count(")") > text.count("(") + text.count("["):
            text = text[:-1]
        if _OUTER.fullmatch(text):
            width = 1 if text[0] == "$" and text[1] != "$" else 2
            text = text[width:-width].strip()
        if text == before:
            break
    return text


def last_side(text: str) -> str:
    """The value of a chain of constants: "7" of "3+4=7", "x = 7" of "x = 3+4 = 7".

    Anything with an unknown on its own, a list or a system is returned unchanged.
    """
    if "=" not in text or _LIST.search(text) or "\\begin" in text or len(text) > MAX_LENGTH:
        return text
    sides = [side.strip() for side in _RELATION.split(text)]
    if len(sides) < 2 or not all(side and is_balanced(side) for side in sides):
        return text
    bare = [
        _COMMAND.sub(" ", _SET_WORDS.sub(" ", _UNIT.sub("", _TIMES.sub("*", side))))
        for side in sides
    ]
    constant = [not _WORD.search(side) and not re.search(r"[A-Za-z]", side) for side in bare]
    if not constant[-1]:
        return text
    named = re.fullmatch(r"\s*[^\W\d_]{3,}(?:\s+[^\W\d_]+)*\s*", bare[0]) is not None
    if all(constant[1:-1]) and (constant[0] or named):
        return sides[-1]
    if len(sides) > 2 and all(constant[1:]) and re.fullmatch(r"\s*[A-Za-z]\s*", bare[0]):
        return f"{sides[0]} = {sides[-1]}"
    return text


def unwrapped(text: str) -> str:
    """A label without the box or answer tags that enclose all of it, at most three deep."""
    text = text.strip()
    for _ in range(3):
        opening = _WRAPPER.match(text)
        if opening is None:
            break
        closing = "}" if opening[0].endswith("{") else f"</{opening[0][1:]}"
        inner = text[opening.end() : -len(closing)]
        if not text.endswith(closing) or not has_paired_braces(inner):
            break
        text = inner.strip()
    return text
