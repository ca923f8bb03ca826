"""Training prompts that stand in a benchmark: word for word, nearly, and siblings."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corl.config import PromptsConfig
from corl.errors import RecipeError
from corl.evaluation.contamination import Problem, overlap
from corl.evaluation.suite.contaminated import contamination_of

QUESTION = (
    "A farmer has 12 cows and buys 7 more at the market on Monday. On Tuesday he sells 4 of them "
    "to his neighbour. How many cows does the farmer have on Wednesday?"
)
BENCHMARK = [Problem("b0", QUESTION, "15"), Problem("b1", "What is $2^{10}$?", "1024")]


def found(*texts, keys=None, **options):
    keys = keys or [None] * len(texts)
    rows = [
        Problem(f"t{i}", text, key) for i, (text, key) in enumerate(zip(texts, keys, strict=True))
    ]
    return overlap(rows, BENCHMARK, **options)


def ids(matches):
    return [(match.train_id, match.benchmark_id) for match in matches]


def test_case_and_white_space_make_no_difference():
    result = found("Unrelated.", QUESTION.upper().replace(" ", " \n "))
    assert ids(result.exact) == [("t1", "b0")]
    assert (result.exact_problems, result.near_problems, result.problems) == (1, 0, 2)


def test_a_sign_makes_another_problem():
    assert found("What is $2^{-10}$?").exact == ()


def test_a_planted_near_duplicate_is_found():
    planted = QUESTION.replace("A farmer has", "Some farmer has").replace("at the market ", "")
    result = found("Unrelated.", planted)
    assert result.exact == () and ids(result.near) == [("t1", "b0")]
    assert 0.7 <= result.near[0].similarity < 1


def test_answers_tell_siblings_from_copies():
    sibling = QUESTION.replace("12", "13")
    assert ids(found(sibling, keys=["16"]).siblings) == [("t0", "b0")]
    assert ids(found(sibling, keys=["15"]).near) == [("t0", "b0")]
    assert ids(found(sibling).near) == [("t0", "b0")]


def test_the_words_in_another_order_or_a_short_common_phrase_are_no_duplicate():
    shuffled = " ".join(sorted(QUESTION.split()))
    result = found(shuffled, "How many cows does the farmer have on Wednesday?")
    assert result.near == result.exact == ()


def test_a_problem_found_twice_counts_once():
    result = found(QUESTION, QUESTION, QUESTION.replace("Monday", "Friday"))
    assert len(result.exact) == 2 and result.exact_problems == 1 and result.near_problems == 0


@given(st.lists(st.text(max_size=40), max_size=5))
def test_every_text_is_its_own_duplicate(texts):
    problems = [Problem(str(index), text) for index, text in enumerate(texts)]
    matched = {(one.train_id, one.benchmark_id) for one in overlap(problems, problems).exact}
    assert {(str(index), str(index)) for index in range(len(texts))} <= matched


def test_a_similarity_without_meaning_is_refused():
    with pytest.raises(ValueError):
        found(QUESTION, similarity=0)


def test_a_benchmark_that_is_not_known_is_refused(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"prompt": "x"}\n')
    with pytest.raises(RecipeError, match="did you mean math500"):
        contamination_of(PromptsConfig(file=str(tmp_path / "p.jsonl")), ["math50"])


@pytest.mark.skipif("CORL_DATA" not in os.environ, reason="CORL_DATA names no folder of data")
def test_real_training_data_holds_no_problem_of_math500_word_for_word():
    """Two problems stand there nearly: read by eye, they are the same problems reworded."""
    data = Path(os.environ["CORL_DATA"])
    prompts = PromptsConfig(
        file=str(data / "math_level345_train.jsonl"), field="problem", id_field=""
    )
    result = contamination_of(prompts, [f"math500={data / 'math500.jsonl'}"])["math500"]
    assert result.exact_problems == 0
    assert {match.benchmark_text[:32] for match in result.near} == {
        "How many integers are in the sol",
        "The parabola with equation $y=ax",
    }
