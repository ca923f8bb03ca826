"""Completions that were made elsewhere, lined up with a benchmark's items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corl.errors import PromptError
from corl.evaluation.benchmarks import Benchmark, Item
from corl.evaluation.graders import grader_of
from corl.evaluation.samples import Sample
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
