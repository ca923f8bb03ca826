"""What a grader takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from corl.answers import Answer, read_answer
from corl.evaluation.benchmarks.items import Item

Verdict = Literal["right", "wrong", "no_answer", "timeout", "error"]
VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "no_answer", "timeout", "error")


@dataclass(frozen=True, slots=True)
class Response:
    """One completion and the item that it answers."""

    item: Item
    text: str
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Graded:
    """What one completion says, and whether that is right."""

    answer: str | None
    """The answer as written; None where it states none, and for code."""
    key: str | None
    """What equal answers share, for majorities; None where there is no answer, and for code."""
    verdict: Verdict

    @property
    def right(self) -> bool:
        """Whether it counts: a time-out or an error of the grader does not."""
        return self.verdict == "right"


class Grader(Protocol):
    """Grades completions in bulk."""

    def grade(self, responses: Sequence[Response]) -> list[Graded]:
        """One result a response, in order; no completion raises."""
        ...

    def close(self) -> None:
        """End workers."""
        ...


def read(response: Response) -> Answer | None:
    """The answer of a completion, by its item's kind; None abstains."""
    item = response.item
    return read_answer(response.text, item.kind, choices=item.choices, truncated=response.truncated)


def graded(answer: Answer | None, verdict: Verdict) -> Graded:
    """The result for an answer that was read, or for none."""
    if answer is None:
        return Graded(None, None, "no_answer")
    return Graded(answer.text, answer.key, verdict)
