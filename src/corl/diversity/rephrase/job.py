"""The job: ask in rounds, check, journal, and write the file when every row is decided.

A round asks for every open row once. What is refused is asked for again in the next round, with
the reasons, until its tries are used up; then the row keeps its own words.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from corl.config import PromptsConfig
from corl.diversity.rephrase.audit import audit
from corl.diversity.rephrase.checks import faults
from corl.diversity.rephrase.instruction import VERSION, rewrite_of
from corl.diversity.rephrase.journal import Journal
from corl.diversity.rephrase.progress import RephraseProgress
from corl.diversity.rephrase.rewriter import Reply, RewriterSettings
from corl.diversity.rephrase.rows import Row, digest, read_rows, take_up
from corl.diversity.rephrase.solver import Solver, SolverSettings, Votes
from corl.errors import PromptError
from corl.launch.control import StopRequest
from corl.run.files import write_atomically

_LONGEST_REPLY = 200_000
"""Characters of a reply that the journal keeps."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job left."""

    file: Path
    """Written when every row is decided."""
    journal: Path
    audit: Path
    rows: int
    rewritten: int
    replies: int
    """Over all starts."""
    is_stopped: bool


def rephrase(
    prompts: PromptsConfig,
    to: Path,
    rewriter: RewriterSettings,
    *,
    tries: int = 3,
    solver: SolverSettings | None = None,
    require_all: bool = False,
    console: Console | None = None,
) -> Outcome:
    """Rewrite a prompt file, or go on with that.

    to: the JSON lines to write; journal and audit page stand beside it. tries: replies to a row.
    solver: whose votes must agree on both wordings. require_all: write nothing while a row lacks
    a rewrite. Ctrl-C stops with everything kept.
    Raises PromptError, CheckpointError, ModelError or EndpointError, with every reply kept.
    """
    rows = read_rows(prompts)
    journal_file = _checked(to, Path(prompts.file))
    header = {
        "corl": "rephrase",
        "instruction": VERSION,
        "rewriter": rewriter.name,
        "rows": len(rows),
        "prompts": digest(rows),
    }
    with Journal(journal_file, header) as journal:
        take_up(rows, journal.records, str(journal_file))
        job = _Job(rows, journal, rewriter, solver, tries, console or Console(quiet=True))
        try:
            is_stopped = not job.run()
        finally:
            page = to.with_name(f"{to.stem}.audit.md")
            write_atomically(page, audit(rows, rewriter=rewriter.name))
        kept = [row for row in rows if row.rewrite is None]
        if require_all and kept and not is_stopped:
            raise PromptError(
                f"{len(kept)} of {len(rows)} prompts have no rewrite, the first with id "
                f"{kept[0].prompt.id!r}; {page} says why. Raise --tries, or leave out --require-all"
            )
        if not is_stopped:
            lines = (json.dumps(row.output(prompts.field), ensure_ascii=False) for row in rows)
            write_atomically(to, "".join(line + "\n" for line in lines))
    return Outcome(
        file=to,
        journal=journal_file,
        audit=page,
        rows=len(rows),
        rewritten=len(rows) - len(kept),
        replies=sum(len(row.tries) for row in rows),
        is_stopped=is_stopped,
    )


class _Job:
    """Rows on their way to a decision."""

    def __init__(
        self,
        rows: Sequence[Row],
        journal: Journal,
        rewriter: RewriterSettings,
        solver: SolverSettings | None,
        tries: int,
        console: Console,
    ) -> None:
        self._rows, self._journal, self._tries = rows, journal, tries
        self._rewriter, self._solver = rewriter, solver
        self._opened_solver: Solver | None = None
        self._stop = StopRequest()
        self._progress = RephraseProgress(len(rows), self._num_decided(), console=console)

    def run(self) -> bool:
        """Decide all rows; False when Ctrl-C or SIGTERM came first. A second one ends at once."""
        with self._stop.listening(), self._progress:
            self._vote()
            if self._open_rows() and not self._is_stopped():
                self._ask_in_rounds()
        return not self._is_stopped()

    def _ask_in_rounds(self) -> None:
        has_answered = any(one["reply"] is not None for row in self._rows for one in row.tries)
        with closing(self._rewriter.open(has_answered=has_answered)) as rewriter:
            while (rows := self._open_rows()) and not self._is_stopped():
                for reply in rewriter.replies([row.ask() for row in rows], self._is_stopped):
                    self._take_reply(reply)
                self._vote()

    def _is_stopped(self) -> bool:
        return self._stop.requested

    def _open_rows(self) -> list[Row]:
        return [row for row in self._rows if row.is_open(self._tries)]

    def _take_reply(self, reply: Reply) -> None:
        row = self._rows[reply.ask.row]
        rewrite, reasons = _verdict(row, reply)
        self._record(
            row,
            {
                "row": row.place,
                "id": row.prompt.id,
                "try": reply.ask.number,
                "asked": reply.ask.text,
                "reply": None if reply.text is None else reply.text[:_LONGEST_REPLY],
                "rewrite": rewrite,
                "faults": reasons,
                "accepted": not reasons,
            },
        )

    def _vote(self) -> None:
        """Let the solver vote on what has passed the checks."""
        due = [row for row in self._rows if row.rewrite is not None and not row.is_voted]
        if self._solver is None or not due:
            return
        if self._opened_solver is None:
            self._opened_solver = self._solver.open()
        asked = [(row.place, row.prompt, row.rewrite or "") for row in due]
        for votes in self._opened_solver.votes(asked, self._is_stopped):
            row = self._rows[votes.row]
            self._record(row, _voted(row, votes))

    def _record(self, row: Row, record: dict[str, Any]) -> None:
        self._journal.append(record)
        row.take(record)
        rewritten = sum(row.rewrite is not None for row in self._rows)
        self._progress.show(self._num_decided(), f"{rewritten:,} rewritten")

    def _num_decided(self) -> int:
        return sum(
            not row.is_open(self._tries)
            and (row.rewrite is None or row.is_voted or self._solver is None)
            for row in self._rows
        )


def _verdict(row: Row, reply: Reply) -> tuple[str | None, list[str]]:
    """The wording of a reply, and every reason to refuse it."""
    if reply.text is None:
        return None, [f"unanswered: {reply.problem}"]
    rewrite = rewrite_of(reply.text)
    if reply.is_cut or rewrite.is_cut:
        limit = "at its length limit" if reply.is_cut else "before its end"
        return rewrite.text[:_LONGEST_REPLY], [f"cut off: the reply stopped {limit}"]
    found = faults(row.prompt.text, rewrite.text, kind=row.prompt.kind)
    return rewrite.text[:_LONGEST_REPLY], [str(one) for one in found]


def _voted(row: Row, votes: Votes) -> dict[str, Any]:
    reasons = []
    if not votes.agree:
        reasons = [f"votes: {votes.original} on the original, {votes.rewritten} on the rewrite"]
    return {
        "row": row.place,
        "id": row.prompt.id,
        "try": len(row.tries),
        "votes": {"original": votes.original, "rewritten": votes.rewritten},
        "faults": reasons,
        "accepted": not reasons,
    }


def _checked(to: Path, prompts: Path) -> Path:
    """The journal's place. Raises PromptError for a file that must not be written."""
    if to.suffix != ".jsonl":
        raise PromptError(f"--to {to} is written as JSON lines; name it {to.stem}.jsonl")
    journal = to.with_name(f"{to.stem}.journal.jsonl")
    if prompts.resolve() in (to.resolve(), journal.resolve()):
        raise PromptError(f"--to {to} would overwrite the prompts; give another name")
    if to.exists() and not journal.exists():
        raise PromptError(
            f"{to} exists, and no journal of its making stands beside it; give another --to"
        )
    return journal
