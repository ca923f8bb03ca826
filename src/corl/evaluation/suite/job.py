"""The evaluation that `corl eval` runs: check all, ask, grade, write, sum up.

OUT/MODEL/BENCHMARK/samples.jsonl     one graded completion a line
OUT/MODEL/BENCHMARK/settings.json     everything that those lines depend on
OUT/MODEL/BENCHMARK/greedy/           the same for the most probable completions
OUT/results.json                      figures, intervals, comparisons
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from corl.errors import CheckpointError, RecipeError
from corl.evaluation.benchmarks import Benchmark, Item, choose, load_items
from corl.evaluation.benchmarks.schema import CODE_GRADERS
from corl.evaluation.grading import GradingError
from corl.evaluation.samples import aligned_samples
from corl.evaluation.sandbox import Level
from corl.evaluation.suite.asked import ModelEvaluation, passes_of
from corl.evaluation.suite.compare import compare_models
from corl.evaluation.suite.identity import FORMAT
from corl.evaluation.suite.progress import EvalProgress
from corl.evaluation.suite.saved import find_saved, score_saved
from corl.evaluation.suite.scores import Score, plain_average
from corl.evaluation.suite.settings import EvalSettings
from corl.evaluation.suite.subjects import check_subject, find_subjects
from corl.run.files import write_atomically

Work = tuple[Benchmark, list[Item]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an evaluation found."""

    scores: dict[str, list[Score]]
    """Model -> its benchmarks, in the order asked for."""
    comparisons: list[dict[str, Any]]
    results: Path
    notes: list[str]
    """What a reader of the figures should know."""


def run_suite(
    models: Sequence[str],
    benchmarks: Sequence[str],
    settings: EvalSettings,
    out: Path,
    *,
    completions: Path | None = None,
    minimum: Level = "landlock",
    console: Console,
) -> Outcome:
    """Evaluate models (or saved completions) on benchmarks; run again, it continues.

    models: checkpoints or run directories. benchmarks: NAME, NAME=FILE or OWN.yaml=FILE.
    minimum: weakest isolation for generated code. Everything is checked before a weight is loaded.
    Raises RecipeError, PromptError, ModelError, SandboxError, GradingError or CheckpointError.
    """
    if bool(models) == (completions is not None):
        raise RecipeError("name models to ask, or --completions to grade: one of the two")
    work, notes = _load_work(benchmarks, settings, minimum)
    if completions is not None:
        scores = _score_saved(completions, work, settings, out, minimum, console)
    else:
        scores = _score_subjects(models, work, settings, out, minimum, console)
    comparisons = compare_models(scores)
    results = out / "results.json"
    content = {
        "format": FORMAT,
        "settings": settings.to_json(),
        "models": {
            name: {
                "benchmarks": {one.benchmark: one.to_json() for one in ours},
                "average": plain_average(ours),
            }
            for name, ours in scores.items()
        },
        "comparisons": comparisons,
        "notes": notes,
    }
    write_atomically(results, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return Outcome(scores, comparisons, results, notes)


def _load_work(
    benchmarks: Sequence[str], settings: EvalSettings, minimum: Level
) -> tuple[list[Work], list[str]]:
    chosen = choose(list(benchmarks))
    if not chosen:
        raise RecipeError("name benchmarks: --benchmarks gsm8k=FILE humaneval=FILE ...")
    check_graders([one.benchmark for one in chosen], minimum)
    work, notes = [], []
    for one in chosen:
        items = load_items(one.benchmark, one.data, limit=settings.limit)
        work.append((one.benchmark, items))
        expected = one.benchmark.rows
        if expected is not None and settings.limit is None and len(items) != expected:
            notes.append(
                f"{one.benchmark.name}: {len(items)} rows, and the published set has {expected}"
            )
        if one.benchmark.unverified:
            notes.append(
                f"{one.benchmark.name}: its file was written without the data set at hand; look at "
                "a few prompts before you report its figures"
            )
    return work, notes


def check_graders(benchmarks: Sequence[Benchmark], minimum: Level = "landlock") -> None:
    """Raise where a grader could not work here."""
    needs_math = any(one.grader in ("math", "choice_or_math") for one in benchmarks)
    if needs_math and find_spec("math_verify") is None:
        raise GradingError("grading maths needs math-verify. Install corl[grading].")
    if any(one.grader in CODE_GRADERS for one in benchmarks):
        from corl.evaluation.sandbox.levels import choose_level

        choose_level(None, minimum)


def _score_subjects(
    models: Sequence[str],
    work: Sequence[Work],
    settings: EvalSettings,
    out: Path,
    minimum: Level,
    console: Console,
) -> dict[str, list[Score]]:
    subjects = find_subjects(models, settings)
    for subject in subjects:
        check_subject(subject, work)
    total = len(subjects) * sum(
        len(items) * one.completions
        for benchmark, items in work
        for one in passes_of(settings, benchmark)
    )
    with _locked(out), EvalProgress(total, console=console) as progress:
        return {
            subject.name: ModelEvaluation(
                subject, settings, out / subject.name, minimum=minimum, progress=progress
            ).scores(work)
            for subject in subjects
        }


def _score_saved(
    source: Path,
    work: Sequence[Work],
    settings: EvalSettings,
    out: Path,
    minimum: Level,
    console: Console,
) -> dict[str, list[Score]]:
    found = []
    for benchmark, items in work:
        path = find_saved(source, benchmark, is_only=len(work) == 1)
        ids = [item.id for item in items]
        found.append(aligned_samples(path, ids, limited=settings.limit is not None))
    name = source.resolve().name.removesuffix(".jsonl") or "completions"
    total = sum(len(groups) * len(groups[0]) for groups in found)
    with _locked(out), EvalProgress(total, console=console) as progress:
        scores = [
            score_saved(
                benchmark, items, groups, out / name / benchmark.name,
                minimum=minimum, progress=progress,
            )
            for (benchmark, items), groups in zip(work, found, strict=True)
        ]  # fmt: skip
    return {name: scores}


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Keep other evaluations out of this directory meanwhile."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / ".lock").open("w")
    except OSError as error:
        raise CheckpointError(
            f"output {out} cannot be written: {error.strerror}; give another --out"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CheckpointError(f"another evaluation is writing {out}; wait for it") from None
        yield
