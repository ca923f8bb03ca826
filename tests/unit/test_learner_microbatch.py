"""Cutting rows into micro-batches."""

from hypothesis import given, settings
from hypothesis import strategies as st

from corl.policy.microbatch import microbatches, within_budget


def test_longest_rows_come_first_and_share_a_budget_of_padded_tokens():
    # 9 alone (2 x 9 > 12), 6 + 5 pad to 12, 3 + 3 + 1 pad to 9
    assert microbatches([3, 9, 5, 1, 6, 3], 12) == [[1], [4, 2], [0, 5, 3]]


def test_padding_counts_against_the_budget():
    # 8 + 1 real tokens fit into 10, but two rows padded to 8 do not
    assert microbatches([8, 1], 10) == [[0], [1]]
    assert microbatches([8, 1], 16) == [[0, 1]]


def test_a_row_above_the_budget_stands_alone():
    assert microbatches([50, 2, 40], 10) == [[0], [2], [1]]


def test_no_rows_give_no_micro_batch():
    assert microbatches([], 10) == []


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 100))
def test_every_row_is_in_exactly_one_group_that_keeps_the_budget(lengths, budget):
    groups = microbatches(lengths, budget)
    assert sorted(row for group in groups for row in group) == list(range(len(lengths)))
    for group in groups:
        longest = max(lengths[row] for row in group)
        assert len(group) * longest <= budget or len(group) == 1
    for before, after in zip(groups, groups[1:], strict=False):
        longest = max(lengths[row] for row in before)
        assert lengths[after[0]] <= min(lengths[row] for row in before)
        assert (len(before) + 1) * longest > budget, "the next row would have fitted"


def test_entries_without_padding_fill_the_budget_by_their_sum():
    # 6 does not fit beside 9; 5 fits beside 6; 3 would make 14
    assert microbatches([3, 9, 5, 1, 6], 12, is_padded=False) == [[1], [4, 2], [0, 3]]
    assert microbatches([8, 1], 10, is_padded=False) == [[0, 1]]


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 100))
def test_unpadded_groups_keep_the_budget_as_well(lengths, budget):
    groups = microbatches(lengths, budget, is_padded=False)
    assert sorted(entry for group in groups for entry in group) == list(range(len(lengths)))
    for group in groups:
        assert sum(lengths[entry] for entry in group) <= budget or len(group) == 1


def test_completions_of_one_prompt_are_split_evenly_where_they_exceed_the_budget():
    assert within_budget(10, [5, 5, 5, 5], 30) == [4]
    assert within_budget(10, [5, 5, 5, 5], 29) == [2, 2]
    assert within_budget(10, [5, 5, 5, 5, 5], 22) == [2, 2, 1]
    assert within_budget(10, [5, 90, 5], 20) == [1, 1, 1]


@settings(deadline=None)
@given(
    st.integers(1, 20), st.lists(st.integers(0, 20), min_size=1, max_size=12), st.integers(1, 99)
)
def test_runs_keep_order_and_budget(shared, lengths, budget):
    sizes = within_budget(shared, lengths, budget)
    assert sum(sizes) == len(lengths)
    start = 0
    for size in sizes:
        assert size == 1 or shared + sum(lengths[start : start + size]) <= budget
        start += size
