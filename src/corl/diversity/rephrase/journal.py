"""Every reply and its verdict on disk before the next step: what was paid for is paid once."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from corl.errors import CheckpointError

_LONGEST_LINE = 32 * 2**20

Record = dict[str, Any]


class Journal:
    """JSON lines, the first of which says whose they are. One job at a time holds it.

    Every line is on the disk when `append` returns. A last line that a kill cut short is dropped.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Open, or continue, the journal of the job that `header` describes.

        Raises CheckpointError where another job holds it, where it belongs to another one, and for
        a line that is none.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("a+b")
        except OSError as error:
            raise CheckpointError(f"journal {path} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.records = self._read(dict(header))
        except BlockingIOError:
            self._stream.close()
            raise CheckpointError(
                f"another `corl rephrase` is writing {path}; wait for it, or give another --to"
            ) from None
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one line through to the disk."""
        self._stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _read(self, header: Record) -> list[Record]:
        self._stream.seek(0)
        records: list[Record] = []
        end = 0
        while line := self._stream.readline(_LONGEST_LINE):
            if not line.endswith(b"\n"):
                break
            end += len(line)
            records.append(self._parsed(line, len(records) + 1))
        self._stream.truncate(end)
        if not records:
            self.append(header)
            return []
        self._refuse_another(records[0], header)
        return records[1:]

    def _parsed(self, line: bytes, number: int) -> Record:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise CheckpointError(f"journal {self.path}, line {number}: not a record of `corl`")
        return record

    def _refuse_another(self, found: Record, header: Record) -> None:
        for key, wanted in header.items():
            if found.get(key) != wanted:
                raise CheckpointError(
                    f"journal {self.path} was made with {key} {found.get(key)!r}, and this job has "
                    f"{wanted!r}; go on as before, or give another --to"
                )
