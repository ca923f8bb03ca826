"""Graders of generated code. All of it runs in the sandbox, several programs at once."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from corl.answers.code import read_code
from corl.errors import PromptError
from corl.evaluation.benchmarks.items import Item
from corl.evaluation.graders.base import Graded, Response, Verdict
from corl.evaluation.graders.livecodebench import passes_livecodebench
from corl.evaluation.sandbox import Level, Limits, check_humaneval, check_tests
from corl.evaluation.sandbox import Verdict as SandboxVerdict

Check = Callable[[Item, str, Level], SandboxVerdict]

_LIMITS = Limits(cpu_s=5.0, wall_s=20.0, memory_mb=1024)
"""Of one completion of HumanEval or MBPP, all calls together."""


class CodeGrader:
    """Runs completions against their tests; the same text of one item once."""

    def __init__(self, check: Check, *, workers: int, minimum: Level = "landlock") -> None:
        self._check, self._minimum = check, minimum
        self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="grade")

    def grade(self, responses: Sequence[Response]) -> list[Graded]:
        """Grade responses. Raises SandboxError when the sandbox cannot be set up."""
        jobs: dict[tuple[str, str], Any] = {}
        for one in responses:
            key = (one.item.id, one.text)
            if key not in jobs:
                jobs[key] = self._threads.submit(self._verdict, one.item, one.text)
        try:
            return [Graded(None, None, jobs[one.item.id, one.text].result()) for one in responses]
        except BaseException:
            for job in jobs.values():
                job.cancel()
            raise

    def _verdict(self, item: Item, text: str) -> Verdict:
        if not text.strip():
            return "no_answer"
        verdict = self._check(item, text, self._minimum)
        if verdict.passed:
            return "right"
        return "timeout" if verdict.reason.startswith("timeout") else "wrong"

    def close(self) -> None:
        """Wait for no queued program; those that run end by their limits."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def check_humaneval_item(item: Item, text: str, minimum: Level) -> SandboxVerdict:
    """HumanEval: the item's `check` called with the completion's function."""
    return check_humaneval(
        item.problem, text, item.extra["test"], item.extra["entry_point"],
        cpu_s=_LIMITS.cpu_s, wall_s=_LIMITS.wall_s, memory_mb=_LIMITS.memory_mb, minimum=minimum,
    )  # fmt: skip


def check_mbpp_item(item: Item, text: str, minimum: Level) -> SandboxVerdict:
    """MBPP: the item's assertions, which reach the program's functions only.

    Objects of the program's own classes do not cross between the processes, so the few rows whose
    assertions build such objects cannot be passed.
    """
    setup = item.extra.get("setup") or ""
    helpers = setup if isinstance(setup, str) else "\n".join(map(str, setup))
    tests = "\n".join(map(str, item.extra["tests"]))
    return check_tests(
        read_code(text) or text,
        tests,
        names=called_names(tests, helpers),
        helpers=helpers,
        limits=_LIMITS,
        minimum=minimum,
    )


def called_names(tests: str, helpers: str) -> list[str]:
    """Functions that tests call and that neither Python nor the helpers define.

    Raises PromptError where either is no Python.
    """
    try:
        testing, helping = ast.parse(tests), ast.parse(helpers)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise PromptError(f"a row's tests are no Python ({error}): {tests[:200]!r}") from None
    called: dict[str, None] = {}
    for node in ast.walk(testing):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called[node.func.id] = None
    defined = stored_names(testing) | stored_names(helping)
    for node in ast.walk(helping):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {(name.asname or name.name).partition(".")[0] for name in node.names}
    return [name for name in called if name not in defined and not hasattr(builtins, name)]


def stored_names(tree: ast.AST) -> set[str]:
    """Names that a module assigns to."""
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def check_livecodebench_item(item: Item, text: str, minimum: Level) -> SandboxVerdict:
    """LiveCodeBench: every public and private test, on stdin or by calls."""
    return passes_livecodebench(item.extra, read_code(text) or text, minimum=minimum)
