"""What a study leaves on disk.

STUDY/study.yaml       the resolved study
STUDY/results.json     {"rows": [...]}, one row a cell, written whole after every cell
STUDY/selection.json   {"rows": [...], "summary": [...]}: checkpoints chosen without labels
STUDY/cells/NAME/      an ordinary run, with `evaluations.jsonl` beside its metrics
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corl.errors import CheckpointError
from corl.run.files import write_atomically
from corl.run.journal import read_records
from corl.study.picks import summarise_picks

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StudyFiles:
    """Paths of one study, and the only hands that write them."""

    root: Path

    @property
    def results(self) -> Path:
        """One row a cell."""
        return self.root / "results.json"

    @property
    def selection(self) -> Path:
        """What the label-free pick chose in every cell."""
        return self.root / "selection.json"

    def cell(self, name: str) -> Path:
        """The run directory of a cell."""
        return self.root / "cells" / name

    def open(self, study_yaml: str) -> None:
        """Make the directory and write the study. Raises CheckpointError where that fails."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            write_atomically(self.root / "study.yaml", study_yaml)
        except OSError as error:
            raise CheckpointError(
                f"study directory {self.root} cannot be written: {error.strerror}; "
                "give another --out"
            ) from None

    def rows(self) -> list[Row]:
        """Rows of an earlier start; none where there was none."""
        return _read_rows(self.results)

    def pick_rows(self) -> list[Row]:
        """Rows of `selection.json`; none where there is none."""
        return _read_rows(self.selection)

    def pick_summary(self) -> list[Row]:
        """The summary of `selection.json`; empty where no checkpoint was measured."""
        return summarise_picks(self.pick_rows())

    def write_rows(self, rows: Sequence[Row]) -> None:
        """Replace `results.json`."""
        write_atomically(self.results, json.dumps({"rows": list(rows)}, indent=1) + "\n")

    def write_picks(self, rows: Sequence[Row]) -> None:
        """Replace `selection.json`, its summary made anew."""
        content = {"rows": list(rows), "summary": summarise_picks(rows)}
        write_atomically(self.selection, json.dumps(content, indent=1) + "\n")


def alarms_of(run: Path) -> list[Row]:
    """Lines of level `alarm` in a run's `health.jsonl`, oldest first."""
    return [line for line in read_records(run / "health.jsonl") if line.get("level") == "alarm"]


def write_records(path: Path, records: Iterable[Row]) -> None:
    """Replace a file of one JSON object a line."""
    write_atomically(path, "".join(json.dumps(record) + "\n" for record in records))


def _read_rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    try:
        rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is no file of a study ({error!r}); remove it") from None
    return rows
