"""Completions that were made elsewhere, lined up with a benchmark's items."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from corl.errors import PromptError
from corl.evaluation.benchmarks import Benchmark, Item
from corl.evaluation.graders import grader_of
from corl.evaluation.samples import Sample, grouped, read_samples
from corl.evaluation.sandbox import Level
from corl.evaluation.suite.answering import grade_all
from corl.evaluation.suite.chunks import SampleFile
from corl.evaluation.suite.identity import digest_of, graded_by
from corl.evaluation.suite.progress import EvalProgress
from corl.evaluation.suite.scores import Score, score

_ROWS_PER_CHUNK = 64


def find_saved(root: Path, benchmark: Benchmark, *, is_only: bool) -> Path:
    """Where a benchmark's completions lie under a path.

    ROOT/NAME/ or ROOT/NAME.jsonl; ROOT itself where it is the only benchmark asked for.
    Raises PromptError where neither is there.
    """
    if not root.exists():
        raise PromptError(f"completions {root} do not exist")
    for path in (root / benchmark.name, root / f"{benchmark.name}.jsonl"):
        if path.exists():
            return path
    if is_only:
        return root
    raise PromptError(
        f"completions {root}: neither {benchmark.name}/ nor {benchmark.name}.jsonl is there; with "
        "several benchmarks each needs its own"
    )


def read_saved(path: Path, items: Sequence[Item], *, limited: bool) -> list[list[Sample]]:
    """[P][K] samples in the items' order, K the same for all.

    limited: completions of other rows are left out, and an error otherwise.
    Raises PromptError naming a row without completions, or with another number of them.
    """
    groups = grouped(read_samples(path))
    known = {item.id for item in items}
    unknown = [row for row in groups if row not in known]
    if unknown and not limited:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"; nearest: {near[0]!r}" if near else ""
        raise PromptError(
            f"{path}: {len(unknown)} rows are none of the benchmark's {len(items)}, the first is "
            f"{unknown[0]!r}{hint}"
        )
    missing = [item.id for item in items if item.id not in groups]
    if missing:
        raise PromptError(
            f"{path}: {len(missing)} of {len(items)} rows have no completion, the first is "
            f"{missing[0]!r}; its ids are like {next(iter(groups))!r}"
        )
    num_samples = len(groups[items[0].id])
    for item in items:
        numbers = [one.sample for one in groups[item.id]]
        if numbers != list(range(num_samples)):
            raise PromptError(
                f"{path}: row {item.id!r} has samples {numbers[:8]}, and row {items[0].id!r} has "
                f"0 to {num_samples - 1}; every row needs the same"
            )
    return [groups[item.id] for item in items]


def score_saved(
    benchmark: Benchmark,
    items: Sequence[Item],
    groups: Sequence[Sequence[Sample]],
    folder: Path,
    *,
    minimum: Level,
    progress: EvalProgress,
) -> Score:
    """Grade [P][K] completions into a folder, continuing where an earlier start ended."""
    count = len(groups[0])
    file = SampleFile(folder, items, samples=count, rows_per_chunk=_ROWS_PER_CHUNK)
    file.open({**graded_by(benchmark, items), "completions": digest_of(groups)})
    progress.skip(file.done_rows * count)
    with grader_of(benchmark, minimum=minimum) as grader:
        for chunk in file.chunks():
            here = groups[file.done_rows : file.done_rows + len(chunk)]
            said = [
                (item, one.sample, one.completion, one.truncated)
                for item, group in zip(chunk, here, strict=True)
                for one in group
            ]
            file.append(grade_all(grader, said))
            progress.advance(len(said), benchmark.name)
    return score(benchmark, items, file.read())
