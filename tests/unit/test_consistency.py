"""Ensembles and consistency by hand: ties, abstentions, weights, programs."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corl.evaluation.code_examples import example_calls
from corl.evaluation.consistency import consistency_score, leading_answers
from corl.evaluation.ensemble import ensemble_majority, pooled

KEYS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.booleans()), max_size=9)


def test_leading_answers_by_hand():
    assert leading_answers(["a", "b", "a"]) == ["a"]
    assert leading_answers(["a", "b", None, None, None]) == ["a", "b"]
    assert leading_answers([None, None]) == leading_answers([]) == []
    assert leading_answers(["a", "b", "b"], [3, 1, 1]) == ["a"]
    assert leading_answers(["a", "b"], [0, 0]) == []
    assert leading_answers(["a", "b", "b"], [0.3, 0.1, 0.2]) == ["a", "b"]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weights_are_finite_and_not_negative(weight):
    with pytest.raises(ValueError, match="finite"):
        leading_answers(["a"], [weight])


def test_consistency_by_hand():
    def of(*pairs, **options):
        return consistency_score(*zip(*pairs, strict=True), **options)

    assert of(("a", True), ("a", True), ("b", False)) == 1
    assert of(("a", True), ("b", False), ("b", False)) == 0
    # A tie of a right and a wrong answer: half, or nothing where ties abstain.
    assert of(("a", True), ("b", False)) == 0.5
    assert of(("a", True), ("b", False), ties="abstain") == 0
    # Three programs that behave alike on the examples, two of which pass the tests.
    assert of(("a", True), ("a", True), ("a", False), ("b", True)) == pytest.approx(2 / 3)
    # Abstentions take no part.
    assert of((None, False), (None, False), ("a", True)) == 1
    assert of((None, False), (None, False)) == 0


@given(KEYS, st.sampled_from(["abstain", "share"]), st.randoms())
def test_no_order_of_completions_changes_a_score(pairs, ties, chance):
    shuffled = pairs.copy()
    chance.shuffle(shuffled)
    scores = [
        consistency_score([key for key, _ in some], [hit for _, hit in some], ties=ties)
        for some in (pairs, shuffled)
    ]
    assert scores[0] == pytest.approx(scores[1])


def test_taking_the_first_seen_comes_to_the_same_on_average():
    """The original's rule for ties, averaged over orders."""
    pairs = [("a", True), ("a", True), ("b", False), ("b", False), ("c", True)]
    chance, total = random.Random(0), 0
    for _ in range(4000):
        chance.shuffle(pairs)
        counts: dict[str, int] = {}
        for key, _ in pairs:
            counts[key] = counts.get(key, 0) + 1
        total += max(counts, key=lambda key: counts[key]) == "a"
    assert total / 4000 == pytest.approx(0.5, abs=0.03)
    keys, right = zip(*pairs, strict=True)
    assert consistency_score(keys, right) == 0.5


def test_members_give_equal_parts_and_other_places():
    left, right = [f"l{i}" for i in range(8)], [f"r{i}" for i in range(8)]
    assert [key for _, key in pooled([left, right], 8)] == left[:4] + right[4:]
    assert [key for _, key in pooled([left[:4], right[:4]], 8)] == left[:4] + right[:4]
    third = [f"t{i}" for i in range(8)]
    assert [key for _, key in pooled([left, right, third], 8)] == left[:3] + right[3:6] + third[6:8]
    for members, votes in [([left], 9), ([left[:3], right], 8), ([left, right], 1)]:
        with pytest.raises(ValueError):
            pooled(members, votes)


def test_a_pooled_majority_by_hand():
    assert ensemble_majority([["a"] * 4, ["b"] * 3 + ["a"]], votes=8) == "a"
    assert ensemble_majority([["a"] * 4, ["b"] * 4], votes=8) is None
    assert ensemble_majority([["a"] * 4, ["b"] * 4], votes=8, weights=[1, 2]) == "b"
    assert ensemble_majority([[None] * 4, [None] * 3 + ["b"]], votes=8) == "b"
    assert ensemble_majority([[None] * 4, [None] * 4], votes=8) is None
    with pytest.raises(ValueError, match="one for each"):
        ensemble_majority([["a"], ["b"]], votes=2, weights=[1])


def test_a_member_that_is_sure_outvotes_one_that_is_not():
    """Pooling is no average of members: the paper's ensemble can beat both."""
    sure, unsure = ["a"] * 4, ["b", "c", "d", "e"]
    assert ensemble_majority([sure, unsure], votes=8) == "a"


def test_example_calls_of_a_prompt():
    prompt = '''
def add(numbers: list[int], by: int = 1) -> list:
    """Add (to all).
    >>> add([1, 2], by=3)
    [4, 5]
    >>> add([])
    []
    add([1, 2], by=3) ➞ [4, 5], and preadd([9]) or x.add([8]) are others; add(numbers) is none
    add(")", 2) == 5
    """
'''
    assert example_calls(prompt, ["add"]) == ("add([1, 2], by=3)", "add([])", "add(')', 2)")


def test_example_calls_of_assertions_without_what_they_expect():
    tests = "assert f(3) == 4\nassert f((1, {2: 'x'})) == None\nassert g(f(1)) == 2\nassert f(-1)"
    assert example_calls(tests, ["f"]) == ("f(3)", "f((1, {2: 'x'}))", "f(1)", "f(-1)")


@pytest.mark.parametrize("text", ["f(" * 5000, "f(" + "(" * 3000, "f(1" + ")" * 10, "f", ""])
def test_hostile_prompts_end(text):
    assert len(example_calls(text, ["f"])) <= 1
