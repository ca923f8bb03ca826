"""One sampling pass of one model, saved as it goes: a second probe costs nothing.

`completions.jsonl` is written a chunk of rows at a time beside `settings.json`, which says all that
it depends on. What a killed pass had written is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corl.data.prompts import PromptRow
from corl.diversity.sources import SETTINGS, Asked
from corl.errors import CheckpointError, PromptError
from corl.evaluation.completions import Asking, complete
from corl.evaluation.samples import Sample, grouped, read_samples
from corl.evaluation.suite.chunks import rows_per_chunk
from corl.evaluation.suite.subjects import fingerprint
from corl.rollout.noise import stream_seed
from corl.run.files import write_atomically

if TYPE_CHECKING:
    from corl.policy import Policy

FORMAT = 1
"""Version of the files that a probe writes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """One model asked all rows with one seed."""

    source: Asked
    take: int
    """0, and 1, 2, ... for the same model's further seeds."""
    samples: int
    asking: Asking

    def folder(self, out: Path) -> Path:
        """Where its completions lie."""
        own = out / "completions" / self.source.name
        return own if self.take == 0 else own / f"seed-{self.take}"

    def seed(self) -> int:
        """Of its sampling noise.

        No two models or takes share it: with equal draws two models would err alike more often
        than they do, and one model against itself would differ nowhere.
        """
        return stream_seed(
            self.take, f"{self.source.name}\0{fingerprint(self.source.subject.source)}"
        )

    def settings(self, rows: Sequence[PromptRow]) -> dict[str, Any]:
        """All that its completions depend on, and the model's name."""
        digest = hashlib.sha256()
        for row in rows:
            digest.update(json.dumps([row.id, row.text]).encode())
        return {
            "format": FORMAT,
            "model": self.source.model,
            "weights": fingerprint(self.source.subject.source),
            "asked": self.source.subject.asked(),
            "temperature": self.asking.temperature,
            "max_tokens": self.asking.max_tokens,
            "samples": self.samples,
            "take": self.take,
            "rows": len(rows),
            "prompts": digest.hexdigest(),
        }


class CompletionFile:
    """`completions.jsonl` and `settings.json` of one pass."""

    def __init__(self, one: Pass, rows: Sequence[PromptRow], out: Path) -> None:
        self._pass, self._rows = one, rows
        self._folder = one.folder(out)
        self._path = self._folder / "completions.jsonl"

    def open(self) -> list[list[Sample]]:
        """The samples of the first rows, as many as a former start finished.

        Raises CheckpointError where other settings made them.
        """
        settings_file = self._folder / SETTINGS
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._path.exists():
                self._require_same(settings_file)
            write_atomically(
                settings_file, json.dumps(self._pass.settings(self._rows), indent=1) + "\n"
            )
            done = self._done() if self._path.exists() else []
            write_atomically(self._path, _lines(done))
        except OSError as error:
            raise CheckpointError(f"{self._folder} cannot be written: {error}") from None
        return done

    def append(self, groups: Sequence[Sequence[Sample]]) -> None:
        """Write one chunk; once this returns, no crash loses it."""
        with self._path.open("ab") as stream:
            stream.write(_lines(groups))
            stream.flush()
            os.fsync(stream.fileno())

    def _done(self) -> list[list[Sample]]:
        if self._path.stat().st_size == 0:
            return []
        try:
            groups = grouped(read_samples(self._path))
        except PromptError as error:
            raise CheckpointError(f"{error}; give another --out, or remove it") from None
        done = []
        for row in self._rows:
            group = groups.get(row.id, [])
            if [one.sample for one in group] != list(range(self._pass.samples)):
                break
            done.append(group)
        return done

    def _require_same(self, settings_file: Path) -> None:
        try:
            older = json.loads(settings_file.read_text())
        except (OSError, ValueError, RecursionError):
            older = None
        if not isinstance(older, dict):
            raise CheckpointError(
                f"{self._path} stands without a whole {SETTINGS}; give another --out, or remove it"
            )
        ours = json.loads(json.dumps(self._pass.settings(self._rows)))
        # The same weights may be named by another path.
        differing = [
            f"{key} {older.get(key)!r} -> {ours.get(key)!r}"[:120]
            for key in sorted({*ours, *older} - {"model"})
            if ours.get(key) != older.get(key)
        ]
        if differing:
            raise CheckpointError(
                f"{self._folder} was made otherwise ({'; '.join(differing)}); give another --out, "
                "or remove it"
            )


def draw(
    one: Pass,
    rows: Sequence[PromptRow],
    out: Path,
    *,
    load: Callable[[], Policy],
    advance: Callable[[int, bool], None],
) -> list[list[Sample]]:
    """[P][S] completions, from disk as far as they stand there.

    load: the model, called only where something is left to sample. advance: told of completions,
    and whether they were made now.
    """
    file = CompletionFile(one, rows, out)
    groups = file.open()
    advance(len(groups) * one.samples, False)
    if len(groups) == len(rows):
        return groups
    policy = load()
    step = rows_per_chunk(one.samples, one.asking.max_rows)
    for start in range(len(groups), len(rows), step):
        chunk = rows[start : start + step]
        drawn = complete(
            policy,
            chunk,
            one.asking,
            completions=one.samples,
            seed=one.seed(),
            places=range(start, start + len(chunk)),
        )
        made = [
            [Sample(row.id, number, said.text, said.truncated) for number, said in enumerate(group)]
            for row, group in zip(chunk, drawn, strict=True)
        ]
        file.append(made)
        groups += made
        advance(len(chunk) * one.samples, True)
    return groups


def _lines(groups: Sequence[Sequence[Sample]]) -> bytes:
    text = "".join(
        json.dumps(one.to_json(), ensure_ascii=False) + "\n" for group in groups for one in group
    )
    return text.encode("utf-8", "backslashreplace")
