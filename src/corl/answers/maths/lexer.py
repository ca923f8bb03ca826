r"""From cleaned text to tokens: numbers, symbols, functions, operators, words.

A token is (kind, text). Kinds: "num" (digits with an optional point), "sym" (one
symbol), "fn" (a named function), "cmd" (another LaTeX command, without its backslash),
"words" (a run of set or plain prose), "sep" (and/or), "begin" and "end" (the name of an
environment) and "op" (any other character; `\{` is "{set", `\\` is "row"). White space
only separates: two numbers in a row had some between them.

Decision: letters are read as products of symbols only in runs of up to three, or where
they spell a known function; longer runs are words, and with one of those in the text the
short runs are words too.
"""

from __future__ import annotations

import re

from corl.answers.maths.budgets import Unreadable
from corl.answers.maths.normalise import TEXT_COMMANDS
from corl.answers.maths.vocabulary import (
    ALIASES,
    ESCAPED,
    FUNCTIONS,
    GREEK,
    OPERATOR_COMMANDS,
    PLAIN_COMMANDS,
    SKIPPED,
    UNIT_STOPPERS,
    UNITS,
)

Token = tuple[str, str]

_TOKEN = re.compile(
    rf"""
    (?P<gap>\s+|\\[,;:!>\ ]|~)
  | (?P<num>(?:1|[0-9]*\.[0-9]+)[eE][+-]?[0-9]+(?![0-9A-Za-z.])
      | (?:[1-9][0-9]{{0,2}}(?:,[0-9]{{3}})+(?!,?[0-9])|[0-9]+)(?:\.[0-9]+|\.(?![0-9.]))?
        (?:[eE](?:[+-][0-9]{{2,}}|[0-9]+)(?![0-9A-Za-z.]))?
      | \.[0-9]+)
  | \\(?:{TEXT_COMMANDS})\*?\s*\{{(?P<text>[^{{}}]*)\}}
  | \\begin\s*\{{(?P<begin>[a-z]+)\}}(?:(?<=array\}})\s*\{{[^{{}}]*\}})?
  | \\end\s*\{{(?P<end>[a-z]+)\}}
  | \\[hv]?phantom\s*(?P<phantom>\{{[^{{}}]*\}}|[^{{\\])
  | \\(?P<cmd>[A-Za-z]+)
  | \\(?P<esc>.)
  | (?P<run>[A-Za-z]+)
  | (?P<dots>\.\.+)
  | (?P<op>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_LONG_RUN = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4}")
_OPENING = frozenset({"(", "[", "{set"})
_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]\.)?")
_MATHS_TEXT = re.compile(r"[\s0-9.,()+\-/:=]*(?:[A-Za-z][\s0-9.,()+\-/:=]+)*[A-Za-z]?")
# Metres, seconds, litres; but e and i stay constants.
_LONE_UNIT = re.compile(r"[A-DF-Za-df-hj-z](?:/[A-Za-z](?:\^?[23])?)?")
_CONNECTED = re.compile(r"(?<![A-Za-z])(and|or)(?![A-Za-z])|,", re.IGNORECASE)


def lexed(text: str) -> list[Token]:
    """The tokens of a cleaned answer; Unreadable for sequences with an ellipsis."""
    tokens = _Lexer(text).tokens
    if ("sym", "U") in tokens:
        for k in range(1, len(tokens) - 1):
            is_between = tokens[k - 1][1] in (")", "]", "}set") and tokens[k + 1][1] in _OPENING
            if tokens[k] == ("sym", "U") and is_between:
                tokens[k] = ("cmd", "cup")
    return tokens


class _Lexer:
    def __init__(self, text: str) -> None:
        self.tokens: list[Token] = []
        self._brackets = 0
        self._prose = _LONG_RUN.search(text) is not None and any(
            len(run) > 3 and split_name(run) is None for run in _plain_runs(text)
        )
        self._read(text)

    def _read(self, text: str) -> None:
        put = self.tokens.append
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup
            body = match[kind] if kind else ""
            if kind == "num":
                self._number(body)
            elif kind == "op":
                self._brackets += (body in "([") - (body in ")]")
                put(("op", body))
            elif kind in ("begin", "end"):
                put((kind, body))
            elif kind in ("gap", "phantom"):
                continue
            elif kind == "cmd":
                self._command(body)
            elif kind == "run":
                self._run(body)
            elif kind == "text":
                self._set_text(body)
            elif kind == "esc":
                self._escaped(body)
            else:
                raise Unreadable("an ellipsis")

    def _number(self, body: str) -> None:
        """One number, or several where commas between brackets separate coordinates."""
        if "," in body and self._brackets > 0 and ",0" not in body:
            for k, part in enumerate(body.split(",")):
                self.tokens.extend([("op", ",")] if k else [])
                self.tokens.append(("num", part))
            return
        self.tokens.append(("num", body.replace(",", "")))

    def _escaped(self, mark: str) -> None:
        body = ESCAPED.get(mark)
        if body is None:
            raise Unreadable(f"the escape {mark!r}")
        self._brackets += (body == "{set") - (body == "}set")
        self.tokens.append(("op", body))

    def _command(self, name: str) -> None:
        if name in SKIPPED:
            return
        name = ALIASES.get(name, name)
        if name in OPERATOR_COMMANDS:
            self._brackets += (name in ("[", "{set")) - (name in ("]", "}set"))
            self.tokens.append(("op", name))
        elif name in FUNCTIONS:
            self.tokens.append(("fn", FUNCTIONS[name]))
        elif name in GREEK:
            self.tokens.append(("sym", name))
        elif name in ("and", "or"):
            self.tokens.append(("sep", name))
        elif name == "ldots":
            raise Unreadable("an ellipsis")
        else:
            self.tokens.append(("cmd", name))

    def _run(self, run: str) -> None:
        """A run of plain letters."""
        lower = run.lower()
        if lower in ("and", "or"):
            self.tokens.append(("sep", lower))
        elif lower == "percent":
            self.tokens.append(("op", "%"))
        elif run in UNITS and self._follows_value():
            self._words(run)
        elif (split := split_name(run)) is not None:
            self.tokens.extend(split)
        elif len(run) > 1 and (self._prose or len(run) > 3):
            self._words(run)
        else:
            self.tokens.extend(("sym", letter) for letter in run)

    def _words(self, body: str) -> None:
        """Words, joined to the words before them."""
        if self.tokens and self.tokens[-1][0] == "words":
            self.tokens[-1] = ("words", f"{self.tokens[-1][1]} {body}")
        else:
            self.tokens.append(("words", body))

    def _follows_value(self) -> bool:
        kind, body = self.tokens[-1] if self.tokens else ("end", "")
        return kind in ("num", "words") or body in ("}", ")")

    def _follows_number(self) -> bool:
        """Whether one set letter here is a unit (5 m), and not a symbol or an option."""
        return self._follows_value() or bool(self.tokens and self.tokens[-1] == ("cmd", "pi"))

    def _set_text(self, body: str) -> None:
        r"""The inside of \text{...}: connectives, a value set upright, or words."""
        stripped = body.strip()
        if not stripped:
            return
        if _LONE_UNIT.fullmatch(stripped) and self._follows_number():
            self._words(stripped)
        elif stripped == "percent":
            self.tokens.append(("op", "%"))
        elif stripped in UNITS and self._follows_value():
            self._words(stripped)
        elif stripped in FUNCTIONS:
            self.tokens.append(("fn", FUNCTIONS[stripped]))
        elif (
            _MATHS_TEXT.fullmatch(body)
            or _CONNECTED.search(body)
            and all(word.lower() in ("and", "or") or len(word) == 1 for word in _WORD.findall(body))
        ):
            self._read(body)
        else:
            self._words(" ".join(stripped.split()))


def _plain_runs(text: str) -> list[str]:
    return [match["run"] for match in _TOKEN.finditer(text) if match.lastgroup == "run"]


def split_name(run: str) -> list[Token] | None:
    """Tokens of a run that is a known name, or a function or pi with a letter behind it."""
    for name in (run, run[:-1]):
        token = _named(name)
        if token is not None and (name == run or token[0] == "fn" or name in ("pi", "sqrt")):
            rest = run[len(name) :]
            return [token, ("sym", rest)] if rest else [token]
    return None


def _named(name: str) -> Token | None:
    if name in PLAIN_COMMANDS and len(name) > 1:
        return ("cmd", PLAIN_COMMANDS[name])
    if name in FUNCTIONS:
        return ("fn", FUNCTIONS[name])
    if name in GREEK and len(name) > 2:
        return ("sym", name)
    return None


def is_unit(words: str) -> bool:
    """Whether words behind a number may be dropped as its unit."""
    found = _WORD.findall(words)
    return bool(found) and not any(word.lower() in UNIT_STOPPERS for word in found)
