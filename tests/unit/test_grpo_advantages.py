"""Advantages against numbers worked out by hand."""

import math
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.errors import NonFiniteLossError, RecipeError
from corl.grpo import flat_groups, group_advantages, reinforce_pp_advantages

NAN = float("nan")


def test_group_scale_divides_by_unbiased_deviation_plus_epsilon():
    # mean 1/4, deviations 3/4 and -1/4, unbiased variance (9 + 3) / 16 / 3 = 1/4
    got = group_advantages(torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    high, low = 0.75 / (0.5 + 1e-4), -0.25 / (0.5 + 1e-4)
    torch.testing.assert_close(got, torch.tensor([[high, low, low, low]]))


def test_epsilon_is_added_to_the_deviation_and_not_to_the_variance():
    # mean 1e-4, unbiased deviation 1e-4 * sqrt(2)
    got = group_advantages(torch.tensor([[2e-4, 0.0]], dtype=torch.float64), eps=1e-4)
    assert got[0, 0].item() == pytest.approx(1 / (math.sqrt(2) + 1), rel=1e-9)


def test_none_only_centres():
    got = group_advantages(torch.tensor([[3.0, 1.0, 2.0], [0.0, 6.0, 0.0]]), scale="none")
    torch.testing.assert_close(got, torch.tensor([[1.0, -1.0, 0.0], [-2.0, 4.0, -2.0]]))


def test_batch_scale_keeps_flat_groups_in_its_deviation():
    # six rewards 1 0 1 1 1 1: mean 5/6, squares 5/36 * 1 + 25/36 -> variance (30/36) / 5 = 1/6
    got = group_advantages(torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), scale="batch")
    value = 0.5 / (math.sqrt(1 / 6) + 1e-4)
    torch.testing.assert_close(got, torch.tensor([[value, -value], [0.0, 0.0], [0.0, 0.0]]))


def test_batch_scale_leaves_unlabelled_groups_out_of_its_deviation():
    rewards = torch.tensor([[1.0, 0.0], [1.0, 1.0], [NAN, 900.0]])
    labelled = torch.tensor([True, True, False])
    got = group_advantages(rewards, scale="batch", labelled_p=labelled)
    # 1 0 1 1: mean 3/4, variance (3/16 + 9/16) / 3 = 1/4
    value = 0.5 / (0.5 + 1e-4)
    torch.testing.assert_close(got, torch.tensor([[value, -value], [0.0, 0.0], [0.0, 0.0]]))


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_a_flat_group_is_exactly_zero_even_where_its_mean_rounds(scale):
    flat = torch.full((7,), 0.1)
    assert (flat - flat.mean()).abs().max() > 0, "the mean must round for this test to bite"
    got = group_advantages(torch.stack([flat, torch.arange(7.0)]), scale=scale)
    assert got[0].eq(0).all()
    assert got[1].ne(0).sum() == 6


def test_a_group_that_differs_in_the_last_bit_is_not_flat():
    rewards = torch.tensor([[1.0, 1.0, math.nextafter(1.0, 2.0)]], dtype=torch.float64)
    assert not flat_groups(rewards).item()
    assert group_advantages(rewards)[0, 2] > 0


def test_flat_groups_compares_within_each_row():
    rewards = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert flat_groups(rewards).tolist() == [True, False, False, True]


def test_an_unlabelled_group_is_zero_though_its_rewards_differ():
    got = group_advantages(
        torch.tensor([[1.0, 0.0], [1.0, 0.0]]), labelled_p=torch.tensor([False, True])
    )
    assert got[0].tolist() == [0.0, 0.0]
    assert got[1, 0] > 0.7


def test_one_completion_teaches_nothing_and_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in ("group", "batch", "none"):
            assert group_advantages(torch.tensor([[1.0], [0.0]]), scale=scale).eq(0).all()


def test_integer_rewards_are_read_as_floats_and_left_alone():
    rewards = torch.tensor([[1, 0, 0, 0]])
    torch.testing.assert_close(group_advantages(rewards), group_advantages(rewards.float()))
    assert rewards.tolist() == [[1, 0, 0, 0]]


def test_a_labelled_reward_that_is_no_number_is_an_error_that_names_it():
    rewards = torch.tensor([[0.0, 1.0], [0.0, NAN]])
    with pytest.raises(NonFiniteLossError, match="prompt 1, completion 1 is nan"):
        group_advantages(rewards)
    with pytest.raises(NonFiniteLossError, match="is inf"):
        reinforce_pp_advantages(torch.tensor([[float("inf"), 0.0]]))


def test_an_unknown_scale_is_refused():
    with pytest.raises(RecipeError, match="'std'"):
        group_advantages(torch.zeros(1, 2), scale="std")  # type: ignore[arg-type]


def test_reinforce_pp_normalises_over_the_batch_and_a_unanimous_group_teaches():
    # 1 1 0 0 0 0: mean 1/3, variance (2 * 4/9 + 4 * 1/9) / 5 = 4/15
    got = reinforce_pp_advantages(torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]), eps=1e-4)
    deviation = math.sqrt(4 / 15) + 1e-4
    high, low = (2 / 3) / deviation, (-1 / 3) / deviation
    torch.testing.assert_close(got, torch.tensor([[high, high], [low, low], [low, low]]))


def test_reinforce_pp_reads_labelled_rows_only():
    rewards = torch.tensor([[1.0, 0.0], [NAN, 50.0]])
    got = reinforce_pp_advantages(rewards, labelled_p=torch.tensor([True, False]))
    value = 0.5 / (math.sqrt(0.5) + 1e-4)
    torch.testing.assert_close(got, torch.tensor([[value, -value], [0.0, 0.0]]))


def test_reinforce_pp_is_exactly_zero_when_all_rewards_agree_or_none_is_labelled():
    assert reinforce_pp_advantages(torch.full((3, 7), 0.1)).eq(0).all()
    none = torch.zeros(2, dtype=torch.bool)
    assert reinforce_pp_advantages(torch.rand(2, 3), labelled_p=none).eq(0).all()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda k: st.lists(
            st.lists(st.integers(0, 3), min_size=k, max_size=k), min_size=1, max_size=5
        )
    ),
    st.sampled_from(["group", "batch", "none"]),
    st.randoms(use_true_random=False),
)
def test_advantages_follow_their_completions_and_prompts(rows, scale, random):
    rewards = torch.tensor(rows, dtype=torch.float64)
    got = group_advantages(rewards, scale=scale)
    prompts = random.sample(range(len(rows)), len(rows))
    places = random.sample(range(len(rows[0])), len(rows[0]))
    moved = group_advantages(rewards[prompts][:, places], scale=scale)
    torch.testing.assert_close(moved, got[prompts][:, places])
    torch.testing.assert_close(got.sum(dim=1), torch.zeros(len(rows), dtype=torch.float64))
