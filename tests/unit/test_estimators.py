"""pass@k and maj@k against an enumeration of every subset."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.evaluation.estimators import maj_at_k, pass_at_k

ANSWERS = st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=8)


def majority_is_right(drawn, right):
    counts = Counter(key for key in drawn if key is not None)
    best = max(counts.values(), default=0)
    winners = [key for key, count in counts.items() if count == best]
    return len(winners) == 1 and winners[0] in right


@given(ANSWERS, st.sets(st.sampled_from(["a", "b", "d"])), st.data())
@settings(max_examples=200, deadline=None)
def test_majority_of_k_is_the_share_of_all_subsets(answers, right, data):
    k = data.draw(st.integers(1, len(answers)))
    subsets = list(combinations(answers, k))
    expected = sum(majority_is_right(drawn, right) for drawn in subsets) / len(subsets)
    assert maj_at_k(Counter(answers), right, k) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_pass_of_k_is_the_share_of_all_subsets(hits, data):
    k = data.draw(st.integers(1, len(hits)))
    subsets = list(combinations(hits, k))
    expected = sum(map(any, subsets)) / len(subsets)
    assert pass_at_k(len(hits), sum(hits), k) == pytest.approx(expected, abs=1e-12)


def test_by_hand():
    assert maj_at_k({"a": 2, "b": 1}, "a", 3) == 1
    assert maj_at_k({"a": 2, "b": 1}, "a", 2) == pytest.approx(1 / 3)
    assert maj_at_k({"a": 4, "b": 4}, "a", 8) == 0
    assert maj_at_k({"a": 1, None: 7}, "a", 8) == 1
    assert maj_at_k({None: 8}, None, 8) == 0
    assert maj_at_k({"a": 8}, None, 8) == 0
    assert pass_at_k(8, 0, 8) == 0 and pass_at_k(8, 1, 8) == 1


def test_many_samples_stay_exact_and_quick():
    counts = {"a": 20, **{f"x{index}": 1 for index in range(40)}, None: 4}
    assert 0.99 < maj_at_k(counts, "a", 32) <= 1
    assert pass_at_k(2000, 1, 1000) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pass_at_k(3, 4, 1),
        lambda: pass_at_k(3, 1, 4),
        lambda: pass_at_k(3, 1, 0),
        lambda: maj_at_k({"a": 3}, "a", 4),
        lambda: maj_at_k({"a": -1, "b": 3}, "a", 1),
    ],
)
def test_what_makes_no_sense_is_refused(call):
    with pytest.raises(ValueError):
        call()
