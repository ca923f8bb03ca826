"""Intervals over problems, and paired comparisons: by hand and by coverage."""

from itertools import product

import numpy as np
import pytest

from corl.evaluation.paired import paired_comparison
from corl.evaluation.resampling import problem_interval, wilson_interval

SIZES = (83, 164, 500, 1319)


def test_wilson_by_hand():
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3: 81/263, 15/148, 0/20, 1/29.
    for right, size, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        assert wilson_interval(right / size, size) == pytest.approx((low, high), abs=5e-5)


def test_answers_of_zero_and_one_get_wilsons_interval():
    values = [1.0] * 81 + [0.0] * 182
    assert problem_interval(values) == pytest.approx(wilson_interval(81 / 263, 263))


def test_nothing_right_is_no_interval_of_nothing():
    low, high = problem_interval([0.0] * 83)
    assert low == 0 and 0.03 < high < 0.06
    assert problem_interval([1.0] * 83) == pytest.approx((1 - high, 1.0))


def test_averaged_samples_narrow_the_interval_and_their_order_does_not_matter():
    averaged = [0.25, 0.5, 0.75, 0.5] * 40
    low, high = problem_interval(averaged)
    wide_low, wide_high = wilson_interval(0.5, 160)
    assert wide_low < low < 0.5 < high < wide_high
    assert problem_interval(sorted(averaged)) == pytest.approx((low, high))


def test_one_problem_has_none_and_a_share_lies_between_zero_and_one():
    assert problem_interval([1.0]) is None
    with pytest.raises(ValueError):
        problem_interval([0.5, 1.5])


@pytest.mark.parametrize(
    ("size", "share"), list(product(SIZES, (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95)))
)
def test_the_interval_of_zeros_and_ones_covers(size, share):
    """Exact coverage: each count weighed by its probability."""
    from scipy.stats import binom

    covered = 0.0
    for right in range(size + 1):
        weight = binom.pmf(right, size, share)
        if weight > 1e-7:
            low, high = problem_interval([1.0] * right + [0.0] * (size - right))
            covered += weight * (low <= share <= high)
    assert 0.93 <= covered <= 0.97


@pytest.mark.parametrize(
    ("size", "share"), [(83, 0.4), (83, 0.95), (164, 0.98), (500, 0.1), (500, 0.9)]
)
def test_the_interval_of_averaged_samples_covers(size, share):
    """Problems of unequal difficulty, eight samples each."""
    generator = np.random.default_rng(5)
    covered = []
    for _ in range(1000):
        difficulty = generator.beta(0.6 * share, 0.6 * (1 - share), size)
        values = generator.binomial(8, difficulty) / 8
        low, high = problem_interval(values.tolist())
        covered.append(low <= share <= high)
    assert 0.93 <= np.mean(covered) <= 0.97


def test_mcnemar_by_hand():
    ours = [1] * 9 + [0] * 1 + [1] * 5 + [0] * 5
    theirs = [0] * 9 + [1] * 1 + [1] * 5 + [0] * 5
    found = paired_comparison(ours, theirs)
    assert found.n == 20 and found.difference == pytest.approx(0.4)
    assert found.p_value == pytest.approx(2 * 11 / 1024)
    low, high = found.interval
    assert low < 0.4 < high and low > 0


def test_equal_models_are_not_told_apart():
    same = paired_comparison([1, 0, 1], [1, 0, 1])
    assert same.p_value == 1 and same.difference == 0
    assert paired_comparison([0.5, 0.25], [0.5, 0.25]).p_value == 1


def test_signs_are_flipped_exactly_where_there_are_few():
    # Of 8 sign patterns of 0.5, 0.25, 0.25 two sum to +-1.
    assert paired_comparison([0.5, 0.25, 0.25], [0, 0, 0]).p_value == pytest.approx(2 / 8)


def test_trading_places_trades_the_sign_alone():
    generator = np.random.default_rng(0)
    a, b = generator.binomial(8, 0.6, (2, 50)) / 8
    ours, theirs = paired_comparison(a, b), paired_comparison(b, a)
    assert ours.p_value == theirs.p_value
    assert ours.difference == -theirs.difference
    assert ours.interval == pytest.approx(tuple(-end for end in reversed(theirs.interval)))


@pytest.mark.parametrize("samples", [1, 8])
def test_chance_is_called_a_difference_as_often_as_said(samples):
    generator = np.random.default_rng(1)
    called, covered = [], []
    for _ in range(300):
        difficulty = generator.beta(1, 1, 120)
        a, b = (generator.binomial(samples, difficulty) / samples for _ in range(2))
        found = paired_comparison(a.tolist(), b.tolist())
        called.append(found.p_value < 0.05)
        covered.append(found.interval[0] <= 0 <= found.interval[1])
    # 300 draws are good to 1.3 points; the figures in docs/statistics.md rest on more.
    assert np.mean(called) <= 0.08
    assert 0.91 <= np.mean(covered) <= 0.99


def test_pairs_need_the_same_problems():
    with pytest.raises(ValueError, match="3 and 2 problems"):
        paired_comparison([1, 0, 1], [1, 0])
    assert paired_comparison([], []).p_value is None
