"""Graded samples on disk, written a chunk of rows at a time so that a killed job goes on.

A chunk is a fixed span of rows: it is sampled as one batch, graded, and appended whole. After a
crash the file is cut back to its last whole chunk; the rest is sampled again with the same draws in
the same batches, so that the finished file has the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from corl.errors import CheckpointError
from corl.evaluation.benchmarks import Item
from corl.evaluation.suite.answering import Record
from corl.run.files import write_atomically

BATCHES_PER_CHUNK = 2
"""Within a chunk rows are batched by length; more batches waste less and lose more in a crash."""


class SampleFile:
    """`samples.jsonl` and `settings.json` of one model on one benchmark."""

    def __init__(
        self, folder: Path, items: Sequence[Item], *, samples: int, rows_per_chunk: int
    ) -> None:
        """samples: completions of every item."""
        self.path, self._settings = folder / "samples.jsonl", folder / "settings.json"
        self._items, self._samples, self._rows = items, samples, rows_per_chunk
        self.done_rows = 0
        """Rows whose completions are all on disk, a whole number of chunks."""

    def open(self, settings: dict[str, Any]) -> None:
        """Find what is done. Raises CheckpointError where other settings made it.

        settings: plain JSON of everything that the samples depend on.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._settings.exists():
                self._require_same(settings)
            elif self.path.exists():
                raise CheckpointError(
                    f"{self.path} stands without its settings.json; give another --out"
                )
            else:
                write_atomically(self._settings, json.dumps(settings, indent=1, sort_keys=True))
            self._cut_to_whole_chunks()
        except OSError as error:
            raise CheckpointError(f"{self.path.parent} cannot be written: {error}") from None

    def chunks(self) -> Iterator[Sequence[Item]]:
        """Items of each chunk that is not on disk yet."""
        for start in range(self.done_rows, len(self._items), self._rows):
            yield self._items[start : start + self._rows]

    def append(self, records: Sequence[Record]) -> None:
        """Write one chunk; once this returns, no crash loses it."""
        lines = "".join(
            json.dumps(record.to_json(), ensure_ascii=False) + "\n" for record in records
        )
        with self.path.open("ab") as stream:
            stream.write(lines.encode("utf-8", "surrogatepass"))
            stream.flush()
            os.fsync(stream.fileno())
        self.done_rows = min(self.done_rows + self._rows, len(self._items))

    def read(self) -> list[Record]:
        """Every record. Raises CheckpointError for a line that no evaluation wrote."""
        try:
            text = self.path.read_text("utf-8", "surrogatepass")
            return [Record.from_json(json.loads(line)) for line in text.split("\n") if line]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{self.path} cannot be read: {error}") from None

    def _require_same(self, settings: dict[str, Any]) -> None:
        try:
            older = json.loads(self._settings.read_text())
        except ValueError as error:
            raise CheckpointError(f"{self._settings} is damaged: {error}") from None
        ours = json.loads(json.dumps(settings))
        differing = [
            f"{key} {older.get(key)!r} -> {ours.get(key)!r}"[:120]
            for key in sorted({*ours, *older})
            if ours.get(key) != older.get(key)
        ]
        if differing:
            raise CheckpointError(
                f"{self.path.parent} was made otherwise ({'; '.join(differing)}); give another "
                "--out, or remove it"
            )

    def _cut_to_whole_chunks(self) -> None:
        expected = [(item.id, k) for item in self._items for k in range(self._samples)]
        done_lines, whole_bytes, num_bytes = 0, 0, 0
        if self.path.exists():
            with self.path.open("rb") as stream:
                for line in stream:
                    if not line.endswith(b"\n") or done_lines == len(expected):
                        break
                    self._require_place(line, done_lines, expected[done_lines])
                    done_lines += 1
                    num_bytes += len(line)
                    if self._is_chunk_end(done_lines):
                        whole_bytes, self.done_rows = num_bytes, done_lines // self._samples
            os.truncate(self.path, whole_bytes)

    def _is_chunk_end(self, lines: int) -> bool:
        rows, within = divmod(lines, self._samples)
        return within == 0 and (rows % self._rows == 0 or rows == len(self._items))

    def _require_place(self, line: bytes, number: int, expected: tuple[str, int]) -> None:
        try:
            record = Record.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{self.path}, line {number + 1}: {error!r}") from None
        if (record.id, record.sample) != expected:
            raise CheckpointError(
                f"{self.path}, line {number + 1}: sample {record.sample} of row {record.id!r}, "
                f"where {expected[1]} of {expected[0]!r} belongs; give another --out"
            )


def rows_per_chunk(samples: int, batch_rows: int) -> int:
    """Rows of one chunk: about two batches of completions."""
    return max(1, BATCHES_PER_CHUNK * batch_rows // max(samples, 1))
