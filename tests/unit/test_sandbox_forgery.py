"""No completion passes tests that it does not solve, and honest ones in any form pass."""

import gzip
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from corl.evaluation.sandbox import Level, Verdict, check_humaneval, check_tests
from corl.evaluation.sandbox.levels import why_not

PROMPT = 'def inc(x):\n    """Return x plus one."""\n'
TEST = "def check(candidate):\n    for x in range(-3, 9):\n        assert candidate(x) == x + 1\n"


@pytest.fixture(params=["landlock", "bubblewrap"])
def level(request: pytest.FixtureRequest) -> Level:
    if reason := why_not(request.param):
        pytest.skip(f"{request.param} does not work here: {reason}")
    return request.param


def check(completion: str, level: Level, test: str = TEST, **limits: float) -> Verdict:
    return check_humaneval(PROMPT, completion, test, "inc", level=level, **limits)


FORGERIES = {
    "wrong": "def inc(x): return x",
    "nothing": "def inc(x): pass",
    "always_equal": (
        "class Same:\n"
        "    def __eq__(self, other): return True\n"
        "    def __ne__(self, other): return False\n"
        "    __hash__ = None\n"
        "def inc(x): return Same()"
    ),
    "equal_number": (
        "class Same(int):\n    def __eq__(self, other): return True\ndef inc(x): return Same(0)"
    ),
    "equal_list": (
        "class Same(list):\n    def __eq__(self, other): return True\ndef inc(x): return Same()"
    ),
    "equal_by_metaclass": (
        "class Meta(type):\n    def __eq__(self, other): return True\n"
        "    __hash__ = type.__hash__\n"
        "class Same(metaclass=Meta): pass\ndef inc(x): return Same"
    ),
    "reflected": (
        "class Same(float):\n    def __eq__(self, o): return True\n"
        "    def __float__(self): return 1.0\ndef inc(x): return Same('nan')"
    ),
    "patched_builtins": (
        "import builtins\nbuiltins.AssertionError = type('E', (BaseException,), {})\n"
        "builtins.range = lambda *a: []\nbuiltins.all = builtins.any = lambda *a: True\n"
        "builtins.__build_class__ = None\ndef inc(x): return x"
    ),
    "patched_compile": (
        "import builtins\nbuiltins.exec = builtins.compile = lambda *a, **k: None\n"
        "def inc(x): return x"
    ),
    "patched_check": (
        "import sys\nfor module in list(sys.modules.values()):\n"
        "    module.__dict__['check'] = lambda *a: None\ndef inc(x): return x"
    ),
    "frame_walk": (
        "import sys\ndef inc(x):\n    frame = sys._getframe()\n    while frame:\n"
        "        frame.f_globals['check'] = lambda c: None\n"
        "        for value in frame.f_locals.values():\n"
        "            if isinstance(value, dict): value['passed'] = True\n"
        "        frame = frame.f_back\n    return x"
    ),
    "expected_from_frames": (
        "import sys\ndef inc(x):\n    frame = sys._getframe()\n    while frame:\n"
        "        if 'candidate' in frame.f_locals: return frame.f_locals['x'] + 1\n"
        "        frame = frame.f_back"
    ),
    "tracing": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(print)\ninc = abs",
    "patched_gc": (
        "import gc, types\nfor f in gc.get_objects():\n"
        "    if isinstance(f, types.FunctionType) and f.__name__ in ('check', 'main', 'call'):\n"
        "        f.__code__ = (lambda *a, **k: True).__code__\ndef inc(x): return x"
    ),
    "exit_at_import": "import sys\ndef inc(x): return x\nsys.exit(0)",
    "exit_in_call": "def inc(x):\n    if x == -3: return -2\n    import sys; sys.exit(0)",
    "hard_exit_at_import": "import os\ndef inc(x): return x\nos._exit(0)",
    "hard_exit_in_call": "def inc(x):\n    import os; os._exit(0)",
    "hard_exit_after_the_first": "n = []\ndef inc(x):\n    if n: import os; os._exit(0)\n"
    "    n.append(x); return x + 1",
    "exit_handler": "import atexit, os\natexit.register(os._exit, 0)\ndef inc(x): return x",
    "raise_system_exit": "def inc(x): raise SystemExit(0)",
    "keyboard_interrupt": "def inc(x): raise KeyboardInterrupt",
    "generator_exit": "def inc(x): raise GeneratorExit",
    "stop_iteration": "def inc(x): raise StopIteration",
    "own_error_class": "def inc(x): raise type('passed', (BaseException,), {})()",
    "conftest": (
        "import pathlib\npathlib.Path('conftest.py').write_text('x')\n"
        "pathlib.Path('sitecustomize.py').write_text('import os; os._exit(0)')\n"
        "pathlib.Path('random.py').write_text('')\ndef inc(x): return x"
    ),
    "printed_verdict": "print('passed')\nprint('OK')\ndef inc(x): print('passed'); return x",
    "written_verdict": (
        "import os\nframe = b'\\x13\\0\\0\\0t\\2\\0\\0\\0Ts\\6\\0\\0\\0passed'\n"
        "for n in range(1, 64):\n    try: os.write(n, frame)\n    except OSError: pass\n"
        "def inc(x): return x"
    ),
    "verdict_by_wire": (
        "import os, sys\nwire = sys.modules['corl.evaluation.sandbox.child.wire']\n"
        "for n in range(1, 64):\n    try: wire.send(n, (True, 'passed'))\n"
        "    except Exception: pass\ndef inc(x): return x"
    ),
    "garbage_replies": (
        "import os\nfor n in range(3, 64):\n    try: os.write(n, os.urandom(999))\n"
        "    except OSError: pass\ndef inc(x): return x + 1"
    ),
    "huge_frame": (
        "import os\nfor n in range(3, 64):\n    try: os.write(n, b'\\xff' * 64)\n"
        "    except OSError: pass\ndef inc(x): return x + 1"
    ),
    "reply_flood": (
        "import os, sys\nwire = sys.modules['corl.evaluation.sandbox.child.wire']\n"
        "def inc(x):\n    for n in range(3, 64):\n        try: wire.send(n, ('value', 0))\n"
        "        except Exception: pass\n    return x"
    ),
    "closed_pipes": "import os\nos.closerange(3, 64)\ndef inc(x): return x + 1",
    "patched_wire": (
        "import sys\nwire = sys.modules['corl.evaluation.sandbox.child.wire']\n"
        "wire.encode = lambda v: b'T'\nwire.Opaque.__eq__ = lambda a, b: True\n"
        "def inc(x): return object()"
    ),
    "read_tests": (
        "import os\ndef inc(x):\n"
        "    return [open('/proc/%s/environ' % p).read() for p in os.listdir('/proc')]"
    ),
    "kill_tester": (
        "import os\ndef inc(x):\n    for pid in range(2, 70000):\n"
        "        try: os.kill(pid, 9) if pid != os.getpid() else 0\n        except OSError: pass\n"
        "    return x"
    ),
    "endless_iterator": "import itertools\ndef inc(x): return itertools.count()",
    "endless_generator": "def inc(x):\n    while True: yield x",
    "own_iterator": (
        "class Same:\n    def __iter__(self): return self\n    def __next__(self): return 1\n"
        "    def __eq__(self, o): return True\ndef inc(x): return Same()"
    ),
    "list_in_itself": "def inc(x):\n    y = []\n    y.append(y)\n    return y",
    "doubling_list": "def inc(x):\n    y = []\n    for _ in range(60): y = [y, y]\n    return y",
    "huge_text": "def inc(x): return 'x' * (1 << 26)",
    "huge_number": "def inc(x): return 1 << (1 << 29)",
    "not_a_number": "def inc(x): return float('nan')",
    "busy_call": "def inc(x):\n    while True: pass",
    "busy_import": "while True: pass\ndef inc(x): return x",
    "memory": "def inc(x): return bytearray(1 << 40)",
    "recursion": "def inc(x): return inc(x)",
    "crash": "import ctypes\ndef inc(x): return ctypes.string_at(0)",
    "output": "def inc(x):\n    while True: print('x' * 4096)",
    "no_such_function": "def dec(x): return x - 1",
    "not_python": "def inc(x) return x",
    "name_is_no_function": "inc = 7",
    "other_type": "def inc(x): return str(x + 1)",
    "lying_name": "class inc(int):\n    def __new__(cls, x): return x",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_does_not_pass(name: str, level: Level) -> None:
    started = time.monotonic()
    verdict = check(FORGERIES[name], level, cpu_s=0.5, wall_s=10, memory_mb=256)
    assert verdict.passed is False, verdict
    assert verdict.reason and verdict.reason != "passed"
    assert time.monotonic() - started < 12


@pytest.mark.parametrize(
    "test",
    [
        "def check(c):\n    try: assert c(1) == 2\n    except Exception: pass\n",
        "def check(c):\n    try: c(1)\n    except: pass\n",
        "def check(c):\n    for value in map(c, [1, 2]): assert value in (2, 3)\n",
    ],
    ids=["except_exception", "bare_except", "map"],
)
def test_exit_fails_even_where_the_test_swallows_it(test: str, level: Level) -> None:
    for exit_call in ("import os; os._exit(0)", "import sys; sys.exit(0)", "raise StopIteration"):
        completion = f"def inc(x):\n    {exit_call}"
        if exit_call.startswith("raise") and "except" in test:
            continue
        assert not check(completion, level, test).passed


def test_sleeping_candidate_is_ended_by_the_wall(level: Level) -> None:
    verdict = check("def inc(x):\n    import time; time.sleep(60)", level, wall_s=0.5)
    assert not verdict.passed
    assert verdict.reason.startswith("timeout")


HONEST = {
    "body": "    return x + 1\n",
    "body_without_indentation": "return x + 1\n",
    "body_first_line_stripped": "y = x\n    return y + 1\n",
    "body_with_run_on": "    return x + 1\n\n\ndef other(y):\n    return 'unfinished\n",
    "body_with_prose": "    return x + 1\n\nThis adds one to x, as asked.\n",
    "body_with_main": "    return x + 1\n\nif __name__ == '__main__':\n    raise SystemExit(1)\n",
    "whole": "def inc(x):\n    return x + 1\n",
    "prompt_again": PROMPT + "    return x + 1\n",
    "fenced": "Sure:\n\n```python\ndef inc(x):\n    return x + 1\n```\nDone.",
    "fenced_without_language": "```\ndef inc(x):\n    return x + 1\n```",
    "fence_never_closed": "Sure:\n```python\ndef inc(x):\n    return x + 1\n",
    "prefilled_fence": "def inc(x):\n    return x + 1\n```\nThis works.",
    "fenced_after_prefilled_fence": "```python\ndef inc(x):\n    return x+1\n```",
    "fenced_body": "```python\n    return x + 1\n```",
    "example_block_after": (
        "```python\ndef inc(x):\n    return x + 1\n```\nUse it:\n```python\nprint(inc(1))\n```"
    ),
    "last_block_wins": (
        "```python\ndef inc(x):\n    return x\n```\nNo, wait:\n"
        "```py\ndef inc(x):\n    return x+1\n```"
    ),
    "prose_then_code": "Here it is.\n\ndef inc(x):\n    return x + 1\n\nIt adds one.",
    "imports_first": "from typing import List\n\ndef inc(x: int) -> int:\n    return x + 1\n",
    "future_import": "from __future__ import annotations\ndef inc(x: Foo):\n    return x + 1\n",
    "helper_after": "def inc(x):\n    return step(x)\n\ndef step(x):\n    return x + 1\n",
    "nested_helper": "    def inner(i):\n        return i + 1\n    return inner(x)\n",
    "lambda": "inc = lambda x: x + 1",
    "tabs": "\treturn x + 1\n",
    "prints": "    print('working')\n    return x + 1\n",
    "subclass": "    from enum import IntEnum\n    return IntEnum('E', {'a': x + 1}).a\n",
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_completion_passes(name: str) -> None:
    verdict = check_humaneval(PROMPT, HONEST[name], TEST, "inc", minimum="limits")
    assert verdict == Verdict(True, "passed")


VALUES = [
    None, True, 0, -1, 255, -256, 2**70, -(2**70), 1.5, float("inf"), -0.0, 2 + 3j, "", "é\ud800",
    b"\0x", [], [1, [2.0, None]], (), (1,), (1, (2,)), {}, {"a": [1], 2: (3,)}, {1, 2},
    frozenset({"x"}), [[]] * 3,
]  # fmt: skip


def test_plain_values_keep_their_type_and_value(level: Level) -> None:
    tests = (
        f"values = {[v for v in VALUES if v != float('inf')]!r} + [float('inf')]\n"
        "for value in values:\n"
        "    back = same(value)\n"
        "    assert back == value and type(back) is type(value) and repr(back) == repr(value)\n"
    )
    assert check_tests("same = lambda x: x", tests, names=["same"], level=level).passed


def test_tuple_is_no_list_and_error_types_arrive(level: Level) -> None:
    source = "def f(x):\n    if x < 0: raise ValueError('low')\n    return (x, x)"
    tests = (
        "assert f(1) == (1, 1) and f(1) != [1, 1]\n"
        "try:\n    f(-1)\nexcept ValueError as error:\n    assert str(error) == 'low'\n"
        "else:\n    raise AssertionError\n"
    )
    assert check_tests(source, tests, names=["f"], level=level).passed


def test_tests_call_helpers_of_the_prompt(level: Level) -> None:
    prompt = 'def shift(s):\n    return s[1:] + s[:1]\n\n\ndef unshift(s):\n    """Undo shift."""\n'
    test = "def check(c):\n    import random\n    assert c(shift('abc')) == 'abc'\n"
    good, bad = "    return s[-1:] + s[:-1]\n", "    return s\n"
    forged = "def shift(s): return s\ndef unshift(s): return s\n"
    verdicts = [
        check_humaneval(prompt, text, test, "unshift", level=level).passed
        for text in (good, bad, forged)
    ]
    assert verdicts == [True, False, False]


def test_cpu_time_and_not_wall_time_decides(level: Level) -> None:
    slow = "    import time; time.sleep(0.08)\n    return x + 1\n"
    assert check(slow, level, cpu_s=0.5, wall_s=20).passed


@pytest.mark.skipif("CORL_HUMANEVAL" not in os.environ, reason="CORL_HUMANEVAL names no file")
def test_every_canonical_solution_of_humaneval_passes(level: Level) -> None:
    with gzip.open(Path(os.environ["CORL_HUMANEVAL"]), "rt") as file:
        rows = [json.loads(line) for line in file]

    def judge(row: dict) -> Verdict:
        return check_humaneval(
            row["prompt"], row["canonical_solution"], row["test"], row["entry_point"], level=level
        )

    started = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(judge, rows))
    assert [v.reason for v in verdicts if not v.passed] == []
    assert len(verdicts) == 164
    assert time.monotonic() - started < 60
