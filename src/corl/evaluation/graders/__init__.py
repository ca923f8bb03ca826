"""Who decides whether a completion is right: one grader a kind of benchmark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from corl.evaluation.benchmarks.schema import Benchmark
from corl.evaluation.graders.answers import KeyGrader, MathsGrader, NumberGrader
from corl.evaluation.graders.base import VERDICTS, Graded, Grader, Response
from corl.evaluation.sandbox import Level

__all__ = ["VERDICTS", "Graded", "Grader", "Response", "grader_of"]


@contextmanager
def grader_of(
    benchmark: Benchmark, *, workers: int | None = None, minimum: Level = "landlock"
) -> Iterator[Grader]:
    """The benchmark's grader; its workers end with the block.

    workers: math-verify processes, or sandboxed programs at once; left out: the cores.
    minimum: weakest isolation that generated code may run under.
    """
    grader = _grader(benchmark, workers or len(os.sched_getaffinity(0)), minimum)
    try:
        yield grader
    finally:
        grader.close()


def _grader(benchmark: Benchmark, workers: int, minimum: Level) -> Grader:
    from corl.evaluation.graders import code

    match benchmark.grader:
        case "math" | "choice_or_math":
            return MathsGrader(workers=workers)
        case "choice" | "text":
            return KeyGrader()
        case "number":
            return NumberGrader(benchmark.answer.tolerance)
        case "humaneval":
            check = code.check_humaneval_item
        case "mbpp":
            check = code.check_mbpp_item
        case "livecodebench":
            check = code.check_livecodebench_item
    return code.CodeGrader(check, workers=workers, minimum=minimum)
