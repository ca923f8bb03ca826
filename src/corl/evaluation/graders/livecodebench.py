"""LiveCodeBench: programs that read stdin, and functions or methods that are called.

Every test runs in a sandboxed process of its own with the authors' 6 seconds (of CPU here), and the
first failure ends the row. Expected outputs stay in this process: a program never sees them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from corl.errors import PromptError
from corl.evaluation.graders.packed_tests import CodeTest, read_tests
from corl.evaluation.sandbox import Level, Limits, Verdict, run_calls, run_program

_CPU_S, _WALL_S, _MEMORY_MB = 6.0, 25.0, 1024

# Names that solutions take for granted, as the authors' harness gives them.
_PRELUDE = """\
from string import *
from re import *
from datetime import *
from collections import *
from heapq import *
from bisect import *
from copy import *
from math import *
from random import *
from statistics import *
from itertools import *
from functools import *
from operator import *
from io import *
from typing import *
import string, re, datetime, collections, heapq, bisect, copy, math, random, statistics
import itertools, functools, operator, io, sys, json, builtins, typing
from builtins import *
sys.setrecursionlimit(50000)
"""
_FUTURE = re.compile(r"^from __future__ import .*$", re.MULTILINE)
_CLASS = re.compile(r"^class Solution\b", re.MULTILINE)


def passes_livecodebench(
    fields: Mapping[str, Any], source: str, *, minimum: Level = "landlock"
) -> Verdict:
    """Judge a program by an item's public and private tests.

    fields: `public_tests`, `private_tests`, `metadata` (with `func_name` for calls) as published.
    Raises PromptError for tests that cannot be read.
    """
    tests = [*read_tests(fields.get("public_tests")), *read_tests(fields.get("private_tests"))]
    if not tests:
        raise PromptError("the item has no tests")
    program = with_prelude(source)
    name = _function(fields.get("metadata")) if any(t.kind == "call" for t in tests) else ""
    if _CLASS.search(source):
        name = f"Solution.{name}"
    for number, test in enumerate(tests, start=1):
        reason = (
            _stdin_failure(program, test, minimum)
            if test.kind == "stdin"
            else _call_failure(program, name, test, minimum)
        )
        if reason:
            return Verdict(False, f"{reason}: test {number} of {len(tests)}")
    return Verdict(True, "passed")


def with_prelude(source: str) -> str:
    """The program behind the usual imports; `__future__` imports must stay first."""
    future = "\n".join(_FUTURE.findall(source))
    rest = _FUTURE.sub("", source) if future else source
    return f"{future}\n{_PRELUDE}\n{rest}" if future else f"{_PRELUDE}\n{source}"


def _stdin_failure(program: str, test: CodeTest, minimum: Level) -> str:
    """ "" when the program's output is the expected one, else what is wrong."""
    result = run_program(
        program, stdin=test.input, cpu_s=_CPU_S, wall_s=_WALL_S, memory_mb=_MEMORY_MB,
        minimum=minimum,
    )  # fmt: skip
    if result.status != "ok":
        return result.status
    return "" if same_output(result.stdout, test.output) else "wrong output"


def _call_failure(program: str, name: str, test: CodeTest, minimum: Level) -> str:
    try:
        arguments = tuple(json.loads(line) for line in test.input.split("\n") if line.strip())
        expected = json.loads(test.output)
    except (ValueError, RecursionError) as error:
        raise PromptError(f"a call-based test is not JSON ({error})") from None
    limits = Limits(cpu_s=_CPU_S, wall_s=_WALL_S, memory_mb=_MEMORY_MB)
    (outcome,) = run_calls(program, [(name, arguments)], limits=limits, minimum=minimum)
    if outcome.kind == "none":
        return "no value (it ended, or ran out of time or memory)"
    if outcome.kind == "raised":
        return "error"
    return "" if _as_json(outcome.value) == expected else "wrong value"


def same_output(said: str, expected: str) -> bool:
    """Whether two outputs have the same lines: as texts, or number for number.

    Space around lines and the whole does not count (the authors' rule).
    """
    ours, theirs = (
        [line.strip() for line in text.strip().split("\n")] for text in (said, expected)
    )
    if len(ours) != len(theirs):
        return False
    return all(
        one == other or _same_numbers(one.split(), other.split())
        for one, other in zip(ours, theirs, strict=True)
    )


def _same_numbers(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    if len(ours) != len(theirs):
        return False
    try:
        return all(Decimal(one) == Decimal(other) for one, other in zip(ours, theirs, strict=True))
    except InvalidOperation:
        return False


def _as_json(value: Any) -> Any:
    """Tuples as lists, for JSON has no others."""
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in value]
    if isinstance(value, dict):
        return {key: _as_json(one) for key, one in value.items()}
    return value


def _function(metadata: Any) -> str:
    try:
        content = json.loads(metadata) if isinstance(metadata, str) else metadata
        name = content["func_name"]
    except (ValueError, KeyError, TypeError):
        name = None
    if not isinstance(name, str) or not name.isidentifier():
        raise PromptError("call-based tests need the function's name: `metadata.func_name`")
    return name
