"""Is a rewrite whole: does it end, close what it opens, and still ask something?"""

from __future__ import annotations

import re

from corl.diversity.rephrase.drawings import without_drawings

_STOPS = re.compile(r"[.?!。？！।؟…:](?:\s|[\"'”’»)\]$*`}]|\\[\])]|\\end\{\w+\*?\})*\Z|\[/asy\]\Z")
_FORMULA_ENDS = re.compile(r"\\\]\Z|\$\Z|\\\)\Z|\\end\{\w+\*?\}\Z")
_OPTION_END = re.compile(r"(?:^|\n|\s)[(\[]?[A-Ja-j][.):\]][ \t]*[^\n]{1,200}\Z")
_ASKS = re.compile(
    r"[?？؟]|\b(?:find|determine|compute|calculate|evaluate|what|which|how|solve|simplify|express|"
    r"prove|show|give|provide|identify|state|write|convert|factor|expand|enter|list|estimate|"
    r"round|name|describe|sketch|graph|combine|rationalize|count|choose|select|derive|verify|"
    r"work out|figure out|tell|who|where|when|why|add|subtract|multiply|divide|reduce|complete|"
    r"pick|mark|sum|construct|explain|answer|obtain|rewrite|perform|approximate|present|specify|report)\b",
    re.IGNORECASE,
)
_ENVIRONMENT = re.compile(r"\\(begin|end)\{(\w+\*?)\}")
_COMMAND_PAIRS = ((r"\left", r"\right"), (r"\[", r"\]"), (r"\(", r"\)"))
_BRACKETS = (("{", "}"), ("([", ")]"))
_PRICED = re.compile(
    r"\\\$|\b(?:dollars?|cents?|usd|costs?|prices?|pa(?:y|id)|earns?|sp(?:end|ent)|money)\b", re.I
)
_MONEY = re.compile(r"\$(?=\d[\d,.]*(?![\d,.])[^$\\^_={}]?)")
_COMMAND = re.compile(r"\\(?:left(?![a-zA-Z])|right(?![a-zA-Z])|\\(?:\[[^\]\n]*\])?|.)", re.S)


def ending_faults(original: str, rewritten: str) -> list[str]:
    """What says that the rewrite was cut off. What the original leaves open may stay open."""
    text, source = rewritten.strip(), original.strip()
    faults = [f"{one} not closed" for one in unclosed(text) if one not in unclosed(source)]
    if text.count("[asy]") > text.count("[/asy]"):
        faults.append("the drawing is not closed")
    if not _ends(text, source):
        faults.append(f"ends in the middle: ...{text[-30:]!r}")
    if _ASKS.search(without_drawings(source)) and not _ASKS.search(without_drawings(text)):
        faults.append("asks nothing")
    return faults


def unclosed(text: str) -> list[str]:
    """Names of the brackets, formulas and environments whose ends do not match their starts."""
    text = without_drawings(text)
    names: list[str] = []
    opened: list[str] = []
    for kind, name in _ENVIRONMENT.findall(text):
        if kind == "begin":
            opened.append(name)
        elif opened and opened[-1] == name:
            opened.pop()
        else:
            names.append(f"\\end{{{name}}}")
    names += [f"\\begin{{{name}}}" for name in opened]
    commands = [match[0][:6] for match in _COMMAND.finditer(text)]
    bare = _COMMAND.sub(" ", text)
    if bare.count("$") % 2 and not _is_money(text, bare):
        names.append("$")
    for start, end in _COMMAND_PAIRS:
        if commands.count(start) != commands.count(end):
            names.append(start)
    # A half-open interval closes one kind of bracket with the other.
    for starts, ends in _BRACKETS:
        if sum(map(bare.count, starts)) != sum(map(bare.count, ends)):
            names.append(starts[0])
    return names


def _is_money(text: str, bare: str) -> bool:
    """Whether an odd dollar sign is a currency's: "it costs $5"."""
    formulas = _MONEY.sub(" ", bare).count("$")
    return formulas % 2 == 0 and (not formulas or bool(_PRICED.search(text)))


def _ends(text: str, source: str) -> bool:
    """Whether the text ends like a sentence, or else like the original, which may have no stop."""
    if _STOPS.search(text) or _OPTION_END.search(text[-240:]):
        return True
    if _STOPS.search(source) or _OPTION_END.search(source[-240:]):
        return False
    return not _FORMULA_ENDS.search(source) or bool(_FORMULA_ENDS.search(text))
