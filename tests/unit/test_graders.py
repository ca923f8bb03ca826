"""Graders: right is right in any dress, nothing else is, and no text hangs or forges a verdict."""

import base64
import json
import os
import pickle
import zlib
from decimal import Decimal

import pytest

from corl.answers import canonical
from corl.errors import PromptError
from corl.evaluation.benchmarks import items_of, load_benchmark
from corl.evaluation.graders import Response, grader_of
from corl.evaluation.graders.answers import MathsGrader, number
from corl.evaluation.graders.code import called_names
from corl.evaluation.graders.livecodebench import same_output, with_prelude
from corl.evaluation.graders.packed_tests import CodeTest, pickled_text, read_tests
from corl.evaluation.sandbox import Limits


def verdicts(name, record, *texts, truncated=False):
    benchmark = load_benchmark(name)
    (item,) = items_of(benchmark, [record], where="here")
    with grader_of(benchmark, workers=2) as grader:
        graded = grader.grade([Response(item, text, truncated) for text in texts])
    assert all(one.right == (one.verdict == "right") for one in graded)
    return [one.verdict for one in graded]


def test_maths_is_right_in_any_dress_and_unread_is_its_own_class():
    pytest.importorskip("math_verify")
    record = {"problem": "x", "answer": "\\frac{1}{2}", "id": 1}
    texts = [
        "So \\boxed{0.5}.",
        "The answer is 1/2.",
        "\\boxed{2}",
        "I do not know",
        "",
        "Hm, 0.5. Or?",
    ]
    said = verdicts("math500", record, *texts)
    assert said == ["right", "right", "wrong", "no_answer", "no_answer", "no_answer"]
    assert verdicts("math500", record, "it is 0.5", truncated=True) == ["no_answer"]


def test_one_answer_given_twice_is_asked_about_once(monkeypatch):
    pytest.importorskip("math_verify")
    from corl.evaluation.graders import answers

    asked = []
    real = answers.grade_pairs
    monkeypatch.setattr(
        answers, "grade_pairs", lambda pairs, **rest: asked.extend(pairs) or real(pairs, **rest)
    )
    record = {"problem": "x", "answer": "7", "id": 1}
    texts = ["\\boxed{7}", "<answer>7</answer>", "answer is 8", "\\boxed{7}"]
    assert verdicts("math500", record, *texts) == ["right", "right", "wrong", "right"]
    assert sorted(asked) == [("7", "7"), ("7", "8")]


def test_hostile_maths_ends():
    pytest.importorskip("math_verify")
    record = {"problem": "x", "answer": "7", "id": 1}
    texts = ["\\boxed{9^{9^{9^{9}}}}", "\\boxed{" + "(" * 5000, "\\boxed{" + "1+" * 5000 + "1}"]
    (item,) = items_of(load_benchmark("math500"), [record], where="here")
    grader = MathsGrader(workers=2, timeout_s=1.0)
    try:
        graded = grader.grade([Response(item, text) for text in (*texts, "\\boxed{7}")])
    finally:
        grader.close()
    assert [one.right for one in graded] == [False, False, False, True]


CHOICE = {"question": "x", "choices": ["cat", "12", "dog", "0.5"], "answer": 2}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("\\boxed{C}", "right"), ("The answer is (c).", "right"), ("\\boxed{dog}", "right"),
        ("C. dog", "right"), ("\\boxed{B}", "wrong"), ("12", "wrong"), ("It is hard.", "no_answer"),
        ("A or C", "no_answer"), ("\\boxed{2}", "no_answer"),
    ],
)  # fmt: skip
def test_a_choice_is_a_letter_or_its_text(text, verdict):
    assert verdicts("mmlu", CHOICE, text) == [verdict]


@pytest.mark.parametrize(
    ("gold", "text", "verdict"),
    [
        ("100", "\\boxed{104.9}", "right"), ("100", "\\boxed{94}", "wrong"),
        ("-100", "\\boxed{100}", "wrong"), ("0", "\\boxed{0}", "right"),
        ("0", "\\boxed{0.001}", "wrong"), ("4.5e-3", "\\boxed{0.0046}", "right"),
        ("1.41", "\\boxed{\\sqrt{2}}", "right"), ("100", "\\boxed{x}", "wrong"),
        ("100", "It is not given.", "no_answer"), ("1e400", "\\boxed{10^{400}}", "right"),
    ],
)  # fmt: skip
def test_scibench_takes_numbers_within_five_per_cent(gold, text, verdict):
    assert verdicts("scibench", {"problem_text": "x", "answer_number": gold}, text) == [verdict]


@pytest.mark.parametrize(
    ("raw", "value"),
    [("1/4", Decimal("0.25")), ("-7", Decimal(-7)), ("x+1", None), ("(1,2)", None), ("9" * 900, 0)],
)
def test_the_value_of_an_answer(raw, value):
    read = number(canonical(raw))
    assert read == value or (value == 0 and (read is None or read > 10**500))


def test_mathvista_rounds_to_the_precision_of_the_row():
    pytest.importorskip("math_verify")
    record = {"query": "x", "pid": 1, "choices": None, "answer": "1.5", "precision": 1.0}
    said = verdicts("mathvista", record, "\\boxed{1.52}", "\\boxed{1.46}", "\\boxed{1.6}")
    assert said == ["right", "right", "wrong"]
    assert verdicts("mathvista", {**record, "precision": None}, "\\boxed{1.52}") == ["wrong"]


def test_vision_rows_are_graded_by_letter_or_value():
    pytest.importorskip("math_verify")
    choice = {"question": "x", "id": 1, "options": ["30", "40"], "answer": "B"}
    value = {"question": "x", "id": 1, "options": [], "answer": "40"}
    assert verdicts("mathvision", choice, "<answer>B</answer>", "\\boxed{40}", "\\boxed{A}") == [
        "right", "right", "wrong",
    ]  # fmt: skip
    assert verdicts("mathvision", value, "<answer>40</answer>", "<answer>B</answer>") == [
        "right", "wrong",
    ]  # fmt: skip
    we = {"question": "x", "option": "A. 3 cm; B. 4 cm", "answer": "A"}
    assert verdicts("wemath", we, "<answer>A</answer>", "<answer>4 cm</answer>") == [
        "right", "wrong",
    ]  # fmt: skip


ADD = {
    "text": "Add one.", "task_id": 1, "test_setup_code": "",
    "test_list": ["assert add(1) == 2", "assert add(-1) == 0"],
}  # fmt: skip


def test_mbpp_runs_the_assertions(monkeypatch):
    from corl.evaluation.graders import code

    monkeypatch.setattr(code, "_LIMITS", Limits(cpu_s=1.0, wall_s=20.0))
    good = "Here:\n```python\ndef add(x):\n    return x + 1\n```\nDone."
    bad = "```python\ndef add(x):\n    return 2\n```"
    sleeps = "```python\ndef add(x):\n    while True: pass\n```"
    forged = (
        "```python\nimport os\nclass E(int):\n    def __eq__(self, other): return True\n"
        "def add(x):\n    return E()\n```"
    )
    leaves = "```python\nimport os\ndef add(x):\n    os._exit(0)\n```"
    said = verdicts("mbpp", ADD, good, bad, sleeps, forged, leaves, "I cannot.", "")
    assert said == ["right", "wrong", "timeout", "wrong", "wrong", "wrong", "no_answer"]


def test_mbpp_calls_what_neither_python_nor_the_setup_defines():
    tests = "assert math.isclose(area(Node(1)), len([2]))\nfor x in range(2): check(x)"
    helpers = "import math\nclass Node:\n    pass\n"
    assert called_names(tests, helpers) == ["area", "check"]
    with pytest.raises(PromptError, match="no Python"):
        called_names("assert (", "")


def test_humaneval_reads_bodies_functions_and_chat():
    record = {
        "prompt": 'def add(x):\n    """Add one."""\n', "task_id": "H/0", "entry_point": "add",
        "test": "def check(candidate):\n    assert candidate(1) == 2\n",
    }  # fmt: skip
    texts = ["    return x + 1\n", "def add(x):\n    return x + 1",
             "Sure!\n```python\ndef add(x):\n    return x + 1\n```", "    return x\n"]  # fmt: skip
    assert verdicts("humaneval", record, *texts) == ["right", "right", "right", "wrong"]


def packed(value, protocol=None):
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


TESTS = [{"input": "1\n", "output": "2\n", "testtype": "stdin"}]


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("text", ["", "é\u2028\ud800", "x" * 300, "y" * 70_000])
def test_a_pickled_text_is_read_without_running_it(protocol, text):
    assert pickled_text(pickle.dumps(text, protocol)) == text


def test_tests_are_read_packed_and_plain():
    expected = [CodeTest("stdin", "1\n", "2\n")]
    assert read_tests(json.dumps(TESTS)) == read_tests(TESTS) == expected
    assert read_tests(packed(json.dumps(TESTS))) == expected
    assert read_tests("") == read_tests(None) == []


class _Runs:
    def __reduce__(self):
        return os.mkdir, ("/tmp/corl-unpickled",)


@pytest.mark.parametrize(
    "field",
    [
        packed(_Runs()), packed(TESTS), packed(json.dumps(TESTS).encode()), packed(("a", "b")),
        packed("[1"),
        "not base64!", base64.b64encode(b"no zlib").decode(), '{"a": 1}', '[{"a": 1}]',
        "[3]", base64.b64encode(zlib.compress(pickle.dumps("[]")[:-3])).decode(),
        base64.b64encode(zlib.compress(pickle.dumps("[]") + b"x")).decode(),
    ],
)  # fmt: skip
def test_any_other_pickle_is_refused_and_never_run(field):
    with pytest.raises(PromptError):
        read_tests(field)
    assert not os.path.exists("/tmp/corl-unpickled")


@pytest.mark.parametrize(
    ("said", "expected", "same"),
    [
        ("1 2\n3\n", "1 2\n3", True), ("  1 2  \n3", "1 2\n3", True),
        ("1.0 2\n3", "1 2.00\n3", True),
        ("1 2 3", "1 2\n3", False), ("1 2\n4", "1 2\n3", False), ("yes", "YES", False),
        ("", "1", False), ("nan", "nan", True),
        ("sNaN", "1", False), ("1e999999999", "1", False),
        ("1\n\n2", "1\n2", False),
    ],
)  # fmt: skip
def test_outputs_are_compared_line_by_line(said, expected, same):
    assert same_output(said, expected) is same


def test_the_prelude_comes_after_future_imports():
    program = with_prelude("from __future__ import annotations\nprint(sqrt(4))")
    compile(program, "p", "exec")
    assert program.startswith("from __future__ import annotations\n")
    assert program.count("__future__") == 1


def lcb(public, private="", metadata="{}"):
    return {
        "question_content": "x", "question_id": "q", "starter_code": "",
        "public_test_cases": json.dumps(public), "private_test_cases": private,
        "metadata": metadata,
    }  # fmt: skip


def test_livecodebench_reads_stdin(monkeypatch):
    from corl.evaluation.graders import livecodebench

    monkeypatch.setattr(livecodebench, "_CPU_S", 1.5)
    hidden = packed(json.dumps([{"input": "5\n", "output": "6", "testtype": "stdin"}]))
    row = lcb(TESTS, hidden)
    good = "```python\nprint(int(input()) + 1)\n```"
    public_only = "```python\nprint(2)\n```"
    main = "```python\ndef main():\n    print(floor(int(input()) + 1.5))\n"
    main += "if __name__ == '__main__':\n    main()\n```"
    slow = "```python\nwhile True: pass\n```"
    assert verdicts("livecodebench_v6", row, good, public_only, main, slow) == [
        "right", "wrong", "right", "timeout",
    ]  # fmt: skip


def test_livecodebench_calls_functions_and_methods():
    def case(arguments, value):
        lines = "\n".join(json.dumps(one) for one in arguments)
        return {"input": lines, "output": json.dumps(value), "testtype": "functional"}

    row = lcb(
        [case([[1, 2], 3], [[1, 4], [2, 5]])], "", json.dumps({"func_name": "shift"})
    )  # fmt: skip
    method = (
        "```python\nclass Solution:\n    def shift(self, xs: List[int], by: int):\n"
        "        return [(x, x + by) for x in xs]\n```"
    )
    function = "```python\ndef shift(xs, by):\n    return [[x, x + by] for x in xs]\n```"
    equal = (
        "```python\nclass E(list):\n    def __eq__(self, other): return True\n"
        "def shift(xs, by):\n    return E()\n```"
    )
    assert verdicts("livecodebench_v6", row, method, function, equal, "no code") == [
        "right", "right", "wrong", "wrong",
    ]  # fmt: skip
    with pytest.raises(PromptError, match="func_name"):
        verdicts("livecodebench_v6", {**row, "metadata": "{}"}, function)
