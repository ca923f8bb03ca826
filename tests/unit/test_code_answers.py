"""Programs read from completions, and answers made of what programs do."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from corl.answers import Answer, behaviour, canonical, read_answer
from corl.answers.code import (
    FAILED,
    MAX_FENCES,
    call_expression,
    driver_source,
    fenced_blocks,
    read_code,
    recorded_outputs,
)

ADD = "def add(a, b):\n    return a + b"
SUB = "def sub(a, b):\n    return a - b"


@dataclass
class Run:
    """What a program printed."""

    status: str
    stdout: str


def run(source: str) -> Run:
    """Run a harmless program in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", source],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Run("ok" if done.returncode == 0 else "error", done.stdout)


def does(program: str, *calls: str) -> Answer | None:
    """The behaviour of a program."""
    return behaviour(program, calls, run)


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"```python\n{ADD}\n```", ADD),
        (f"```Python3\n{ADD}\n```", ADD),
        (f"```\n{ADD}\n```", ADD),
        (f"~~~py\n{ADD}\n~~~", ADD),
        (f"````python\n{ADD}\n````", ADD),
        (f"Code: ```python\n{ADD}\n```", ADD),
        (f"```python\n{ADD}```", ADD),
        ("```python def one(): return 1```", "def one(): return 1"),
        (f"```python\n{SUB}\n```\nNo:\n```python\n{ADD}\n```", ADD),
        (f"```python\n{SUB}\n```python\n{ADD}\n```", ADD),
        (f"```python\n{ADD}\n```\nUse it:\n```python\nprint(add(1, 2))\n```", ADD),
        (f"```python\n{ADD}\n```\nOutput:\n```\n3\n```", ADD),
        (f"```python\n{ADD}\n```\n```bash\npip install add\n```", ADD),
        (f"```python\n{ADD}\n```\n```\n>>> add(1, 2)\n3\n```", ADD),
        (f"```python\n{ADD}", ADD),
        (f"{ADD}\n```\nThis adds.", ADD),
        (f"> ```python\n> {ADD.splitlines()[0]}\n> {ADD.splitlines()[1]}\n> ```", ADD),
        (f"<think>\n```python\n{SUB}\n```\n</think>\n```python\n{ADD}\n```", ADD),
        (f"```python\n{ADD}\n```<|im_end|>\n<|im_start|>user", ADD),
        (ADD, ADD),
        (f"Here it is:\n\n{ADD}\n\nThis adds two numbers.", ADD),
        (f"{SUB}\n\nBetter:\n\n{ADD}\n\nDone.", ADD),
        ("    return a + b\n", "    return a + b"),
        ("print(sum(range(5)))", "print(sum(range(5)))"),
        ("```java\nint x;\n```", None),
        ("I cannot write this.", None),
        ("5", None),
        ("```\n```", None),
        ("", None),
        ("<think>def f(): pass", None),
    ],
)
def test_the_program_in_a_completion(text: str, program: str | None) -> None:
    assert read_code(text) == program
    if program is not None:
        assert read_code(program) == program


def test_a_fence_inside_a_docstring_belongs_to_the_program() -> None:
    program = (
        f'def f():\n    """Example:\n    ```\n    f()\n    ```\n    """\n    return 1\n\n{ADD}'
    )
    assert read_code(f"```python\n{program}\n```") == program
    assert read_code(program) == program
    assert read_code(f"{program}\n```\nDone.") == program


def test_a_question_in_a_docstring_does_not_cut_the_program() -> None:
    program = 'def f():\n    """Adds.\n\nProblem: add.\n"""\n    return 1'
    assert read_code(f"```python\n{program}\n```") == program


def test_a_program_that_does_not_parse_is_cut_out_by_its_lines() -> None:
    broken = "def f(x)\n    return x"
    fixed = "def g(x):\n    y = x +\n    return y"
    assert read_code(f"So:\n{broken}\nOr:\n{fixed}\nThat is all.") == fixed


def test_the_entry_point_picks_the_block() -> None:
    text = f"```python\n{ADD}\n```\n```python\n{SUB}\n```"
    assert read_code(text, entry_point="add") == ADD
    assert read_code(text, entry_point="other") == SUB


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"```python\n{ADD}\n```\nand", ADD),
        (f"```python\n{ADD}", None),
        (f"```python\n{SUB}\n```\n```python\n{ADD}", None),
        (ADD, None),
        (f"```python\n{ADD}\n```<|im_end|>", ADD),
    ],
)
def test_a_truncated_completion_needs_a_closed_block(text: str, program: str | None) -> None:
    assert read_code(text, truncated=True) == program


def test_fences_beyond_the_budget_are_not_read() -> None:
    assert len(fenced_blocks("```\nx\n```\n" * 5000)) <= MAX_FENCES


def test_layout_and_comments_do_not_change_the_source_key() -> None:
    spaced = "# adds\ndef add(a, b):   \n\n    # now\n    return a + b\n"
    assert (
        canonical(spaced, "code")
        == canonical(ADD, "code")
        == read_answer(f"```\n{ADD}\n```", "code")
    )
    assert canonical(ADD, "code") != canonical(SUB, "code")
    assert canonical("  \n", "code") is None


@pytest.mark.parametrize(
    ("example", "call"),
    [
        ("f(3)", "f(3)"),
        (">>> f(3)", "f(3)"),
        ("f(3) == 9", "f(3)"),
        ("assert f(3) == 9", "f(3)"),
        ("assert f(3) == 9, 'nine'", "f(3)"),
        ("assert f([1, 2])", "f([1, 2])"),
        ("f(3) is None", "f(3)"),
        ("x ==", "x =="),
        ("", ""),
    ],
)
def test_what_an_example_expects_is_dropped(example: str, call: str) -> None:
    assert call_expression(example) == call


def test_programs_that_do_the_same_are_one_answer() -> None:
    one = does("def f(x):\n    return x * 2", "f(2)", "f(-1)")
    other = does("f = lambda y: y + y\nprint('ready')", "assert f(2) == 5", "f(-1)")
    assert one is not None and one == other
    assert one.text == "4\n-2"
    assert one.key.startswith("behaviour@1:")
    assert one != does("def f(x):\n    return abs(x * 2)", "f(2)", "f(-1)")


def test_values_are_shown_without_the_order_of_sets() -> None:
    first = does("def f():\n    return {'b', 'a', 'c'}, {'k': 1, 'j': 2}", "f()")
    second = does("def f():\n    return {'c', 'b', 'a'}, {'j': 2, 'k': 1}", "f()")
    assert first is not None and first == second
    assert first.text == "({'a', 'b', 'c'}set, {'j': 2, 'k': 1},)"


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("0.1 + 0.2", "0.30000000000000004"),
        ("[1, 'x', None]", "[1, 'x', None]"),
        ("object()", "object:<object object>"),
        ("1 << 5000", "int:1" + "0" * 1000),
        ("b'x'", "b'x'"),
        ("True", "True"),
    ],
)
def test_values_have_one_text(expression: str, shown: str) -> None:
    answer = does(f"def f():\n    return {expression}", "f()")
    assert answer is not None
    assert answer.text[:500] == shown[:500]


def test_long_outputs_are_bounded_and_stay_different() -> None:
    one, other = (does(f"def f():\n    return 'x' * 5000 + '{end}'", "f()") for end in "ab")
    assert one is not None and other is not None and one != other
    assert len(one.text) <= 1000


def test_a_call_that_fails_is_marked_and_the_rest_counts() -> None:
    answer = does("def f(x):\n    return 6 // x", "f(0)", "f(2)")
    assert answer is not None and answer.text == f"{FAILED}\n3"
    assert does("import sys\ndef f(x):\n    sys.exit(0)", "f(0)") is None


@pytest.mark.parametrize(
    "program",
    [
        "def f(:",
        "raise ValueError",
        "import sys; sys.exit(0)",
        "def g(): return 1",
        "def f(x): pass",
        "def f(x): print(x)",
        "import os; os._exit(0)",
        "",
        "def f(x):\n    a = []\n    a.append(a)\n    return a",
    ],
)
def test_programs_that_give_nothing_abstain(program: str) -> None:
    assert does(program, "f(1)", "f(2)") is None


def test_no_calls_no_behaviour() -> None:
    assert does(ADD) is None


def test_what_a_program_prints_is_neither_read_nor_confused_with_records() -> None:
    quiet = does("def f(x):\n    return x", "f(1)", "f(2)")
    loud = "import os, sys\nprint('[0, \"9\"]')\n"
    loud += "def f(x):\n    os.write(1, b'no line end')\n    sys.stdout.buffer.write(b'x')\n"
    loud += "    print(x)\n    return x"
    assert quiet is not None and does(loud, "f(1)", "f(2)") == quiet


def test_records_need_the_token_and_come_once() -> None:
    token = "t0"
    lines = ['t0[0, "1"]', 't1[1, "2"]', 't0[2, "3"]', 't0[2, "4"]', "t0{", "t0[1]", "t0[3, 4]"]
    assert recorded_outputs("\n".join(lines), token, 4) == ["1", FAILED, FAILED, FAILED]


def test_a_stopped_run_keeps_what_it_had_printed() -> None:
    sources: list[str] = []

    def stopped(source: str) -> Run:
        sources.append(source)
        return Run("timeout", run(source).stdout.split("\n", 2)[1])

    answer = behaviour("def f(x): return x", ["f(1)", "f(2)"], stopped)
    assert answer is not None and answer.text == f"1\n{FAILED}"
    assert len(sources) == 1


def test_the_driver_is_a_function_of_program_and_calls() -> None:
    assert driver_source(ADD, ["add(1, 2)"], "t") == driver_source(ADD, ["add(1, 2)"], "t")
    compile(driver_source("x = '\ud800'", ["x"], "t"), "driver", "exec")


def test_dataclasses_and_main_guards_work_in_the_driver() -> None:
    program = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass P:\n    x: int\ndef f(x):\n    return P(x)\n"
        "if __name__ == '__main__':\n    raise SystemExit"
    )
    answer = does(program, "f(1)")
    assert answer is not None and answer.text == "P:P(x=1)"
