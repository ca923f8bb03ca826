"""Grade answers for reported scores: math-verify, except where it is known wrong.

Votes never come here: they compare keys. A reported score is math-verify's
`verify(gold, answer)`; the named rules below hand a pair to our own key instead,
because math-verify is wrong on their kind. Time-outs and errors are classes of
their own: neither counts as right, and neither hides among the wrong.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from corl.evaluation.grading_pool import GradingError, GradingPool

__all__ = [
    "Grade", "GradingError", "GradingPool", "RULES", "count_verdicts", "grade_pairs",
    "keys_agree", "write_disagreements",
]  # fmt: skip

Said = Literal["right", "wrong", "timeout", "error", "unasked"]
Verdict = Literal["right", "wrong", "timeout", "error"]

RULES = {
    "no_answer": "a side is empty, or the completion abstained: wrong, without asking",
    "ellipsis": "a side has an ellipsis: math-verify compares what stands around it",
    "malformed_root": r"a \sqrt without a braced argument: math-verify drops the root",
    "tiny": "both numbers lie within 1e-4 of zero: math-verify rounds to 6 decimals",
    "asymmetric": "the two argument orders differ: an equality has no direction",
    "unread": "math-verify reads no value on a side, and compares nothing",
}
"""Rules by which our key, and not math-verify, decides a pair; the first that fits counts."""

_ELLIPSIS = re.compile(r"\\[lcdv]?dots[bcmio]?(?![a-zA-Z])|\.\.\.|…")
_MALFORMED_ROOT = re.compile(r"\\sqrt\s*(?:\[[^\]]*\]\s*)?(?![\s{\[\w\\])|\\sqrt\s*$")


@dataclass(frozen=True, slots=True)
class Grade:
    """The verdict on one pair, and everything it rests on.

    forward: what math-verify says of (gold, answer); backward: of the other order.
    rule: the name in `RULES` by which our key decided; None where math-verify did.
    same_key: whether our keys agree; None where a side has no key.
    """

    gold: str
    answer: str | None
    verdict: Verdict
    rule: str | None
    forward: Said
    backward: Said
    same_key: bool | None
    detail: str = ""

    @property
    def is_disagreement(self) -> bool:
        """Say whether math-verify and our key both speak, and differ."""
        return self.same_key is not None and self.forward in _SPOKEN[not self.same_key]


_SPOKEN: dict[bool, tuple[Said, ...]] = {True: ("right",), False: ("wrong",)}

SameKey = Callable[[str, str], bool | None]


def keys_agree(gold: str, answer: str) -> bool | None:
    """Compare the keys of two bare answers; None where one of them has no key."""
    from corl.answers import canonical

    keys = [canonical(text) for text in (gold, answer)]
    if keys[0] is None or keys[1] is None:
        return None
    return keys[0].key == keys[1].key


def grade_pairs(
    pairs: Sequence[tuple[str, str | None]],
    *,
    workers: int = 2,
    timeout_s: float = 5.0,
    same_key: SameKey = keys_agree,
    pool: GradingPool | None = None,
) -> list[Grade]:
    """Grade pairs of a gold and an answer; both bare, as read from their texts.

    answer: None where the completion gave none.
    timeout_s: seconds for one pair, both orders together; then its worker is killed.
    pool: a pool to keep between calls; by default one is opened and closed here.
    Raises `GradingError` when math-verify is not installed.
    """
    asked = [n for n, (gold, answer) in enumerate(pairs) if _before(gold, answer) is None]
    texts = [(pairs[n][0], pairs[n][1] or "") for n in asked]
    replies: list[dict[str, Any]] = []
    if asked and pool is not None:
        replies = pool.compare_all(texts)
    elif asked:
        with GradingPool(workers=workers, timeout_s=timeout_s) as own:
            replies = own.compare_all(texts)
    by_index = dict(zip(asked, replies, strict=True))
    return [
        _grade(gold, answer, by_index.get(n), same_key) for n, (gold, answer) in enumerate(pairs)
    ]


def _before(gold: str, answer: str | None) -> str | None:
    """Return the rule that fits without asking math-verify, if any."""
    if answer is None or not answer.strip() or not gold.strip():
        return "no_answer"
    return None


def _grade(gold: str, answer: str | None, reply: dict[str, Any] | None, same: SameKey) -> Grade:
    if answer is None or reply is None:
        return Grade(gold, answer, "wrong", "no_answer", "unasked", "unasked", None)
    agree = same(gold, answer)
    error = str(reply.get("error", ""))
    forward, backward = (_said(reply, name, error) for name in ("forward", "backward"))
    rule = _rule(gold, answer, reply, (forward, backward))
    verdict: Verdict = forward if forward != "unasked" else "error"
    if rule is not None:
        verdict = "right" if agree else "wrong"
    elif backward in ("timeout", "error"):
        verdict = backward
    return Grade(gold, answer, verdict, rule, forward, backward, agree, error)


def _said(reply: dict[str, Any], name: str, error: str) -> Said:
    if name in reply:
        return "right" if reply[name] else "wrong"
    return "error" if error else "timeout"


def _rule(gold: str, answer: str, reply: dict[str, Any], said: tuple[Said, Said]) -> str | None:
    if any(_ELLIPSIS.search(text) for text in (gold, answer)):
        return "ellipsis"
    if any(_MALFORMED_ROOT.search(text) for text in (gold, answer)):
        return "malformed_root"
    if reply.get("tiny"):
        return "tiny"
    if {*said} == {"right", "wrong"}:
        return "asymmetric"
    return "unread" if reply.get("unread") else None


def count_verdicts(grades: Iterable[Grade]) -> dict[str, int]:
    """Count right, wrong, timeout and error; every verdict is present."""
    counts = Counter(grade.verdict for grade in grades)
    return {name: counts[name] for name in ("right", "wrong", "timeout", "error")}


def write_disagreements(grades: Iterable[Grade], path: Path) -> int:
    """Write the grades where math-verify and our key differ, one JSON object a line.

    Returns their number. The file is written even when it is empty.
    """
    found = [grade for grade in grades if grade.is_disagreement]
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(asdict(grade), ensure_ascii=False) + "\n" for grade in found]
    path.write_text("".join(lines), encoding="utf-8")
    return len(found)
