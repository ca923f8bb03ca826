"""math-verify decides, except by named rules; stuck workers are killed and counted apart."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corl.evaluation import grading_pool
from corl.evaluation.grading import (
    RULES,
    Grade,
    GradingError,
    GradingPool,
    count_verdicts,
    grade_pairs,
    keys_agree,
    write_disagreements,
)

pytest.importorskip("math_verify")


@pytest.fixture(scope="module")
def pool() -> Iterator[GradingPool]:
    with GradingPool(workers=2, timeout_s=1.0) as opened:
        yield opened


def grade(pool: GradingPool, gold: str, answer: str | None) -> Grade:
    return grade_pairs([(gold, answer)], pool=pool)[0]


EQUAL = [
    ("\\frac{1}{2}", "0.5"), ("1,234", "1234"), ("(x+1)^2", "x^2+2x+1"),
    ("3\\sqrt{2}", "\\sqrt{18}"),
    ("\\$18.90", "18.90"), ("90^\\circ", "90"), ("\\{1,2\\}", "\\{2,1\\}"), ("\\boxed{7}", "7"),
]  # fmt: skip
DIFFERENT = [
    ("2", "3"), ("\\frac{100}{3}", "33.3"), ("(1,2)", "(2,1)"), ("\\pm 2021", "2021"), ("x", "y"),
    ("4951077", "{@user 12 4951077 {1,1-3-10); 5 _X2. _Y1 z}"), ("5", "}{}{"), ("5", "\\frac{"),
]  # fmt: skip


def test_math_verify_decides_ordinary_pairs(pool: GradingPool) -> None:
    grades = grade_pairs(EQUAL + DIFFERENT, pool=pool)
    expected = ["right"] * len(EQUAL) + ["wrong"] * len(DIFFERENT)
    assert [g.verdict for g in grades] == expected, grades
    assert [g.rule for g in grades[:4]] == [None] * 4


# rule: pairs with the verdict that is true of them
BY_RULE = {
    "no_answer": [
        ("2", None, "wrong"), ("2", "  ", "wrong"), ("", "2", "wrong"), ("", "", "wrong"),
    ],
    "ellipsis": [
        ("1, 2, \\ldots, n", "1, 3, 5, \\ldots, 2n-1", "wrong"),
        ("2, 4, ..., 2n", "2, 4, \\dots, n", "wrong"),
        ("1, 2, \\ldots, n", "1, 2, \\ldots, n", "right"),
    ],
    "malformed_root": [
        ("4", "4\\sqrt(2)", "wrong"), ("7", "7\\sqrt[3](5)", "wrong"), ("9", "9\\sqrt", "wrong"),
    ],
    "tiny": [
        ("\\frac{1}{1500!}", "\\frac{1}{1502!}", "wrong"),
        ("0.0000012", "0.0000014", "wrong"),
        ("10^{-9}", "\\frac{1}{10^9}", "right"),
    ],
    "asymmetric": [("m \\geq \\sqrt{2}", "m \\in [\\sqrt{2}, +\\infty)", "right")],
    "unread": [("x", "\\", "wrong")],
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_rule_hands_the_pair_to_our_key(rule: str, pool: GradingPool) -> None:
    cases = BY_RULE[rule]
    grades = grade_pairs([(gold, answer) for gold, answer, _ in cases], pool=pool)
    assert [(g.rule, g.verdict) for g in grades] == [(rule, verdict) for *_, verdict in cases]


def test_every_rule_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "grading.md").read_text()
    assert [rule for rule in RULES if f"`{rule}`" not in text] == []


def test_both_orders_are_recorded(pool: GradingPool) -> None:
    found = grade(pool, "m \\geq \\sqrt{2}", "m \\in [\\sqrt{2}, +\\infty)")
    assert (found.forward, found.backward) == ("right", "wrong")


HOSTILE = ["9^{9^{9^{9}}}", "3^{3^{3^{3^{3}}}}", "((2^{99999})!)!"]


def test_time_out_is_its_own_class_and_the_pool_goes_on(pool: GradingPool) -> None:
    started = time.monotonic()
    grades = grade_pairs([*(("3", text) for text in HOSTILE), ("2", "2")], pool=pool)
    assert {g.verdict for g in grades[:3]} <= {"timeout", "error"}
    assert "timeout" in {g.verdict for g in grades[:3]}
    assert grades[3].verdict == "right"
    assert count_verdicts(grades)["right"] == 1
    assert count_verdicts(grades)["wrong"] == 0
    assert time.monotonic() - started < 60


def test_grading_works_outside_of_the_main_thread(pool: GradingPool) -> None:
    found: list[Grade] = []
    thread = threading.Thread(target=lambda: found.append(grade(pool, "2", "\\boxed{2}")))
    thread.start()
    thread.join(60)
    assert [g.verdict for g in found] == ["right"]


def test_closing_a_pool_does_not_wait_for_a_stuck_worker() -> None:
    stuck = GradingPool(workers=1, timeout_s=300)
    assert stuck.compare_all([("1", "1")])[0]["forward"] is True

    def ask() -> None:
        with pytest.raises(GradingError, match="closed"):
            stuck.compare_all([("3", HOSTILE[0]), ("1", "1")])

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.3)
    started = time.monotonic()
    stuck.close()
    thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - started < 5


def test_missing_math_verify_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('not here')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(GradingError, match=r"not here.*corl\[grading\]"):
        grade_pairs([("1", "1")], workers=1)


def test_disagreements_are_written_for_a_person(tmp_path: Path, pool: GradingPool) -> None:
    grades = grade_pairs(
        [("1", "1"), ("2", "2"), ("3", None)], same_key=lambda gold, _: gold == "1", pool=pool
    )
    path = tmp_path / "new" / "disagreements.jsonl"
    assert write_disagreements(grades, path) == 1
    (record,) = [json.loads(line) for line in path.read_text().splitlines()]
    assert record["gold"] == "2"
    assert (record["forward"], record["same_key"], record["verdict"]) == ("right", False, "right")


def test_keys_agree_only_where_both_sides_have_one() -> None:
    assert keys_agree("0.5", "\\frac{1}{2}") is True
    assert keys_agree("0.5", "0.6") is False
    assert keys_agree("0.5", "") is None


def test_pool_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="workers=0"):
        GradingPool(workers=0)


def test_an_exception_that_is_no_exception_stays_in_the_worker(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import io
    import os
    import sys

    from math_verify.errors import TimeoutException

    def fail(gold: str, answer: str) -> Iterator[dict]:
        if gold == "1":
            raise TimeoutException("too slow")
        yield {}

    read, write = os.pipe()
    kept = os.dup(1)
    try:
        os.dup2(write, 1)
        monkeypatch.setattr(grading_pool, "compare", fail)
        monkeypatch.setattr(grading_pool, "_limit_memory", lambda: None)
        monkeypatch.setattr(sys, "stdin", io.StringIO('["1", "1"]\n'))
        grading_pool.work()
    finally:
        os.dup2(kept, 1)
        for descriptor in (kept, write):
            os.close(descriptor)
    with os.fdopen(read) as file:
        messages = [json.loads(line) for line in file]
    assert messages == [
        {"ready": True}, {"error": "TimeoutException: too slow"}, {"done": True},
    ]  # fmt: skip
