"""What each model of a probe answered, read from its completions by the rows' own answer kinds.

Shapes: P problems, S samples a problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from corl.data.prompts import PromptRow
from corl.data.reading import read_completion
from corl.diversity.counts import Tally
from corl.evaluation.samples import Sample

Key = str | None
"""What equal answers share; None where no answer was stated."""


@dataclass(frozen=True, slots=True)
class Answers:
    """One model's answers to all problems, from one pass with one seed."""

    name: str
    model: str
    """Directory or hub id, as a recipe names it."""
    keys: tuple[tuple[Key, ...], ...]
    """[P][S]"""

    @property
    def samples(self) -> int:
        """Samples of each problem."""
        return len(self.keys[0])

    @property
    def no_answer(self) -> float:
        """Share of all samples that state no answer."""
        keys = [key for group in self.keys for key in group]
        return keys.count(None) / len(keys)

    def right(self, labels: Sequence[Key]) -> list[list[bool]]:
        """[P][S]: the answer's key equals the label's, as votes are compared."""
        return [
            [key is not None and key == label for key in group]
            for group, label in zip(self.keys, labels, strict=True)
        ]

    def tallies(self) -> list[Tally]:
        """[P]"""
        return [
            Tally(Counter(key for key in group if key is not None), len(group))
            for group in self.keys
        ]


def read_answers(
    name: str, model: str, rows: Sequence[PromptRow], groups: Sequence[Sequence[Sample]]
) -> Answers:
    """Read [P][S] completions; code is run in the sandbox."""
    keys = []
    for row, group in zip(rows, groups, strict=True):
        said = [read_completion(one.completion, row, truncated=one.truncated) for one in group]
        keys.append(tuple(None if answer is None else answer.key for answer in said))
    return Answers(name, model, tuple(keys))


def together(passes: Sequence[Answers]) -> Answers:
    """One model's passes as one, with all their samples."""
    first = passes[0]
    problems = zip(*(one.keys for one in passes), strict=True)
    return Answers(
        first.name,
        first.model,
        tuple(tuple(key for group in one for key in group) for one in problems),
    )
