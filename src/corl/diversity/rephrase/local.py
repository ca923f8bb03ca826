"""A rewriter that is a checkpoint here, sampled by the engine that training uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from corl.data.prompts import PromptRow
from corl.diversity.rephrase.instruction import SYSTEM, user_message
from corl.diversity.rephrase.rewriter import Ask, Reply
from corl.errors import PromptError

_STRIDE = 1_000_003
"""Between the seeds of a row's tries."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalSettings:
    """How a local checkpoint is asked."""

    model: Path
    temperature: float = 0.7
    max_tokens: int = 2048
    seed: int = 0
    batch: int = 16
    """Prompts sampled at once; a kill loses at most these."""

    @property
    def name(self) -> str:
        return (
            f"{self.model.resolve().name}, temperature {self.temperature:g}, "
            f"{self.max_tokens} tokens, seed {self.seed}"
        )

    def open(self, *, has_answered: bool) -> LocalModel:
        return LocalModel(self)


class LocalModel:
    """Asks a checkpoint."""

    def __init__(self, settings: LocalSettings) -> None:
        from corl.policy import load_policy

        self._settings = settings
        self._policy = load_policy(settings.model)

    def close(self) -> None:
        pass

    def replies(self, asks: Sequence[Ask], is_stopped: Callable[[], bool]) -> Iterator[Reply]:
        """Replies batch by batch; a stop comes between two.

        A draw depends on the seed, the row and its try alone.
        """
        numbers = sorted({ask.number for ask in asks})
        for number in numbers:
            due = [ask for ask in asks if ask.number == number]
            for start in range(0, len(due), self._settings.batch):
                if is_stopped():
                    return
                yield from self._batch(due[start : start + self._settings.batch])

    def _batch(self, asks: Sequence[Ask]) -> list[Reply]:
        from corl.evaluation.completions import Asking, complete

        settings = self._settings
        asking = Asking(
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            system_prompt=SYSTEM,
        )
        rows = [
            PromptRow(str(ask.row), user_message(ask.text, ask.refused), "text") for ask in asks
        ]
        try:
            said = complete(
                self._policy,
                rows,
                asking,
                completions=1,
                seed=settings.seed + _STRIDE * (asks[0].number - 1),
                places=[ask.row for ask in asks],
            )
        except PromptError as error:  # one prompt of the batch leaves no room in the context
            if len(asks) == 1:
                return [Reply(asks[0], None, problem=str(error))]
            return [reply for ask in asks for reply in self._batch([ask])]
        return [
            Reply(ask, one.text, is_cut=one.truncated)
            for ask, (one,) in zip(asks, said, strict=True)
        ]
