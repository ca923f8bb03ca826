"""Metrics on their way to `metrics.jsonl`.

Each agent appends to a journal of its own, wherever it runs. One owner, the
launcher, assembles them: a step is written to `metrics.jsonl` once every agent
has it, in agent order, so the file is the same under every launcher. After a
crash the journals are cut back to the checkpoint and the file made again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corl.run.directory import RunDirectory
from corl.run.files import write_atomically

Record = dict[str, Any]


class Journal:
    """One agent's metrics, one line a step."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def folder(self) -> Path:
        """The agent's folder."""
        return self._path.parent

    def append(self, record: Record) -> None:
        """Write one step's metrics. Keys that depend on the clock go under `time`."""
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    def cut_after(self, step: int) -> None:
        """Drop all that was written behind a step, and a last line cut short."""
        if not self._path.exists():
            return
        kept = [record for record in read_records(self._path) if record["step"] <= step]
        write_atomically(self._path, "".join(json.dumps(record) + "\n" for record in kept))


class MetricsAssembler:
    """Makes `metrics.jsonl` of the agents' journals, as they grow."""

    def __init__(self, run: RunDirectory, names: Sequence[str]) -> None:
        self._run = run
        self._names = names
        self._offsets = dict.fromkeys(names, 0)
        self._waiting: dict[int, dict[str, Record]] = {}
        write_atomically(run.metrics, "")

    def collect(self) -> list[Record]:
        """Take up what is new; return the records of the steps it completed, in order."""
        for name in self._names:
            for record in self._new_records(name):
                self._waiting.setdefault(record["step"], {})[name] = record
        complete = sorted(
            step for step, records in self._waiting.items() if len(records) == len(self._names)
        )
        done = [self._waiting[step][name] for step in complete for name in self._names]
        for step in complete:
            del self._waiting[step]
        if done:
            with self._run.metrics.open("a", encoding="utf-8") as stream:
                stream.write("".join(json.dumps(record) + "\n" for record in done))
        return done

    def _new_records(self, name: str) -> list[Record]:
        try:
            with self._run.journal(name).open("rb") as stream:
                stream.seek(self._offsets[name])
                content = stream.read()
        except FileNotFoundError:
            return []
        whole, _, _ = content.rpartition(b"\n")
        if not whole:
            return []
        self._offsets[name] += len(whole) + 1
        return [json.loads(line) for line in whole.splitlines()]


def read_records(path: Path) -> list[Record]:
    """The whole lines of a metrics file; a last line cut short by a crash is left out."""
    if not path.exists():
        return []
    content = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in content.splitlines(keepends=True) if line.endswith("\n")]
