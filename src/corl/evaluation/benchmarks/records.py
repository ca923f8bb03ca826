"""Rows of a benchmark's data, from files here or from the hub; JSON and Parquet, never pickles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corl.data import records
from corl.errors import PromptError
from corl.evaluation.benchmarks.schema import HubSource

_LONGEST_LINE = 256 * 2**20
"""Bytes; a row of LiveCodeBench carries its tests."""
_ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a file, or of all data files of a directory in order of name.

    Raises PromptError naming file and line for what is no row.
    """
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.endswith(_ENDINGS))
        if not files:
            raise PromptError(f"{path} holds none of {', '.join('*' + end for end in _ENDINGS)}")
    for file in files:
        yield from _file_records(file)


def hub_records(source: HubSource) -> Iterator[dict[str, Any]]:
    """Rows of a data set of the hub. Raises PromptError where it cannot be read."""
    try:
        import datasets
    except ImportError:
        raise PromptError(
            f"reading {source.id} from the hub needs the datasets library; install corl[datasets], "
            "or give a file: NAME=FILE"
        ) from None
    try:
        if source.files:
            base = f"hf://datasets/{source.id}@{source.revision}"
            yield from datasets.load_dataset(
                "json",
                data_files=[f"{base}/{name}" for name in source.files],
                split="train",
                streaming=True,
            )
        else:
            rows = datasets.load_dataset(
                source.id,
                source.config,
                split=source.split,
                revision=source.revision,
                streaming=True,
            )
            yield from records.encoded_images(rows)
    except Exception as error:  # the library raises its transport's own classes
        said = str(error).splitlines()[0] if str(error) else "no message"
        raise PromptError(
            f"data set {source.id} cannot be read ({type(error).__name__}: {said}); where the hub "
            "is out of reach, give a file: NAME=FILE"
        ) from None


def _file_records(file: Path) -> Iterator[dict[str, Any]]:
    rows = records.read_records(file, kind="benchmark data", longest_line=_LONGEST_LINE)
    for number, record in enumerate(rows, start=1):
        if not isinstance(record, dict):
            raise PromptError(
                f"{file}, row {number}: is {type(record).__name__}, not an object of fields"
            )
        yield record
