"""Student's interval over seeds, against hand-worked figures."""

import pytest

from corl.evaluation.intervals import seed_interval


def test_three_seeds_take_the_quantile_of_two_degrees_of_freedom():
    low, high = seed_interval([1.0, 2.0, 3.0])
    assert low == pytest.approx(2 - 4.303 / 3**0.5)
    assert high == pytest.approx(2 + 4.303 / 3**0.5)


def test_two_seeds_are_wide():
    low, high = seed_interval([0.0, 2.0])
    assert (low, high) == pytest.approx((1 - 12.706, 1 + 12.706))


def test_one_seed_has_no_interval():
    assert seed_interval([0.5]) is None


def test_seeds_that_agree_have_no_width():
    assert seed_interval([0.5, 0.5, 0.5]) == (0.5, 0.5)
