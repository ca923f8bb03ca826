"""Writing files so that a killed process leaves the old one or the new one, never half."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace a file whole."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(path)


def publish_directory(partial: Path, final: Path) -> None:
    """Give a finished directory its name; an older one of that name is replaced."""
    for file in partial.rglob("*"):
        if file.is_file():
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
    if final.exists():
        old = final.with_name(f".{final.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        final.rename(old)
        partial.rename(final)
        shutil.rmtree(old)
    else:
        partial.rename(final)
