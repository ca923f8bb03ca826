"""The chains, their prompt files, and the rewording that keeps an answer."""

import json
import random
import re
from pathlib import Path

import pytest

from corl.answers import read_answer
from corl.quickstart import task
from corl.quickstart.task import Problem

CHAIN = Problem(7, (("+", 5), ("-", 8), ("*", 3), ("m", 6), ("+", 4)))


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in task.prompts_path(name).read_text().splitlines()]


def reckon(prompt: str) -> str:
    """The last two values of a prompt, worked by Python's own arithmetic."""
    value, values = int(prompt[0]), []
    for operator, operand in re.findall(r"([-+*m])(\d)", prompt):
        n = int(operand)
        value = {"+": value + n, "-": value - n, "*": value * n, "m": max(value, n)}[operator] % 10
        values.append(str(value))
    return "".join(values[-2:])


def test_a_chain_worked_by_hand():
    # 7+5=12, 2-8=-6, 4*3=12, the larger of 2 and 6, 6+4=10.
    assert CHAIN.prompt == "7+5-8*3m6+4="
    assert CHAIN.values == (2, 4, 2, 6, 0)
    assert CHAIN.answer == "60"


def test_zero_stays_zero_under_times_and_loses_under_max():
    chain = Problem(5, (("+", 5), ("*", 9), ("m", 1), ("-", 2), ("*", 9)))
    assert chain.values == (0, 0, 1, 9, 1)


@pytest.mark.parametrize(
    ("separator", "text"),
    [(" ", "2 4 2 6 0 \\boxed{60}"), ("", "24260\\boxed{60}")],
)
def test_a_completion_states_its_values_and_its_answer(separator, text):
    completion = task.completion_of(CHAIN.values, separator=separator)
    assert completion == text
    assert read_answer(completion) == read_answer("\\boxed{60}") is not None


def test_no_two_answers_share_a_key():
    answers = [
        read_answer(f"\\boxed{{{tens}{units}}}") for tens in range(10) for units in range(10)
    ]
    assert len({answer.key for answer in answers if answer is not None}) == 100


def test_the_shipped_files_are_the_ones_that_the_seed_writes(tmp_path: Path):
    task.write_prompt_files(tmp_path)
    for name in ("train", "train_reordered", "heldout"):
        assert (tmp_path / f"{name}.jsonl").read_bytes() == task.prompts_path(name).read_bytes()


def test_no_prompt_is_both_trained_on_and_held_out():
    heldout = {row["prompt"] for row in rows("heldout")}
    assert len(heldout) == task.HELDOUT_ROWS
    for name in ("train", "train_reordered"):
        assert not heldout & {row["prompt"] for row in rows(name)}
    assert len({row["prompt"] for row in rows("train")}) == task.TRAIN_ROWS
    assert len(task.shipped_prompts(("train", "heldout"))) == task.TRAIN_ROWS + task.HELDOUT_ROWS


@pytest.mark.parametrize("name", ["train", "train_reordered", "heldout"])
def test_every_shipped_answer_is_right(name):
    for row in rows(name):
        assert row["answer"] == reckon(row["prompt"]), row


def test_reordered_rows_keep_ids_and_answers_and_mostly_change_wording():
    pairs = list(zip(rows("train"), rows("train_reordered"), strict=True))
    assert all(a["id"] == b["id"] and a["answer"] == b["answer"] for a, b in pairs)
    changed = sum(a["prompt"] != b["prompt"] for a, b in pairs) / len(pairs)
    assert changed > 0.7


def test_reordering_moves_only_what_may_trade_places():
    fixed = Problem(4, (("-", 3), ("*", 2), ("m", 8), ("+", 1), ("-", 6)))
    assert all(task.reordered(fixed, random.Random(seed)) == fixed for seed in range(20))
    # The last step stays: its value and the one before it are the answer.
    movable = Problem(4, (("+", 3), ("-", 2), ("m", 8), ("+", 1), ("-", 6)))
    seen = {task.reordered(movable, random.Random(seed)).prompt for seed in range(20)}
    assert seen == {"3+4-2m8+1-6=", "3-2+4m8+1-6="}


def test_problems_follow_from_the_seed():
    def first(seed):
        stream = task.distinct_problems(seed)
        return [next(stream).prompt for _ in range(50)]

    assert first(3) == first(3) != first(4)
