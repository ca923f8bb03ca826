"""What a probe is given: checkpoints, trained agents of a run, or saved completions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from corl.config.loading import PACKAGE_PREFIX, resolve_source
from corl.errors import ModelError
from corl.evaluation.suite.settings import EvalSettings
from corl.evaluation.suite.subjects import Subject, find_subjects
from corl.run.directory import RunDirectory

SETTINGS = "settings.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """A model that is sampled."""

    name: str
    model: str
    """Directory or hub id, as a recipe names it."""
    subject: Subject


@dataclass(frozen=True, slots=True)
class Saved:
    """Completions that stand on disk: a JSONL file or a directory of them."""

    name: str
    model: str
    path: Path


Source = Asked | Saved


def find_sources(given: Sequence[str]) -> list[Source]:
    """One source a model, each with a name of its own; a run gives each agent's trained model.

    Raises ModelError for a run without trained models, a directory that is neither checkpoint nor
    completions, and where nothing is named.
    """
    if not given:
        raise ModelError("name models to compare: checkpoints, runs, or saved completions")
    found = [source for text in given for source in _sources(text)]
    names: set[str] = set()
    sources = []
    for one in found:
        free = (f"{one.name}-{number}" for number in count(2))
        name = one.name if one.name not in names else next(n for n in free if n not in names)
        names.add(name)
        sources.append(replace(one, name=name))
    return sources


def _sources(text: str) -> list[Source]:
    place = resolve_source(text, Path.cwd())
    path = Path(place)
    is_run = RunDirectory(path).facts_file.is_file()
    is_saved = path.suffix == ".jsonl" or (
        path.is_dir()
        and not is_run
        and not (path / "config.json").is_file()
        and any(path.glob("*.jsonl"))
    )
    if is_saved:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", path.name.removesuffix(".jsonl")).strip(".-")
        return [Saved(stem or "completions", _model_of(path), path)]
    if path.is_dir() and not is_run and not (path / "config.json").is_file():
        raise ModelError(
            f"{text!r} is neither a checkpoint (no config.json), nor a run, nor saved completions "
            "(no *.jsonl)"
        )
    return [
        Asked(one.name, text if text.startswith(PACKAGE_PREFIX) else one.source, one)
        for one in find_subjects([place], EvalSettings())
    ]


def _model_of(path: Path) -> str:
    """The model that a probe of ours asked for these completions, else their own path."""
    try:
        written: Any = json.loads((path / SETTINGS).read_text())["model"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        written = None
    return written if isinstance(written, str) else str(path)
