"""Do a solver's votes agree on both wordings? What no reading of the wording can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from corl.answers import majority
from corl.data.prompts import PromptRow
from corl.data.reading import read_completion

SUFFIX = " Please reason step by step, and put your final answer within \\boxed{}."


@dataclass(frozen=True, kw_only=True, slots=True)
class SolverSettings:
    """How the solver is asked."""

    model: Path
    votes: int = 8
    """Completions of each wording."""
    max_tokens: int = 1024
    temperature: float = 1.0
    suffix: str = SUFFIX
    seed: int = 0
    batch: int = 8
    """Rows at once."""

    def open(self) -> Solver:
        return Solver(self)


@dataclass(frozen=True, slots=True)
class Votes:
    """The votes on both wordings of one row, as answer keys; None where there is no vote."""

    row: int
    original: str | None
    rewritten: str | None

    @property
    def agree(self) -> bool:
        """False only where both wordings have a vote, and not the same."""
        return None in (self.original, self.rewritten) or self.original == self.rewritten


class Solver:
    """A checkpoint that votes on wordings."""

    def __init__(self, settings: SolverSettings) -> None:
        from corl.policy import load_policy

        self._settings = settings
        self._policy = load_policy(settings.model)
        self._originals: dict[int, str | None] = {}

    def votes(
        self, rows: Sequence[tuple[int, PromptRow, str]], is_stopped: Callable[[], bool]
    ) -> Iterator[Votes]:
        """Votes of (place, original row, rewritten text), batch by batch; a stop comes between."""
        for start in range(0, len(rows), self._settings.batch):
            if is_stopped():
                return
            some = rows[start : start + self._settings.batch]
            new = [(place, row) for place, row, _ in some if place not in self._originals]
            self._originals.update(self._voted(new))
            after = self._voted([(place, replace(row, text=text)) for place, row, text in some])
            for place, _, _ in some:
                yield Votes(place, self._originals[place], after[place])

    def _voted(self, rows: Sequence[tuple[int, PromptRow]]) -> dict[int, str | None]:
        from corl.evaluation.completions import Asking, complete

        if not rows:
            return {}
        settings = self._settings
        said = complete(
            self._policy,
            [replace(row, text=row.text + settings.suffix) for _, row in rows],
            Asking(max_tokens=settings.max_tokens, temperature=settings.temperature),
            completions=settings.votes,
            seed=settings.seed,
            places=[place for place, _ in rows],
        )
        votes = {}
        for (place, row), group in zip(rows, said, strict=True):
            vote = majority(
                [read_completion(one.text, row, truncated=one.truncated) for one in group]
            )
            votes[place] = None if vote is None else vote.answer.key
        return votes
