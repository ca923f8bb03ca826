"""Graders of answers that are text: maths by math-verify, letters, words and numbers by rule."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, InvalidOperation
from types import MappingProxyType

from corl.answers import Answer, canonical
from corl.answers.bare import unwrapped
from corl.evaluation.graders.base import Graded, Response, Verdict, graded, read
from corl.evaluation.grading import GradingPool, grade_pairs

_EXACT = Context(prec=60, traps=[])


class KeyGrader:
    """An answer is right when its key is the gold's: letters of choices, and words."""

    def grade(self, responses: Sequence[Response]) -> list[Graded]:
        return [_by_key(read(response), response) for response in responses]

    def close(self) -> None:
        """Nothing to end."""


class NumberGrader:
    """A number within a relative tolerance of the gold, `math.isclose` as SciBench uses it."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = Decimal(str(tolerance))

    def grade(self, responses: Sequence[Response]) -> list[Graded]:
        return [self._graded(read(response), response) for response in responses]

    def _graded(self, answer: Answer | None, response: Response) -> Graded:
        values = [number(answer), number(canonical(response.item.answer or ""))]
        right = None not in values and _is_close(values[0], values[1], self._tolerance)
        return graded(answer, "right" if right else "wrong")

    def close(self) -> None:
        """Nothing to end."""


class MathsGrader:
    """math-verify in workers that can be killed (docs/grading.md); options where a row has them.

    A row with a `precision` compares numbers rounded to so many decimals.
    """

    def __init__(self, *, workers: int, timeout_s: float = 5.0) -> None:
        self._workers, self._timeout_s = workers, timeout_s
        self._pool: GradingPool | None = None

    def grade(self, responses: Sequence[Response]) -> list[Graded]:
        """Grade responses; an answer that several gave to one gold is asked about once."""
        answers = [read(response) for response in responses]
        pairs: dict[tuple[str, str], Verdict] = {}
        for answer, response in zip(answers, responses, strict=True):
            if answer is not None and response.item.kind == "math":
                pairs.setdefault(_pair(answer, response), "wrong")
        if pairs:
            self._pool = self._pool or GradingPool(workers=self._workers, timeout_s=self._timeout_s)
            grades = grade_pairs(list(pairs), pool=self._pool)
            pairs = {pair: grade.verdict for pair, grade in zip(pairs, grades, strict=True)}
        verdicts = MappingProxyType(pairs)
        return [
            _by_key(answer, response)
            if response.item.kind != "math"
            else graded(answer, _maths_verdict(answer, response, verdicts))
            for answer, response in zip(answers, responses, strict=True)
        ]

    def close(self) -> None:
        """Kill the workers."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


def _maths_verdict(
    answer: Answer | None, response: Response, verdicts: MappingProxyType[tuple[str, str], Verdict]
) -> Verdict:
    if answer is None:
        return "no_answer"
    verdict = verdicts[_pair(answer, response)]
    decimals = response.item.extra.get("precision")
    if verdict == "right" or decimals is None:
        return verdict
    values = [number(answer), number(canonical(response.item.answer or ""))]
    if None in values or not 0 <= float(decimals) <= 20:
        return verdict
    step = Decimal(1).scaleb(-int(decimals))
    rounded = [_EXACT.quantize(value, step) for value in values if value is not None]
    return "right" if rounded[0] == rounded[1] else verdict


def _pair(answer: Answer, response: Response) -> tuple[str, str]:
    return response.item.answer or "", unwrapped(answer.text)


def _by_key(answer: Answer | None, response: Response) -> Graded:
    item = response.item
    gold = canonical(item.answer or "", item.kind, choices=item.choices)
    is_right = answer is not None and gold is not None and answer.key == gold.key
    return graded(answer, "right" if is_right else "wrong")


def number(answer: Answer | None) -> Decimal | None:
    """The value of an answer that is a real number, to 60 digits; else None."""
    if answer is None:
        return None
    kind, _, body = answer.key.partition(":")
    if kind.partition("@")[0] not in ("number", "real"):
        return None
    above, _, below = body.partition("/")
    try:
        value = _EXACT.divide(Decimal(above), Decimal(below or 1))
    except InvalidOperation:  # a number too long for a key is kept as a digest
        return None
    return value if value.is_finite() else None


def _is_close(one: Decimal | None, other: Decimal | None, tolerance: Decimal) -> bool:
    assert one is not None and other is not None
    larger = max(one.copy_abs(), other.copy_abs())
    return _EXACT.subtract(one, other).copy_abs() <= _EXACT.multiply(tolerance, larger)
