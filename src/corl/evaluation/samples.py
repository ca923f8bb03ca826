"""Completions on disk: one JSON object a line, one line a sample.

`{"id": "17", "sample": 0, "completion": "...", "truncated": false}`, and whatever else the writer
adds. `corl eval` and `corl kappa` write such files and read each other's.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corl.errors import PromptError

_LONGEST_LINE = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion of one row."""

    id: str
    """The row's id in its data set."""
    sample: int
    """Which of the row's completions, from 0."""
    completion: str
    truncated: bool = False
    """A length limit cut it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "sample": self.sample,
            "completion": self.completion,
            "truncated": self.truncated,
        }


def read_samples(path: Path) -> list[Sample]:
    """The samples of a file, or of all `*.jsonl` in a directory, in order of name and line.

    A last line that a crash cut short is left out. Raises PromptError naming file and line for
    anything else that is no sample, for a sample that stands twice, and where there is none.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    samples: dict[tuple[str, int], Sample] = {}
    for file in files:
        for number, record in _records(file):
            one = _sample(record, f"{file}, line {number}")
            if (one.id, one.sample) in samples:
                raise PromptError(
                    f"{file}, line {number}: sample {one.sample} of row {one.id!r} stands twice"
                )
            samples[one.id, one.sample] = one
    if not samples:
        raise PromptError(f"{path} holds no completions; expected JSON lines in *.jsonl")
    return list(samples.values())


def aligned_samples(
    path: Path, ids: Sequence[str], *, samples: int | None = None, limited: bool = False
) -> list[list[Sample]]:
    """[P][K] samples of saved completions in the order of `ids`, K the same for all.

    samples: how many of each row, the first ones; None takes all. limited: completions of other
    rows are left out, and an error otherwise.
    Raises PromptError naming a row without completions, or with another number of them.
    """
    if not path.exists():
        raise PromptError(f"completions {path} do not exist")
    groups = grouped(read_samples(path))
    known = set(ids)
    unknown = [row for row in groups if row not in known]
    if unknown and not limited:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"; nearest: {near[0]!r}" if near else ""
        raise PromptError(
            f"{path}: {len(unknown)} rows are none of the {len(ids)} problems, the first is "
            f"{unknown[0]!r}{hint}"
        )
    missing = [row for row in ids if row not in groups]
    if missing:
        raise PromptError(
            f"{path}: {len(missing)} of {len(ids)} problems have no completion, the first is "
            f"{missing[0]!r}; its ids are like {next(iter(groups))!r}"
        )
    wanted = len(groups[ids[0]]) if samples is None else samples
    for row in ids:
        numbers = [one.sample for one in groups[row]]
        is_whole = numbers[:wanted] == list(range(wanted))
        if not is_whole or (samples is None and len(numbers) != wanted):
            raise PromptError(
                f"{path}: problem {row!r} has samples {numbers[:8]}, where 0 to {wanted - 1} "
                "are needed; every problem needs the same number (--samples takes the first ones)"
            )
    return [groups[row][:wanted] for row in ids]


def grouped(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """Samples by row id, in order of their numbers."""
    groups: dict[str, list[Sample]] = {}
    for one in samples:
        groups.setdefault(one.id, []).append(one)
    return {row: sorted(group, key=lambda one: one.sample) for row, group in groups.items()}


def _records(file: Path) -> Iterator[tuple[int, Any]]:
    try:
        with file.open("rb") as stream:
            number = 0
            while line := stream.readline(_LONGEST_LINE + 1):
                number += 1
                if len(line) > _LONGEST_LINE:
                    raise PromptError(f"{file}, line {number}: longer than {_LONGEST_LINE} bytes")
                if not line.strip():
                    continue
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    if not line.endswith(b"\n"):
                        return
                    raise PromptError(f"{file}, line {number}: not JSON ({error})") from None
    except OSError as error:
        raise PromptError(f"{file} cannot be read: {error}") from None


def _sample(record: Any, where: str) -> Sample:
    if not isinstance(record, Mapping):
        raise PromptError(f"{where}: is {type(record).__name__}, not an object of fields")
    row, number, text = record.get("id"), record.get("sample", 0), record.get("completion")
    cut = record.get("truncated", False)
    if not isinstance(row, str | int) or isinstance(row, bool):
        raise PromptError(f"{where}: `id` must be the row's id; fields seen: {', '.join(record)}")
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise PromptError(f"{where}: `sample` must be 0, 1, ..., and is {number!r}")
    if not isinstance(text, str):
        raise PromptError(f"{where}: `completion` must be a text, and is {type(text).__name__}")
    if not isinstance(cut, bool):
        raise PromptError(f"{where}: `truncated` must be true or false, and is {cut!r}")
    return Sample(str(row), number, text, cut)
