"""One row of a benchmark, ready to be asked and graded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from corl.data.images import ImageRef
from corl.data.prompts import PromptRow


@dataclass(frozen=True, slots=True)
class Item:
    """A problem, its two wordings and what its grader needs."""

    id: str
    problem: str
    """The prompt field as it stands in the data."""
    prompt: str
    """The user's turn of a model with a chat template."""
    plain: str
    """The text that a model without one continues."""
    kind: str
    """math, choice, text or code: how a completion is read."""
    answer: str | None = None
    """The gold: bare text, or the letter of a choice. None for code."""
    choices: tuple[str, ...] | None = None
    """Option texts in letter order."""
    place: int = 0
    """Index of the row in its data set; sampling noise depends on it."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What the grader needs beside: tests, entry point, precision."""
    images: tuple[ImageRef, ...] = ()
    """What the problem shows; not opened yet."""

    def row(self, *, chat: bool) -> PromptRow:
        """The row to ask, in the wording for a chat model or a plain one."""
        return PromptRow(
            id=self.id,
            text=self.prompt if chat else self.plain,
            kind=self.kind,
            label=self.answer,
            choices=self.choices,
            images=self.images,
        )
