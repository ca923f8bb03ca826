"""Rows of a data file, as it holds them: JSON lines, a JSON list (both also .gz) or Parquet."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from corl.errors import PromptError


def read_records(file: Path, *, kind: str, longest_line: int) -> Iterator[Any]:
    """Rows of a file, in order, one at a time where its form allows it.

    kind: what the file is to its reader, such as "prompt file"; errors begin with it.
    longest_line: bytes of one JSON line.
    Raises PromptError naming file and line for what is not JSON, and for a file that is missing or
    cannot be read.
    """
    where = f"{kind} {file}"
    try:
        if file.suffix == ".parquet":
            yield from _parquet_records(file, where)
        elif file.name.removesuffix(".gz").endswith(".json"):
            with _opened(file) as stream:
                content = _parsed(stream.read(), where)
            if not isinstance(content, list):
                raise PromptError(f"{where} must hold a JSON list, or be named .jsonl")
            yield from content
        else:
            with _opened(file) as stream:
                yield from _line_records(stream, where, longest_line)
    except FileNotFoundError:
        raise PromptError(f"{where} does not exist") from None
    except (OSError, EOFError) as error:
        raise PromptError(f"{where} cannot be read: {error}") from None


def _opened(file: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def _line_records(stream: IO[bytes], where: str, longest: int) -> Iterator[Any]:
    number = 0
    while line := stream.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise PromptError(f"{where}, line {number}: longer than {longest} bytes")
        if line.strip():
            yield _parsed(line, f"{where}, line {number}")


def _parsed(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise PromptError(f"{where}: not JSON ({error})") from None


def encoded_images(rows: Any) -> Any:
    """The same data set with image columns left as {"bytes", "path"}: we decode, within limits."""
    return rows.decode(False) if hasattr(rows, "decode") else rows


def _parquet_records(file: Path, where: str) -> Iterator[Any]:
    if not file.exists():
        raise FileNotFoundError(file)
    try:
        import datasets
    except ImportError:
        raise PromptError(
            f"reading {file} needs the datasets library; install corl[datasets]"
        ) from None
    try:
        rows = datasets.load_dataset("parquet", data_files=str(file), split="train", streaming=True)
        yield from encoded_images(rows)
    except Exception as error:  # the library raises its readers' own classes
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PromptError(f"{where} is no Parquet file that can be read: {said}") from None
