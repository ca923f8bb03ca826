"""The CoMAS protocol: five samples of a problem, one answer by consistency, seven benchmarks.

A problem's score is that of its leading answer; a shared first place counts in equal parts, which
is what taking the first seen comes to on average. Programs are one answer when they return the same
on the problem's own example calls (expected values dropped), or, where a problem states none, when
their sources are the same; the score is what a member of the leading cluster, drawn at random,
scores in the tests. The original scored a problem as solved when any of five programs was, which is
pass@5 and worth 7 points to an untrained model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from corl.answers import behaviour
from corl.answers.answer import digest
from corl.answers.code import normal_source, read_code
from corl.errors import PromptError
from corl.evaluation.benchmarks import Benchmark, Item, choose, load_items
from corl.evaluation.code_examples import example_calls
from corl.evaluation.consistency import Key, consistency_score
from corl.evaluation.graders.code import called_names
from corl.evaluation.sandbox import Level, assemble, run_program
from corl.evaluation.suite.answering import Record
from corl.evaluation.suite.recorded import Recorded, read_recorded
from corl.evaluation.suite.scores import Figure

SEVEN = ("gsm8k", "math500", "humaneval", "mbpp", "mmlu", "gpqa_diamond", "scibench")
"""The benchmarks whose plain mean is the protocol's figure."""

SAMPLES = 5


def comas_scores(
    recorded: Recorded,
    programs: Mapping[str, tuple[Benchmark, Sequence[Item]]],
    *,
    minimum: Level = "landlock",
) -> dict[str, dict[str, Figure]]:
    """Model -> benchmark -> consistency score by problem, of the first five samples.

    programs: benchmarks of code with their rows, whose examples cluster programs.
    Raises PromptError for fewer than five samples, or for code whose rows are not given.
    """
    workers = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(workers, thread_name_prefix="behave") as threads:
        return {
            model: {
                name: Figure.of(_values(name, rows, programs.get(name), threads, minimum))
                for name, rows in benchmarks.items()
            }
            for model, benchmarks in recorded.items()
        }


def comas_of(
    evaluation: Path, benchmarks: Sequence[str], *, minimum: Level = "landlock"
) -> dict[str, dict[str, Figure]]:
    """Scores of an evaluation's directory. benchmarks: NAME=FILE of those of code."""
    programs = {
        one.benchmark.name: (one.benchmark, load_items(one.benchmark, one.data))
        for one in choose(list(benchmarks))
    }
    return comas_scores(read_recorded(evaluation), programs, minimum=minimum)


def seven_mean(figures: Mapping[str, Figure]) -> float | None:
    """The plain mean of the seven; None where one of them is missing."""
    if not all(name in figures for name in SEVEN):
        return None
    return sum(figures[name].mean for name in SEVEN) / len(SEVEN)


def behaviour_key(benchmark: Benchmark, item: Item, text: str, *, minimum: Level) -> Key:
    """What programs that behave alike share; None for no program, or one that only fails."""
    source = _source(benchmark, item, text)
    if source is None:
        return None
    calls = example_calls(*_examples(benchmark, item))
    if not calls:
        return digest(normal_source(source))
    answer = behaviour(source, calls, partial(run_program, minimum=minimum))
    return None if answer is None else answer.key


def _values(
    name: str,
    rows: Mapping[str, Sequence[Record]],
    programs: tuple[Benchmark, Sequence[Item]] | None,
    threads: ThreadPoolExecutor,
    minimum: Level,
) -> list[float]:
    short = next((row for row, group in rows.items() if len(group) < SAMPLES), None)
    if short is not None:
        raise PromptError(
            f"benchmark {name}, row {short!r}: {len(rows[short])} samples, and the protocol takes "
            f"{SAMPLES}; evaluate with --samples {SAMPLES}"
        )
    groups = {row: list(group[:SAMPLES]) for row, group in rows.items()}
    if any(one.key for group in groups.values() for one in group):
        keys = {row: [one.key for one in group] for row, group in groups.items()}
    elif programs is None:
        if not any(one.right for group in groups.values() for one in group):
            return [0.0] * len(groups)
        raise PromptError(f"benchmark {name} is code: give its rows, --benchmarks {name}=FILE")
    else:
        keys = _behaviours(name, groups, programs, threads, minimum)
    return [
        consistency_score(keys[row], [one.right for one in group]) for row, group in groups.items()
    ]


def _behaviours(
    name: str,
    groups: Mapping[str, Sequence[Record]],
    programs: tuple[Benchmark, Sequence[Item]],
    threads: ThreadPoolExecutor,
    minimum: Level,
) -> dict[str, list[Key]]:
    benchmark, items = programs
    by_id = {item.id: item for item in items}
    missing = next((row for row in groups if row not in by_id), None)
    if missing is not None:
        raise PromptError(f"benchmark {name}: its file has no row {missing!r}, which was answered")
    jobs = {
        row: [
            threads.submit(behaviour_key, benchmark, by_id[row], one.completion, minimum=minimum)
            for one in group
        ]
        for row, group in groups.items()
    }
    return {row: [job.result() for job in of_row] for row, of_row in jobs.items()}


def _source(benchmark: Benchmark, item: Item, text: str) -> str | None:
    if benchmark.grader == "humaneval":
        return (
            assemble(item.problem, text, str(item.extra["entry_point"])) if text.strip() else None
        )
    return read_code(text)


def _examples(benchmark: Benchmark, item: Item) -> tuple[str, list[str]]:
    """Where examples stand, and the functions that they call."""
    if benchmark.grader == "humaneval":
        return item.problem, [str(item.extra["entry_point"])]
    tests = "\n".join(map(str, item.extra.get("tests") or ()))
    setup = item.extra.get("setup") or ""
    helpers = setup if isinstance(setup, str) else "\n".join(map(str, setup))
    return tests, called_names(tests, helpers)
