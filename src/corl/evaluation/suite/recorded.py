"""What `corl eval` left on disk, read for further figures: no model is asked again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from corl.errors import CheckpointError
from corl.evaluation.suite.answering import Record

Recorded = Mapping[str, Mapping[str, Mapping[str, list[Record]]]]
"""Model -> benchmark -> row id -> its K sampled completions, in order."""


def read_recorded(root: Path) -> Recorded:
    """The sampled completions of an evaluation's directory.

    Raises CheckpointError where there is none, or for a line that no evaluation wrote.
    """
    found: dict[str, dict[str, dict[str, list[Record]]]] = {}
    for file in sorted(root.glob("*/*/samples.jsonl")):
        rows = found.setdefault(file.parent.parent.name, {}).setdefault(file.parent.name, {})
        for number, line in enumerate(file.open(encoding="utf-8", errors="surrogatepass"), start=1):
            try:
                record = Record.from_json(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise CheckpointError(
                    f"{file}, line {number}: no graded sample ({error})"
                ) from None
            rows.setdefault(record.id, []).append(record)
    if not found:
        raise CheckpointError(
            f"{root} holds no samples of an evaluation (MODEL/BENCHMARK/samples.jsonl); "
            "run `corl eval` with this --out first"
        )
    return found
