"""What is said of two models without labels, against direct counts over pairs of samples."""

import random
from itertools import product

import pytest
from sklearn.metrics import cohen_kappa_score

from corl.diversity.answer_table import Answers
from corl.diversity.label_free import (
    FEWEST_ANSWERS,
    chances_of_right,
    label_free_overlap,
    pool_of,
)


def tallies(*groups):
    return Answers("m", "m", tuple(map(tuple, groups))).tallies()


def test_agreement_counts_pairs_and_no_abstentions():
    a, b = tallies("xy", [None, "z"]), tallies("xx", [None, None])
    found = label_free_overlap(a, b, pool_of([a, b]))
    # Problem 1: x-x twice of 4 pairs; problem 2: none.
    assert found.agreement == pytest.approx(2 / 8)
    # Between problems: x of a's first never meets b's second; z of a's second never meets x.
    assert found.beyond_chance == pytest.approx(2 / 8)


def test_chance_is_agreement_of_answers_to_other_problems():
    # All say the same everywhere: agreement tells nothing.
    a = tallies("c", "c", "c", "x")
    b = tallies("c", "c", "c", "y")
    found = label_free_overlap(a, b, pool_of([a, b]))
    pairs = [(p, q) for p, q in product(range(4), repeat=2) if p != q]
    chance = sum("cccx"[p] == "cccy"[q] for p, q in pairs) / len(pairs)
    assert found.agreement == pytest.approx(3 / 4)
    assert found.beyond_chance == pytest.approx((3 / 4 - chance) / (1 - chance))


def test_minority_answers_are_those_that_the_pool_gives_less_often():
    a, b, c = tallies("ccww"), tallies("cwww"), tallies("cccc")
    found = label_free_overlap(a, b, pool_of([a, b, c]))
    # c leads with 7 of 12: a departs twice, b three times, always to w.
    assert found.minority_agreement == 1
    apart = tallies("cvvv")
    found = label_free_overlap(a, apart, pool_of([a, apart, c]))
    assert found.minority_agreement == 0
    low, high = found.minority_agreement_interval or (0.0, 0.0)
    assert low == 0


def test_a_shared_first_place_leaves_no_minority():
    # 1/3 + 1/3 + 1/3 in either order of adding: a tie must not hang on rounding.
    a, b, c = tallies("xyz"), tallies("yzx"), tallies("zxy")
    found = label_free_overlap(a, b, pool_of([a, b, c]))
    assert found.minority_agreement is None
    assert found.minority_agreement_interval is None


def test_models_weigh_the_same_whatever_their_samples():
    pool = pool_of([tallies("xxxxxxxx"), tallies("y")])
    assert pool.shares == [{"x": 0.5, "y": 0.5}]
    assert (pool.num_models, pool.answers_per_problem) == (2, 9)


def test_chances_of_right_are_those_of_agreeing_draws():
    chances = chances_of_right({"x": 0.6, "y": 0.2})  # 0.2 said nothing
    assert chances["x"] == pytest.approx(0.36 / 0.44)
    assert chances["y"] == pytest.approx(0.04 / 0.44)
    assert chances_of_right({"x": 1.0}) == {"x": 1.0}
    assert chances_of_right({}) == {}


def test_without_enough_answers_there_is_no_estimate():
    few = tallies("x", "y")
    found = label_free_overlap(few, few, pool_of([few] * (FEWEST_ANSWERS - 1)))
    assert found.kappa_estimate is None
    assert "--samples" in found.reason
    alone = tallies("xxxxxxxx", "yyyyyyyy")
    assert label_free_overlap(alone, alone, pool_of([alone])).kappa_estimate is None


def test_where_all_agree_there_is_no_estimate():
    same = tallies("xxxx", "yyyy")
    found = label_free_overlap(same, same, pool_of([same, same]))
    assert found.agreement == 1
    assert found.kappa_estimate is None
    assert "agree" in found.reason


def test_with_a_pool_that_knows_the_answer_the_estimate_is_kappa():
    """Two noisy models beside nine that are right: the pool's answer is the label."""
    draw = random.Random(0)
    hard = [draw.random() < 0.5 for _ in range(400)]

    def model(error, kind):
        return [
            "r" if draw.random() > (error if is_hard else 0.1) else f"{kind}{draw.randrange(2)}"
            for is_hard in hard
        ]

    a, b = model(0.8, "e"), model(0.8, "e")
    knowing = [tallies(*"r" * 400)] * 9
    found = label_free_overlap(
        tallies(*a), tallies(*b), pool_of([tallies(*a), tallies(*b), *knowing])
    )
    kappa = cohen_kappa_score([key == "r" for key in a], [key == "r" for key in b])
    assert kappa > 0.2
    assert found.kappa_estimate == pytest.approx(kappa, abs=0.03)
    assert found.reason is None
