"""Cohen's kappa of right and wrong, its shares and their intervals."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from corl.diversity import Interval, error_overlap
from corl.errors import PromptError

ANSWERS = st.one_of(st.none(), st.sampled_from("abc"))
PROBLEMS = st.lists(st.tuples(st.booleans(), st.booleans(), ANSWERS, ANSWERS), min_size=1)


def vectors(both, only_a, only_b, neither):
    a = [1] * both + [1] * only_a + [0] * only_b + [0] * neither
    b = [1] * both + [0] * only_a + [1] * only_b + [0] * neither
    return a, b


@given(PROBLEMS)
@settings(max_examples=60, deadline=None)
def test_kappa_and_shares_are_those_of_a_direct_count(problems):
    a, b, keys_a, keys_b = map(list, zip(*problems, strict=True))
    found = error_overlap(a, b, answers_a=keys_a, answers_b=keys_b)
    n = len(problems)
    assert found.n == n
    assert found.exactly_one_right == pytest.approx(sum(x != y for x, y, *_ in problems) / n)
    assert found.at_least_one_right == pytest.approx(sum(x or y for x, y, *_ in problems) / n)
    same = sum(not x and not y and k is not None and k == m for x, y, k, m in problems)
    assert found.same_wrong_answer == pytest.approx(same / n)
    assert found.accuracy_a == pytest.approx(sum(a) / n)
    assert found.accuracy_b == pytest.approx(sum(b) / n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = cohen_kappa_score(a, b, labels=[False, True])
    if math.isnan(theirs):
        assert found.kappa is None
        assert found.kappa_max is None
    else:
        assert found.kappa == pytest.approx(theirs, abs=1e-12)
        assert found.kappa <= found.kappa_max + 1e-12


def test_more_random_vectors_equal_scikit_learn():
    random = np.random.default_rng(3)
    for _ in range(20):
        rate = random.uniform(0.1, 0.9, size=2)
        a, b = random.random((2, 300)) < rate[:, None]
        assert error_overlap(a, b).kappa == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)


@pytest.mark.parametrize(("value", "said"), [(1, "right"), (0, "wrong")])
def test_kappa_is_undefined_where_nothing_varies(value, said):
    found = error_overlap([value] * 5, [value] * 5)
    assert found.kappa is None
    assert found.kappa_max is None
    assert found.kappa_interval is None
    assert said in found.kappa_reason
    assert found.exactly_one_right == 0
    assert found.at_least_one_right == value


def test_one_constant_model_has_kappa_zero():
    found = error_overlap([1, 1, 1, 1], [1, 0, 0, 1])
    assert found.kappa == pytest.approx(0)
    assert found.kappa_max == pytest.approx(0)
    assert found.kappa_reason is None
    assert error_overlap([1, 1], [0, 0]).kappa == pytest.approx(0)


def test_two_abstentions_are_not_the_same_answer():
    found = error_overlap(
        [0, 0, 0], [0, 0, 1], answers_a=[None, "x", "y"], answers_b=[None, "x", "y"]
    )
    assert found.same_wrong_answer == pytest.approx(1 / 3)
    assert error_overlap([0, 0], [0, 1]).same_wrong_answer is None


def test_unequal_strength_caps_kappa():
    # 30 % and 60 % right: agreement is at most 0.7, by chance it is 0.46.
    found = error_overlap(*vectors(30, 0, 30, 40))
    assert found.kappa_max == pytest.approx((0.7 - 0.46) / (1 - 0.46))
    assert found.kappa == pytest.approx(found.kappa_max)
    less = error_overlap(*vectors(20, 10, 40, 30))
    assert less.kappa_max == pytest.approx(found.kappa_max)
    assert less.kappa < less.kappa_max


# Published: share of problems with exactly one right (c), with at least one right (u), and kappa.
@pytest.mark.parametrize(
    ("c", "u", "published"),
    [(0.240, 0.664, 0.516), (0.220, 0.626, 0.560), (0.246, 0.620, 0.508), (0.190, 0.746, 0.582)],
)
def test_a_pair_of_equals_follows_from_two_shares(c, u, published):
    n = 1000
    found = error_overlap(
        *vectors(round(n * (u - c)), round(n * c / 2), round(n * c / 2), round(n * (1 - u)))
    )
    assert found.exactly_one_right == pytest.approx(c)
    assert found.at_least_one_right == pytest.approx(u)
    assert found.accuracy_a == found.accuracy_b == pytest.approx(u - c / 2)
    assert found.kappa == pytest.approx(published, abs=0.0006)


# The first model's accuracy is known from its pair with itself.
@pytest.mark.parametrize(
    ("accuracy", "c", "u", "published"),
    [
        (0.516, 0.312, 0.630, 0.38),
        (0.516, 0.312, 0.554, 0.38),
        (0.516, 0.294, 0.604, 0.41),
        (0.516, 0.242, 0.632, 0.52),
        (0.651, 0.294, 0.714, 0.42),
        (0.651, 0.242, 0.698, 0.51),
        (0.651, 0.244, 0.704, 0.51),
    ],
)
def test_a_pair_follows_from_two_shares_and_one_accuracy(accuracy, c, u, published):
    n = 1000
    only_a = round(n * (accuracy - (u - c)))
    found = error_overlap(
        *vectors(round(n * (u - c)), only_a, round(n * c) - only_a, round(n * (1 - u)))
    )
    assert found.accuracy_a == pytest.approx(accuracy)
    assert found.kappa == pytest.approx(published, abs=0.006)


def test_the_first_model_is_a():
    found = error_overlap([1, 1, 1, 0], [1, 0, 0, 0])
    assert (found.accuracy_a, found.accuracy_b) == (0.75, 0.25)


def test_every_sample_of_one_model_meets_every_sample_of_the_other():
    a, b = [[1, 0], [0, 0]], [[1, 1, 0], [0, 1, 0]]
    keys_a, keys_b = [["r", "w"], ["x", None]], [["r", "r", "w"], ["x", "r", None]]
    found = error_overlap(a, b, answers_a=keys_a, answers_b=keys_b)
    pairs = [
        (x, y, k, m)
        for row in range(2)
        for x, k in zip(a[row], keys_a[row], strict=True)
        for y, m in zip(b[row], keys_b[row], strict=True)
    ]
    direct = cohen_kappa_score([one[0] for one in pairs], [one[1] for one in pairs])
    assert found.kappa == pytest.approx(direct)
    assert found.n == 2
    same = [not x and not y and k is not None and k == m for x, y, k, m in pairs]
    assert found.same_wrong_answer == pytest.approx(sum(same) / 12)
    turned = error_overlap([row[::-1] for row in a], b)
    assert turned.kappa == pytest.approx(found.kappa)


def test_samples_of_a_problem_are_no_further_problems():
    random = np.random.default_rng(0)
    a, b = random.random((2, 100)) < 0.5
    once = error_overlap(a, b).kappa_interval
    copied = error_overlap(np.tile(a[:, None], 4), np.tile(b[:, None], 4)).kappa_interval
    assert copied == pytest.approx(once, abs=1e-9)


@pytest.mark.parametrize(
    ("a", "b", "keys", "said"),
    [
        ([1], [1, 0], {}, "1 problems and right_b 2"),
        ([], [], {}, "shape"),
        ([1, 2], [1, 0], {}, "neither right"),
        ([1, None], [1, 0], {}, "neither right"),
        (["1", "0"], [1, 0], {}, "neither right"),
        ([1, math.nan], [1, 0], {}, "neither right"),
        ([[1, 0], [1]], [1, 0], {}, "same number of samples"),
        ([1], [1], {"answers_a": ["x"]}, "one model only"),
        ([1, 0], [1, 0], {"answers_a": ["x"], "answers_b": ["x", "y"]}, "answers_a"),
    ],
)
def test_what_does_not_fit_is_refused(a, b, keys, said):
    with pytest.raises(PromptError, match=said):
        error_overlap(a, b, **keys)
    with pytest.raises(ValueError):
        error_overlap(a, b, **keys)


def test_intervals_hold_their_figures_and_repeat():
    a, b = vectors(90, 15, 12, 83)
    found = error_overlap(a, b, answers_a=["x"] * 200, answers_b=["x"] * 200)
    for name in ("kappa", "exactly_one_right", "same_wrong_answer", "at_least_one_right",
                 "accuracy_a", "accuracy_b"):  # fmt: skip
        interval = getattr(found, f"{name}_interval")
        assert isinstance(interval, Interval)
        assert interval.low < getattr(found, name) < interval.high
    assert error_overlap(a, b).kappa_interval == found.kappa_interval
    # The large-sample standard error (delta method) is 0.047 here.
    low, high = found.kappa_interval
    assert (high - low) / (2 * 1.96) == pytest.approx(0.047, rel=0.06)


def test_full_agreement_is_no_certainty():
    found = error_overlap([1, 0] * 50, [1, 0] * 50)
    assert found.kappa == 1
    assert found.kappa_interval.high == 1
    assert 0.9 < found.kappa_interval.low < 0.98


def test_one_problem_has_no_interval():
    found = error_overlap([1], [0])
    assert found.kappa_interval is None
    assert found.exactly_one_right_interval is None


def cells(kappa, p_a, p_b):
    chance = p_a * p_b + (1 - p_a) * (1 - p_b)
    both = (chance + kappa * (1 - chance) - 1 + p_a + p_b) / 2
    return [both, p_a - both, p_b - both, 1 - p_a - p_b + both]


# benchmarks/kappa_coverage.py runs 1,000 probes a case; 200 of them have a standard error of 1.5
# points, so this catches a wrong scale or a missing prior, not a point too few.
@pytest.mark.parametrize("kappa", [0.0, 0.4, 0.9])
def test_intervals_cover(kappa):
    random = np.random.default_rng(5)
    covered = 0
    for counts in random.multinomial(256, cells(kappa, 0.5, 0.5), size=200):
        low, high = error_overlap(*vectors(*counts)).kappa_interval
        covered += low <= kappa <= high
    assert 0.905 <= covered / 200 <= 0.985


def test_it_imports_no_torch():
    code = "import sys, corl.diversity; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
