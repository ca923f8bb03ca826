"""Answer phrases in prose, and how far what follows them is an answer.

"The answer is", "Answer:", "**Final Answer**" and their like in other languages
end before the answer; the answer ends with its sentence, its first clause or its
first number. Phrases are looked for from the end of the text, a fixed number of
them, by plain searches for a fragment that few other words hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from corl.answers.bare import is_bare, last_side, trim

MAX_PHRASES = 16
"""Answer phrases tried from the end of a text."""

MAX_SENTENCE = 1_000
"""Characters read after an answer phrase."""

MAX_CLAUSES = 4
"""Connectives tried in one sentence."""

# A noun as the fragment that is searched for and the letters that may stand before it.
_ENGLISH = (
    ("nswer", "Aa"),
    ("NSWER", "A"),
    ("ns:", "Aa"),
    ("ns =", "Aa"),
    ("ns :", "Aa"),
    ("ntwort", "Aa"),
    ("NTWORT", "A"),
    ("espuesta", "Rr"),
    ("ESPUESTA", "R"),
    ("eponse:", "Rr"),
    ("isposta", "Rr"),
    ("esposta", "Rr"),
    ("ntwoord", "Aa"),
    ("awaban", "Jj"),
)
_OTHER = (
    ("éponse", "Rr"),
    ("dpowiedź", "Oo"),
    ("dpověď", "Oo"),
    ("твет", "Оо"),
    ("إجابة", ""),
    ("الجواب", ""),
    ("उत्तर", ""),
    ("উত্তর", ""),
    ("答案", ""),
    ("答え", ""),
    ("答:", ""),
    ("答：", ""),
    ("정답", ""),
    ("답:", ""),
)
_CHOICE = tuple(
    (fragment, first)
    for word in ("choice", "option", "alternative", "response", "selection", "pick", "letter")
    for fragment, first in [(word[1:], word[0])]
)
_QUALIFIED = re.compile(
    r"\b(?:correct|right|best|final|my|our|the|appropriate)[ \t]+$", re.IGNORECASE
)
_COPULA = re.compile(
    r"['’]s\b|s?[ \t*]{0,4}(?:[→⇒]|[–—-](?=[ \t]))|s?[^.:：=\n]{0,60}?(?:"
    r"(?:\*\*|__)?[ \t]{0,4}(?:[:：]|=(?!=))"
    r"|\b(?:is|are|was|equals|becomes|(?:would|will|must|should|could|might|may|can only) be|"
    r"(?:seems|appears) to be|(?:turns|comes|works) out (?:to be|to|as)|comes to|"
    r"ist|lautet|es|est|è|é|то)(?!\w|['’]t)|是|为)",
    re.IGNORECASE,
)
_HEADED = re.compile(r"[*_ \t]*\r?\n")
_HEAD_LINE = re.compile(r"[#*_\s>]*(?:(?:the|my|our|so|final|correct)\s+){0,3}", re.IGNORECASE)
_FILLER = re.compile(
    r"(?:[\s:：,*_`\"“]+|(?:therefore|thus|then|hence|clearly|simply|just|indeed|obviously|exactly|"
    r"approximately|about|probably|likely|definitely|also|still|only|given by|equal to|found to be|"
    r"that|now|so|of course|calculated as|as follows|it is|it['’]s|they are|"
    r"there (?:is|are|were)|(?:we|she|he|they) (?:get|have|has|find|found)(?: that)?)\b,?){1,12}",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"(?:not|never|neither|wrong|incorrect|unclear|unknown)\b", re.IGNORECASE)
_BUT = re.compile(r"\bbut\s+(?:rather\s+|instead\s+|is\s+|it is\s+)?", re.IGNORECASE)
_STOP = re.compile(r"\\begin\b|\\end\b|\\[(\[]|\\.|[{}$\n。]|\.(?=\s|$|\*)", re.S)
_CLAUSE = re.compile(
    r"(?:,\s*|\s+[-—–(]?\s*|\s*[—–;]\s*|\s*\()(?:because|since|so|as|which|where|when|that|"
    r"in total|altogether|overall|for|thus|therefore|hence|given|if|but|by|due|meaning|i\.?e|e\.?g|"
    r"after|assuming|using|based|from|not|is|are|it|we|this|the|there|respectively|rounded|"
    r"to the nearest|and (?:so|thus|hence|therefore|the|we|it|this|that))\b",
    re.IGNORECASE,
)
_GLOSS = re.compile(r"(?<=[\d}%$])\s+\([A-Za-z][A-Za-z ,'’-]+\)$")
_NUMBER = (
    r"[-+−]?(?:\\?[$€£]\s?)?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:\s?/\s?\d+)?(?:\s?\\?%)?"
)
_LEAD = re.compile(
    rf"({_NUMBER})(?=\s*(?:[,;(—–]|:(?!\d))|\s+[^\W\d_])(?!\s*(?:,?\s*(?:and|or|to|of|out|times|plus|minus|"
    r"divided|multiplied|more|less|x)\b|,\s*[-\d$\\]))",
    re.IGNORECASE,
)


def phrase_starts(body: str, *, of_choices: bool = False) -> Iterator[int]:
    """Where the words after an answer phrase begin, last phrase first.

    of_choices: "the correct option is" and the like are answer phrases too.
    """
    for noun_start, noun_end in _nouns(body, of_choices):
        link = _COPULA.match(body, noun_end) or _heading_break(body, noun_start, noun_end)
        if link is not None:
            filler = _FILLER.match(body, link.end())
            yield filler.end() if filler else link.end()


def sentence_at(body: str, start: int) -> str:
    """The sentence from `start`: to a full stop or line end outside braces and mathematics."""
    at, limit, depth = start, min(len(body), start + MAX_SENTENCE), 0
    while (stop := _STOP.search(body, at, limit)) is not None:
        symbol, at = stop[0], stop.end()
        if symbol in ("{", "\\begin"):
            depth += 1
        elif symbol in ("}", "\\end"):
            if depth == 0 and symbol == "}":
                return body[start : stop.start()]
            depth = max(0, depth - 1)
        elif symbol in ("\\(", "\\["):
            close = body.find("\\)" if symbol == "\\(" else "\\]", at, limit)
            at = close + 2 if close >= 0 else at
        elif symbol == "$":
            at = _mathematics_end(body, stop.start(), limit)
        elif symbol[0] in "\n.。" and depth == 0:
            return body[start : stop.start()]
    return body[start:limit]


def affirmed(sentence: str) -> str | None:
    """The sentence, from its "but" on where it begins by a denial; None for a bare denial."""
    if not _NEGATED.match(sentence):
        return sentence
    but = _BUT.search(sentence)
    return sentence[but.end() :] if but else None


def first_clauses(sentence: str) -> Iterator[str]:
    """The sentence without a gloss such as "(five)", then its start up to each connective."""
    whole = trim(sentence)
    yield trim(_GLOSS.sub("", whole))
    for clause in islice(_CLAUSE.finditer(whole), MAX_CLAUSES):
        yield trim(whole[: clause.start()])


def answer_part(sentence: str) -> str | None:
    """The answer a sentence begins with: all of it, its first clause, or its first number."""
    for head in first_clauses(sentence):
        text = last_side(head)
        if is_bare(text, allow_article=True):
            return text
    number = _LEAD.match(trim(sentence))
    return number[1] if number else None


def _nouns(body: str, of_choices: bool) -> list[tuple[int, int]]:
    """Spans of the last nouns that can head an answer phrase, last first."""
    spans: list[tuple[int, int]] = []
    for fragment, initials in _ENGLISH if body.isascii() else (*_ENGLISH, *_OTHER):
        spans += _occurrences(body, fragment, initials)
    if of_choices:
        for fragment, initial in _CHOICE:
            spans += [
                span
                for span in _occurrences(body, fragment, initial)
                if _QUALIFIED.search(body, max(0, span[0] - 16), span[0])
            ]
    return sorted(spans, reverse=True)[:MAX_PHRASES]


def _occurrences(body: str, fragment: str, initials: str) -> Iterator[tuple[int, int]]:
    """Spans of a word, at most `MAX_PHRASES` of its fragments tried from the end."""
    at = len(body)
    for _ in range(MAX_PHRASES):
        at = body.rfind(fragment, 0, at)
        if at < 0:
            return
        start, end = at - bool(initials), at + len(fragment)
        end -= fragment.endswith((":", "：", "="))
        if initials and (start < 0 or body[start] not in initials):
            continue
        if body.startswith(">", end):
            continue  # An answer element is a marker of its own.
        is_word = not (start > 0 and body[start - 1].isalpha() and initials)
        if is_word and not (
            body[end : end + 1].isalpha() and body[end] != "s" and body[end].isascii()
        ):
            yield start, end


def _heading_break(body: str, noun_start: int, noun_end: int) -> re.Match[str] | None:
    """The line end after a heading such as "**Final Answer**"; None elsewhere."""
    line_start = max(body.rfind("\n", 0, noun_start) + 1, noun_start - 40)
    if not _HEAD_LINE.fullmatch(body, line_start, noun_start):
        return None
    return _HEADED.match(body, noun_end)


def _mathematics_end(body: str, dollar: int, limit: int) -> int:
    """Where the mathematics that opens at a `$` ends; just after the sign for a currency."""
    width = 2 if body.startswith("$$", dollar) else 1
    close = body.find("$" * width, dollar + width, limit)
    inside = body[dollar + width : close]
    if close < 0 or (width == 1 and (inside != inside.rstrip() or not is_bare(trim(inside)))):
        return dollar + width
    return close + width
