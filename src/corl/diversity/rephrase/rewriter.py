"""What every rewriter takes and gives: an endpoint or a local checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Ask:
    """One prompt to rewrite."""

    row: int
    """Place in the prompt file, from 0."""
    number: int
    """Which try of this row it is, from 1."""
    text: str
    """The original wording."""
    refused: tuple[str, ...] = ()
    """What was wrong with the row's last rewrite."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for it."""

    ask: Ask
    text: str | None
    """The reply as it was said; None where there was none."""
    is_cut: bool = False
    """A length limit cut it."""
    problem: str | None = None
    """Why there is no text."""


class Rewriter(Protocol):
    """Rewrites prompts, in any order."""

    def replies(self, asks: Sequence[Ask], is_stopped: Callable[[], bool]) -> Iterator[Reply]:
        """One reply per ask, as they come; after a stop only what is under way.

        Raises CorlError where going on makes no sense.
        """
        ...

    def close(self) -> None:
        """Let connections and memory go."""
        ...


class RewriterSettings(Protocol):
    """What a rewriter is made of."""

    @property
    def name(self) -> str:
        """Model and sampling: a journal is continued by the same one only. Holds no secret."""
        ...

    def open(self, *, has_answered: bool) -> Rewriter:
        """Make it. has_answered: an earlier start got answers from it."""
        ...
