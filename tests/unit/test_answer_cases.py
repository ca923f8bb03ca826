"""Answers of kinds that have broken readers, graders and vote counts elsewhere.

answer_cases.jsonl holds our own variants, several of every kind; `topic` names the
kind, and `expected` follows docs/answers.md.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corl.answers import Answer, canonical, majority, read_answer

DOCS = Path(__file__).parents[2] / "docs" / "answers.md"
LINES = (Path(__file__).parent / "answer_cases.jsonl").read_text(encoding="utf-8").splitlines()
CASES: list[dict[str, Any]] = [json.loads(line) for line in LINES]


def of_kind(kind: str) -> list[Any]:
    """The cases of one kind, named by topic and number."""
    chosen = [case for case in CASES if case["kind"] == kind]
    return [pytest.param(case, id=f"{case['topic']}-{at}") for at, case in enumerate(chosen)]


def documented(heading: str) -> list[list[str]]:
    """The rows below one table heading of docs/answers.md, without code marks."""
    rows: list[list[str]] = []
    inside = False
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        inside = line.startswith(heading) or (inside and line.startswith("|"))
        if inside and "|---" not in line and not line.startswith(heading):
            rows.append([cell.strip(" `") for cell in line.strip("|").split("|")])
    return rows


def key_of(raw: str | None, **how: Any) -> str | None:
    """The key of a bare answer, None for no answer."""
    answer = None if raw is None else canonical(raw, **how)
    return answer.key if answer else None


def read_or_none(text: str | None) -> Answer | None:
    """What one voter says."""
    return None if text is None else read_answer(text)


@pytest.mark.parametrize("case", of_kind("equiv"))
def test_equal_answers_share_a_key_and_others_do_not(case: dict[str, Any]) -> None:
    first, second = (key_of(raw) for raw in case["input"])
    assert first is not None and second is not None
    assert (first == second) is case["expected"]


@pytest.mark.parametrize("case", of_kind("extract"))
def test_a_completion_gives_its_one_answer(case: dict[str, Any]) -> None:
    answer = read_answer(case["input"], lenient=case.get("lenient", False))
    assert (answer.key if answer else None) == key_of(case["expected"])


@pytest.mark.parametrize("case", of_kind("choice"))
def test_a_choice_gives_its_letter(case: dict[str, Any]) -> None:
    answer = read_answer(case["input"], "choice", choices=case.get("choices"))
    assert (answer.text if answer else None) == case["expected"]


@pytest.mark.parametrize("case", of_kind("vote"))
def test_a_group_elects_its_answer(case: dict[str, Any]) -> None:
    vote = majority([read_or_none(text) for text in case["input"]])
    if case["expected"] is None:
        assert vote is None
        return
    assert vote is not None
    assert vote.answer.key == key_of(case["expected"]["winner"])
    assert (vote.count, vote.total) == (case["expected"]["count"], case["expected"]["total"])


@pytest.mark.parametrize("case", of_kind("code"))
def test_a_program_is_read_whole(case: dict[str, Any]) -> None:
    answer = read_answer(case["input"], "code")
    assert answer is not None and answer.text == case["expected"]


@pytest.mark.parametrize("case", of_kind("bounded"))
def test_an_expression_beyond_the_budgets_gets_a_key_of_bounded_length(
    case: dict[str, Any],
) -> None:
    answer = read_answer(case["input"])
    assert answer is not None and len(answer.key) < 200
    assert read_answer(answer.text) == answer


def test_every_topic_has_several_cases() -> None:
    assert min(Counter(case["topic"] for case in CASES).values()) >= 4


@pytest.mark.parametrize(("first", "second", "verdict"), documented("| this |"))
def test_the_documented_pairs_hold(first: str, second: str, verdict: str) -> None:
    keys = key_of(first), key_of(second)
    assert None not in keys
    assert verdict == ("same" if keys[0] == keys[1] else "different")


@pytest.mark.parametrize(("text", "expected"), documented("| completion |"))
def test_the_documented_completions_hold(text: str, expected: str) -> None:
    answer = read_answer(text)
    wanted = None if expected == "no answer" else canonical(expected)
    assert answer == wanted
    assert answer is None or answer.text == expected


@pytest.mark.parametrize(("text", "expected"), documented("| completion to a choice |"))
def test_the_documented_choices_hold(text: str, expected: str) -> None:
    answer = read_answer(text, "choice")
    assert (answer.text if answer else "no answer") == expected
