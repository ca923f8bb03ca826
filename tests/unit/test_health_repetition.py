"""Repeated n-grams, counted by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corl.run.health.repetition import repeated_share


def test_a_completion_without_repetition_has_none():
    assert repeated_share([[1, 2, 3, 4, 5, 6]]) == 0.0


def test_a_loop_is_almost_all_repetition():
    """1 2 1 2 ...: twelve tokens, nine 4-grams, two different ones."""
    assert repeated_share([[1, 2] * 6]) == pytest.approx(7 / 9)


def test_completions_do_not_repeat_one_another():
    assert repeated_share([[1, 2, 3, 4], [1, 2, 3, 4]]) == 0.0


def test_long_completions_weigh_more():
    """One 4-gram without, seven with six repeated ones."""
    assert repeated_share([[1, 2, 3, 4], [7] * 10]) == pytest.approx(6 / 8)


def test_too_short_completions_say_nothing():
    assert repeated_share([]) is None
    assert repeated_share([[1, 1, 1], []]) is None
    assert repeated_share([[1, 1, 1], [1, 2, 3, 4]]) == 0.0


@given(st.lists(st.lists(st.integers(0, 3), max_size=30), max_size=5), st.integers(1, 5))
def test_it_equals_a_slow_count(completions, n):
    grams = repeated = 0
    for ids in completions:
        seen = []
        for start in range(len(ids) - n + 1):
            gram = ids[start : start + n]
            repeated += gram in seen
            grams += 1
            seen.append(gram)
    expected = repeated / grams if grams else None
    assert repeated_share(completions, n=n) == expected
