"""One step's record, worked by hand: two prompts of two completions, one of them unlabelled."""

import torch

from corl.answers import Answer, majority
from corl.rollout.rollout import Rollout
from corl.run.metrics import StepTimes, step_record
from corl.supervision import Rewards

FOUR, FIVE = Answer("4", "number@1:4"), Answer("5", "number@1:5")


def record(
    answers=((FOUR, FIVE), (None, FOUR)),
    rewards=((1.0, 0.0), (1.0, 1.0)),
    labels=(FOUR.key, FOUR.key),
    truths=(FOUR.key, None),
    **rollout,
):
    groups = [list(group) for group in answers]
    sampled = {
        "prompt_ids": [[1], [1]],
        "token_ids": [[[1, 2, 3], [1]], [[1, 2], [1, 2]]],
        "logps": [[torch.zeros(3), torch.zeros(1)], [torch.zeros(2), torch.zeros(2)]],
        "truncated": [[True, False], [False, False]],
        "entropy": torch.tensor([[1.0, 2.0], [3.0, float("nan")]]),
        "self_certainty": torch.full((2, 2), 5.0),
        "texts": [["", ""], ["", ""]],
        **rollout,
    }
    return step_record(
        agent="a",
        step=3,
        rollout=Rollout(**sampled),
        answers=groups,
        votes=[majority(group) for group in groups],
        true_keys=list(truths),
        rewards=Rewards(
            [list(group) for group in rewards],
            list(labels),
            [label is not None for label in labels],
        ),
        learned={"loss": 0.5},
        times=StepTimes(sample=2.0),
    )


def test_a_record_names_its_step_and_agent_and_carries_what_was_learned():
    found = record()
    assert (found["step"], found["agent"], found["loss"]) == (3, "a", 0.5)


def test_the_reward_mean_is_over_all_completions():
    assert record()["reward_mean"] == 0.75


def test_the_reward_deviation_is_unbiased_and_averaged_over_groups():
    assert abs(record()["reward_std"] - 0.5**0.5 / 2) < 1e-12


def test_a_group_is_flat_whatever_the_reward_that_it_shares():
    assert record()["flat_share"] == 0.5
    assert record(rewards=((0.0, 0.0), (1.0, 1.0)))["flat_share"] == 1.0


def test_vote_support_is_over_prompts_that_voted():
    # A tie of two abstains; one of two completions carries the other prompt.
    assert record()["vote_support"] == 0.5
    assert record()["voted_share"] == 0.5
    assert record(answers=((None, None), (None, None)))["vote_support"] is None


def test_agreement_is_over_prompts_where_both_voted():
    tied_then_four = ((FOUR, FIVE), (FOUR, FOUR))
    assert record(tied_then_four, labels=(FIVE.key, FOUR.key))["peer_agreement"] == 1.0
    assert record(tied_then_four, labels=(FIVE.key, FIVE.key))["peer_agreement"] == 0.0
    assert record(tied_then_four, labels=(FIVE.key, None))["peer_agreement"] is None


def test_the_labelled_share_is_of_prompts():
    assert record(labels=(None, FOUR.key))["labelled_share"] == 0.5


def test_accuracy_counts_abstentions_as_wrong_and_leaves_unlabelled_prompts_out():
    assert record()["accuracy"] == 0.5
    assert record(truths=(None, FOUR.key))["accuracy"] == 0.5
    assert record(truths=(None, None))["accuracy"] is None


def test_an_abstention_is_no_answer_of_its_own():
    assert record()["distinct_answers"] == 1.5
    assert record()["answered_share"] == 0.75


def test_lengths_are_in_tokens():
    assert (record()["length_mean"], record()["length_max"]) == (2.0, 3)
    assert record()["truncated_share"] == 0.25


def test_a_mean_that_is_no_number_is_left_out_of_the_entropy():
    assert record()["entropy"] == 2.0


def test_what_the_clock_says_is_under_time_alone():
    assert record()["time"]["sample"] == 2.0
    assert not {"sample", "read", "wait", "learn"} & record().keys()
