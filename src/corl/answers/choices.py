"""Multiple choice: the letter that a text settles on.

Sources in order of trust: the text as a whole, box, answer element and `####`
line; the last answer phrase; a first or last line that is a letter; the letter
last picked or called correct. "A" and "I" are also words, so they count only
where something marks them as letters: a bracket, a stop, a noun such as
"option", or standing alone. A letter that is denied beside it never counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from corl.answers.completion import completion_body
from corl.answers.extract import WINDOW, last_box, last_tag
from corl.answers.options import (
    NOUNS,
    Options,
    alone_letter,
    bare_letter,
    exact_letter,
    is_own_option,
    label_letter,
    letter_by_text,
    num_labels,
    options_of,
    unmarked,
)
from corl.answers.phrases import affirmed, first_clauses, phrase_starts, sentence_at
from corl.answers.text import text_body

_HEADING = re.compile(rf"[#\s]*{NOUNS}\b", re.IGNORECASE)
_LEADING = re.compile(
    rf"(?:(?:the\s+)?(?P<noun>{NOUNS})\s+)?\$?(?P<open>[(\[<]?)\s?(?P<letter>[A-Za-z])(?![\w'’])"
    r"\s?(?P<close>[)\]>]?)\$?(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
# Words that follow a letter but never an article or the pronoun "I".
_AFTER_LETTER = re.compile(
    r"\s*(?:$|[.,;:!?)\]*—–(-]|(?:because|since|as|due|and|but|or|which|given|over|for|with|in|"
    r"is|by)\b)"
)
_OPERATOR = re.compile(r"\s*[+*/^_<>]|-(?=\w)")
_SECOND = re.compile(
    r"\s*(?:or|and|/|&|,\s*(?:or|and)?)\s*(?:option\s+)?[(\[]?([A-Z])(?!\w)"
    r"(?!['’]|\s+(?:is|was|are|has|can|cannot|would|does|gives|had|fails|am|think|believe)\b)",
)
_INSIDE = re.compile(
    r"[(\[]([A-Z])[)\]]|\*\*([A-Z])[.)]?\*\*|\b(?:[Oo]ption|[Cc]hoice|OPTION|CHOICE)\s+([A-Z])(?!\w)"
    r"|(?:\bis|\bbe|['’]s|[:=])\s+(?:clearly\s+|probably\s+)?([B-HJ-Z])(?![\w'’])"
)
_PICKED = re.compile(
    r"\b(?:pick|picked|choose|chose|select|selected|go(?:ing)? (?:with|for)|went with|"
    r"opt(?:ing)? for|settle (?:on|for)|vote for|lean(?:ing)? (?:to|towards?)|"
    r"it(?:['’]s| is| must be| has to be)|i(?:['’]d| would)? (?:say|guess|think))[ \t:]+"
    r"(?:(?:option|choice|answer|letter)[ \t]+)?[*$(\[]{0,3}([A-Z])(?![\w'’])",
    re.IGNORECASE,
)
_DECLARED = re.compile(
    r"(?<![\w'’])([A-Z])[)\]*$]{0,3}[ \t]+(?:is|must be|seems|has to be|looks)[ \t]+"
    r"(?:(?:clearly|therefore|indeed|thus)[ \t]+)?(?:(?:the|our|my)[ \t]+)?(?:only[ \t]+)?"
    r"(?:correct|right|best|true|answer)\b"
    r"|(?<![\w'’])([A-Z])[)\]*$]{0,3}[ \t]+(?:works|fits|holds|remains)\b"
    r"|\b(?:[Tt]herefore|[Tt]hus|[Hh]ence|[Ss]o),?[ \t]+[*$(\[]{0,3}([A-Z])[)\]*$]{0,3}(?:[.!]|$)"
)
_NAMED = re.compile(
    r"\b(?:option|choice|answer|alternative|letter)[ \t]+[*$(\[]{0,3}([A-Z])(?![\w'’])|\(([A-Z])\)",
    re.IGNORECASE,
)
_NOT_BEFORE = re.compile(
    r"(?:\b(?:not|never|eliminate|exclude|reject|discard|neither|nor|except|than|unlike|cannot|"
    r"without|rule out|ruled out|instead of|cross out|considered)|n['’]t)\s+"
    r"(?:[\w']+\s+){0,2}[*$(\[]*$",
    re.IGNORECASE,
)
_NOT_AFTER = re.compile(
    r"[)\]*$]{0,3}(?:\s+[\w']+){0,3}?,?\s+(?:"
    r"(?:is|are|was|were|seems|looks|but it is|can be|being)\s+(?:\w+\s+)?"
    r"(?:not|wrong|false|incorrect|invalid|impossible|unlikely|out|eliminated|ruled|excluded|"
    r"tempting|a (?:\w+ )?distractor)|"
    r"(?:is|are|was|does|do|could|would|can)n['’]t|cannot|fails|can be ruled)\b",
)
_LAST_LETTER = re.compile(r"[(\[]([A-Z])[)\]]|(?<![\w'’])([B-HJ-Z])(?![\w'’])")


def read_letter(
    text: str, choices: Sequence[str] | None, *, lenient: bool = False, truncated: bool = False
) -> str | None:
    """The letter a completion settles on, or None.

    choices: the option texts in letter order; None accepts A to J and no texts.
    A sentence that gives two letters abstains. lenient: the last letter that stands
    alone, where nothing says that it is the answer.
    """
    options = options_of(None if choices is None else tuple(choices))
    body = completion_body(text)
    if body is None or not body.text:
        return None
    truncated = truncated and not body.is_cut
    visible = body.text
    for source in (_from_marks, _from_phrases, _from_lines, _from_mentions):
        letter = source(visible, options, truncated)
        if letter is not None:
            return letter or None
    return _last_letter(visible, options) if lenient else None


def _from_marks(body: str, options: Options, truncated: bool) -> str | None:
    """The letter in the last box, answer element or `####` line, or of the whole text."""
    if not truncated and len(body) <= 400 and "\n" not in body:
        letter = exact_letter(body, options)
        if letter is not None:
            return letter
    for found in (last_box(body, truncated=truncated), last_tag(body, truncated=truncated)):
        if found is None:
            continue
        if truncated and found.is_open:
            return ""
        letter = bare_letter(found.text, options) or sentence_letter(found.text, options)
        if letter is not None:
            return letter
    line = body[body.rfind("####") :].partition("\n")[0] if "####" in body else ""
    # "#### Option A" and "#### A. First step" are headings of an analysis.
    return exact_letter(line.strip("# "), options) if not _HEADING.match(line) else None


def _from_phrases(body: str, options: Options, truncated: bool) -> str | None:
    """The letter after the last "answer is", "correct option:" and their like; "" for two."""
    for start in phrase_starts(body, of_choices=True):
        sentence = sentence_at(body, start)
        said = affirmed(sentence)
        if said is None or (truncated and start + len(sentence) >= len(body)):
            continue
        line = body[start : start + 400].partition("\n")[0] if said is sentence else said
        letter = letter_by_text(line, options) if len(unmarked(line)) > 1 else None
        letter = letter or sentence_letter(said, options)
        if letter is not None:
            return letter
    return None


def _from_lines(body: str, options: Options, truncated: bool) -> str | None:
    """The letter that the last or the first line consists of, alone or with its text.

    A text that lists several options is no answer by the first or last of them.
    """
    first, last = body[:WINDOW].split("\n"), body[-WINDOW:].split("\n")
    lines = [unmarked(line) for line in (first[0], *last)]
    listed = {label_letter(line, options) for line in lines} - {None}
    for line, is_first in ((lines[-1], False), (lines[0], True)):
        if truncated and not (is_first and "\n" in body):
            continue
        letter = alone_letter(line, options)
        if (
            letter is None
            and len(listed) == 1
            and num_labels(line) < 2
            and (is_first or is_own_option(line, options))
        ):
            letter = label_letter(line, options)
        if letter is not None:
            return letter
    return None


def _from_mentions(body: str, options: Options, truncated: bool) -> str | None:
    """The letter last picked or called correct, else the only one named as an option."""
    start = max(0, len(body) - WINDOW)
    picked = [
        (mention.start(), next(filter(None, mention.groups())))
        for pattern in (_PICKED, _DECLARED)
        for mention in pattern.finditer(body, start)
        if _is_meant(body, mention, options)
    ]
    if picked:
        return max(picked)[1]
    named = {
        mention[1] or mention[2]
        for mention in _NAMED.finditer(body, start)
        if _is_meant(body, mention, options)
    }
    return named.pop() if len(named) == 1 else None


def sentence_letter(sentence: str, options: Options) -> str | None:
    """The letter that the words after an answer phrase give; "" where they give two."""
    plain = unmarked(sentence)
    leading = _LEADING.match(plain)
    if leading is not None and _is_letter_use(leading):
        letter = leading["letter"].upper()
        if letter in options.letters:
            second = _SECOND.match(leading["rest"])
            if second is None or second[1] not in options.letters or second[1] == letter:
                return letter
            if second[1] not in "AI" or _AFTER_LETTER.match(leading["rest"], second.end()):
                return ""
            return letter
    for head in first_clauses(sentence):
        letter = letter_by_text(head, options)
        if letter is not None:
            return letter
    inside = {
        next(filter(None, mention.groups()))
        for mention in _INSIDE.finditer(sentence)
        if _is_meant(sentence, mention, options)
    }
    if len(inside) == 1:
        return inside.pop()
    return "" if inside else _only_option_said(sentence, options)


def _is_letter_use(leading: re.Match[str]) -> bool:
    """Whether a leading letter is one, and not an article, a pronoun or a variable."""
    letter, rest = leading["letter"], leading["rest"]
    if leading["close"] and (leading["open"] or leading["close"] == ")"):
        return True
    if _OPERATOR.match(rest):
        return False
    ends = not rest.strip() or rest[0] in ".,;:)"
    if letter.islower():
        return ends
    if letter in "AI":
        return bool(leading["noun"]) or ends or _AFTER_LETTER.match(rest) is not None
    return True


def _is_meant(body: str, mention: re.Match[str], options: Options) -> bool:
    """Whether a mentioned letter is one of the options and is not denied beside it."""
    at = next(index for index in range(1, (mention.re.groups or 0) + 1) if mention[index])
    letter, end = mention[at], mention.end(at)
    if letter not in options.letters:
        return False
    if letter in "AI" and mention.re is _PICKED and not _AFTER_LETTER.match(body, end):
        return False
    if _NOT_BEFORE.search(body, max(0, mention.start() - 40), mention.start()):
        return False
    return _NOT_BEFORE.search(body, max(0, end - 41), end - 1) is None and not _NOT_AFTER.match(
        body, end, end + 80
    )


def _last_letter(body: str, options: Options) -> str | None:
    """The last letter in brackets or alone, "A" and "I" only in brackets."""
    last = None
    for mention in _LAST_LETTER.finditer(body, max(0, len(body) - WINDOW)):
        letter = mention[1] or mention[2]
        last = letter if letter in options.letters else last
    return last


def _only_option_said(sentence: str, options: Options) -> str | None:
    """The letter of the one option whose words occur in a sentence that denies nothing."""
    said = f" {text_body(sentence)} "
    if (
        not options.by_text
        or len(sentence) > 400
        or re.search(r" (?:not|no|except|nor|\w+nt) ", said)
    ):
        return None
    found = [text for text in options.by_text if f" {text} " in said]
    whole = [text for text in found if not any(text != other and text in other for other in found)]
    return options.by_text[whole[0]] if len(whole) == 1 else None
