"""Does a rewrite help with the problem: a hint, a step, an answer? Or talk about the rewriting?

Only what the original does not say itself counts. No label is read: a rewrite that states any
answer is refused.
"""

from __future__ import annotations

import re

from corl.answers import read_answer

_CLAUSE = r"(?:^|\n|[.?!]\s)\s*"
_SIGNS: dict[str, tuple[str, ...]] = {
    "a box": (r"\\(?:boxed|fbox)\b",),
    "a hint": (
        r"\b(?:hints?|tips?)\b\s*(?:\d\s*)?[:：.)*\]]",
        r"(?m:^)\W*(?:hints?|tips?)\b",
        r"\b(?:recall|remember|observe|notice|keep in mind) that\b",
        r"\bthink about|\btry (?:using|to|small|factoring|substituting)\b",
        r"\byou (?:can|could|should|might|may|need to) "
        r"(?:use|apply|solve|start|begin|try|factor)\b",
    ),
    "a solution": (
        r"(?:^|\n|[.?!]\s|\*\*|\#)\s*(?:the\s+)?(?:solutions?|proof|explanation|working|reasoning|"
        r"step[ -]by[ -]step)\b[^\n.?!]{0,20}[:：]",
    ),
    "an answer": (
        r"\b(?:final |correct |right )?answers?\b[^\n.?!$]{0,20}(?::|=|\bequals\b|\bis\b"
        r"(?!\s+(?:an?|to|not|in|the form|required|needed|expected|expressed|written|given)\b))",
    ),
    "a conclusion": (
        rf"{_CLAUSE}(?:therefore|thus|hence|so|consequently|in conclusion)\b,?"
        r"[^\n?]*(?:\bis\b|\bare\b|\bequals\b|=)[^\n?]*\.?\s*\Z",
    ),
    "a step": (
        r"\bstep\s*(?:1|one)\b\s*[:：.)]",
        r"\b(?:let's|let us) (?:solve|start|begin|first|work|let|call|denote)\b",
        r"\bto (?:solve|answer|find) (?:this|it|the (?:problem|question|answer|solution))\b",
        r"\b(?:start|begin) by \w+ing\b",
        r"\bwe (?:can|need to|must|should|get|obtain|have to|first)\b",
        r"\b(?:this|it|which) (?:can|could|may) be (?:solved|simplified|found|computed|factored) "
        r"(?:by|using|with)\b",
        rf"{_CLAUSE}first, (?:set up|identify|find|calculate|compute|determine|note|let)\b",
        # Arithmetic behind the question.
        r"\?[^?]*\d\s*\D{0,12}?[-+*/x×÷]\s*\$?\d[^?=]{0,40}=\s*\$?\d[^?]*\Z",
    ),
    "talk about the rewriting": (
        r"\A\W*(?:sure|certainly|of course|okay|ok|rewritten|rephrased|reworded|paraphrased?|"
        r"the (?:rewritten|rephrased|reworded))\b",
        r"\bhere(?:'s| is| are) (?:the|a|an|your|my|one)?\s*"
        r"(?:re\w+ed|new|another|alternative|possible)\b",
        r"\b(?:rewritten|rephrased|reworded) (?:problem|version|question|prompt|text)\b",
        r"\bas an ai\b|\bI (?:can't|cannot|can not|am unable|'m sorry)\b",
        r"\b(?:same|original) (?:problem|answer|wording)\b[^\n]{0,40}"
        r"\b(?:kept|preserved|unchanged)\b",
    ),
}
_PATTERNS = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, patterns in _SIGNS.items()
    for pattern in patterns
)


def solution_faults(original: str, rewritten: str, *, kind: str = "math") -> list[str]:
    """What the rewrite gives away beyond the original: what was seen, and its words.

    kind: the row's answer kind; for math and text an answer is looked for as in a completion.
    """
    faults = []
    for name, pattern in _PATTERNS:
        seen = pattern.search(rewritten)
        if seen and not pattern.search(original):
            faults.append(f"{name}: {' '.join(seen[0].split())[:60]!r}")
    if not faults and kind in ("math", "text"):
        stated = read_answer(rewritten, kind)
        # Words alone ("where a and b are integers") are the form of an answer, not an answer.
        is_stated = stated is not None and any(map(str.isdigit, stated.text))
        if stated is not None and is_stated and read_answer(original, kind) is None:
            faults.append(f"an answer: {stated.text[:60]!r}")
    return faults
