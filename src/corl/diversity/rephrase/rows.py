"""Prompt rows with all their fields, and how far each one is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from corl.config import PromptsConfig
from corl.data.prompts import PromptRow, load_prompts
from corl.diversity.rephrase.quantities import MAX_CHARACTERS
from corl.diversity.rephrase.rewriter import Ask
from corl.errors import CheckpointError, PromptError
from corl.evaluation.benchmarks.records import read_records

Record = dict[str, Any]


@dataclass(slots=True)
class Row:
    """One prompt, what was tried and what came of it."""

    place: int
    prompt: PromptRow
    record: Record
    """All its fields."""
    tries: list[Record] = field(default_factory=list)
    """Journal records of its replies, in order."""
    rewrite: str | None = None
    """The accepted wording so far."""
    is_voted: bool = False
    """Whether the solver has voted on that wording."""

    @property
    def is_too_long(self) -> bool:
        """Whether the prompt is beyond what is checked, so that it is not asked for."""
        return len(self.prompt.text) > MAX_CHARACTERS

    def reasons(self) -> list[str]:
        """Why the last wording was refused."""
        if self.is_too_long:
            return [f"the prompt has more than {MAX_CHARACTERS} characters"]
        return list(self.tries[-1]["faults"]) if self.tries else []

    def is_open(self, most_tries: int) -> bool:
        """Whether it needs another rewrite."""
        return self.rewrite is None and len(self.tries) < most_tries and not self.is_too_long

    def ask(self) -> Ask:
        """Its next try."""
        was_said = bool(self.tries) and self.tries[-1]["rewrite"] is not None
        return Ask(
            self.place,
            len(self.tries) + 1,
            self.prompt.text,
            tuple(self.reasons()) if was_said else (),
        )

    def take(self, record: Record) -> None:
        """Take up a journal record of a reply, or of votes."""
        if "votes" in record:
            self.is_voted = True
            if not record["accepted"]:
                self.rewrite = None
                self.tries[-1]["faults"] = record["faults"]
            return
        self.tries.append(dict(record))
        self.rewrite = record["rewrite"] if record["accepted"] else None
        self.is_voted = False

    def output(self, prompt_field: str) -> Record:
        """The row of the output file; a row without a rewrite keeps its wording."""
        text = self.prompt.text if self.rewrite is None else self.rewrite
        return {**self.record, prompt_field: text, "rephrased": self.rewrite is not None}


def read_rows(config: PromptsConfig) -> list[Row]:
    """The rows of a prompt file. Raises PromptError for what is no prompt file here."""
    path = Path(config.file)
    if not path.is_file():
        raise PromptError(f"prompt file {path} does not exist")
    prompts = load_prompts(config).rows
    records = list(islice(read_records(path), len(prompts)))
    for record in records:
        try:
            json.dumps(record)
        except (TypeError, ValueError) as error:
            raise PromptError(f"prompt file {path} holds what JSON cannot say: {error}") from None
    return [
        Row(place, prompt, record)
        for place, (prompt, record) in enumerate(zip(prompts, records, strict=True))
    ]


def digest(rows: Sequence[Row]) -> str:
    """Identity of ids, order and wordings; labels are no part of it."""
    listed = [[row.prompt.id, row.prompt.text] for row in rows]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def take_up(rows: Sequence[Row], records: Sequence[Mapping[str, Any]], where: str) -> None:
    """Put journal records back into their rows. Raises CheckpointError for what fits none."""
    for number, record in enumerate(records, start=2):
        try:
            place = record["row"]
            if not 0 <= place < len(rows):
                raise IndexError(place)
            rows[place].take(dict(record))
        except (KeyError, IndexError, TypeError) as error:
            raise CheckpointError(
                f"journal {where}, line {number}: fits no row ({error})"
            ) from None
