"""Who rewards whom: hand-worked rewards, the ring's direction, and what no method may see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corl.answers import Answer
from corl.config import SupervisionConfig
from corl.errors import RecipeError
from corl.supervision import (
    METHODS,
    Evidence,
    Rewards,
    Supervision,
    agreement_rewards,
    load_supervision,
    predecessor,
)

RING = ("a", "b", "c")
FOUR, FIVE = "number@1:4", "number@1:5"


def answers(*keys):
    return [None if key is None else Answer(text=key, key=key) for key in keys]


def method(name, **options):
    return load_supervision(SupervisionConfig(method=name, options=options))


def test_agreement_by_hand():
    found = agreement_rewards(
        [answers(FOUR, FIVE, None), answers(FOUR, FOUR, FOUR), answers(None, None, None)],
        [FOUR, None, FIVE],
    )
    assert found.rewards == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert found.labelled == [True, False, True]


def test_the_predecessor_is_the_agent_before_and_the_ring_closes():
    assert [predecessor(name, RING) for name in RING] == ["c", "a", "b"]
    assert [predecessor(name, RING[::-1]) for name in RING] == ["b", "c", "a"]


def test_peer_is_graded_by_the_predecessor_alone():
    assert [method("peer").graders(name, RING) for name in RING] == [("c",), ("a",), ("b",)]


def test_all_peers_is_graded_by_everybody_else():
    assert method("all_peers").graders("b", RING) == ("a", "c")


@pytest.mark.parametrize("name", ["peer", "all_peers"])
def test_an_agent_alone_has_no_peer(name):
    with pytest.raises(RecipeError, match="two agents or more"):
        method(name).graders("a", ("a",))


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("peer", "all_peers")])
def test_the_other_methods_use_no_exchange(name):
    assert method(name).graders("a", RING) == ()


def test_all_peers_takes_the_majority_and_a_tie_abstains():
    evidence = Evidence(answers=[answers(FOUR, FIVE)] * 3, own_votes=[FIVE] * 3)
    ballots = [[FOUR, FOUR, None], [FOUR, FIVE, None], [FIVE, None, FIVE]]
    found = method("all_peers").reward(evidence, ballots)
    assert found.labels == [FOUR, None, FIVE]
    assert found.rewards == [[1, 0], [0, 0], [0, 1]]


keys = st.none() | st.sampled_from([FOUR, FIVE, "text@1:x"])


@given(st.lists(st.lists(keys, min_size=2, max_size=2), min_size=1, max_size=4), st.data())
def test_a_peers_reward_never_depends_on_the_own_vote(groups, data):
    group_answers = [answers(*group) for group in groups]
    votes = data.draw(st.lists(keys, min_size=len(groups), max_size=len(groups)))
    own = [data.draw(st.lists(keys, min_size=len(groups), max_size=len(groups))) for _ in "12"]
    for name in ("peer", "all_peers"):
        first, second = (
            method(name).reward(Evidence(answers=group_answers, own_votes=vote), [votes])
            for vote in own
        )
        assert first == second
        assert first.labels == votes


@given(st.lists(st.lists(keys, min_size=3, max_size=3), min_size=1, max_size=4))
def test_an_abstention_earns_nothing_whatever_the_label(groups):
    group_answers = [answers(*group) for group in groups]
    for label in (None, FOUR, FIVE):
        found = agreement_rewards(group_answers, [label] * len(groups))
        for group, rewards in zip(groups, found.rewards, strict=True):
            assert rewards == [1.0 if key == label and key is not None else 0.0 for key in group]


def test_self_vote_holds_completions_against_the_own_vote():
    evidence = Evidence(answers=[answers(FOUR, FIVE, FOUR)], own_votes=[FOUR])
    assert method("self_vote").reward(evidence, []).rewards == [[1, 0, 1]]


def test_ground_truth_needs_labels_and_is_the_only_one_that_gets_them():
    evidence = Evidence(answers=[answers(FOUR, FIVE)], own_votes=[FOUR], labels=[FIVE])
    assert method("ground_truth").reward(evidence, []).rewards == [[0, 1]]
    assert [name for name, found in METHODS.items() if found.needs_labels] == ["ground_truth"]
    with pytest.raises(RecipeError, match="needs labels"):
        method("ground_truth").reward(Evidence(answers=[answers(FOUR)], own_votes=[FOUR]), [])


def test_intrinsic_rewards_are_the_policys_own_statistics():
    evidence = Evidence(
        answers=[answers(FOUR, None)],
        own_votes=[None],
        entropy=[[0.5, 0.25]],
        self_certainty=[[3.0, 4.0]],
    )
    assert method("self_certainty").reward(evidence, []).rewards == [[3.0, 4.0]]
    assert method("entropy").reward(evidence, []).rewards == [[-0.5, -0.25]]
    assert method("entropy", format_floor=-7.0).reward(evidence, []).rewards == [[-0.5, -7.0]]
    assert method("entropy").reward(evidence, []).labelled == [True]


class Constant(Supervision):
    """A user's own method."""

    def __init__(self, value=1.0):
        self.value = value

    def reward(self, evidence, ballots):
        rows = [[self.value for _ in group] for group in evidence.answers]
        return Rewards(rows, [None] * len(rows), [True] * len(rows))


def test_a_method_of_the_users_own_is_a_dotted_path():
    own = load_supervision(SupervisionConfig(method=f"{__name__}.Constant", options={"value": 0.5}))
    assert own.reward(Evidence(answers=[answers(FOUR)], own_votes=[None]), []).rewards == [[0.5]]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("peeer", "did you mean 'peer'"),
        ("no.such.module.Class", "cannot be imported"),
        ("corl.answers.Nothing", "cannot be imported"),
        ("corl.answers.Answer", "no class with `graders` and `reward`"),
    ],
)
def test_an_unknown_method_is_refused(name, says):
    with pytest.raises(RecipeError, match=says):
        method(name)


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(RecipeError, match="do not fit 'peer'"):
        method("peer", strength=2)


@pytest.mark.parametrize("name", ["self_vote", "peer", "all_peers"])
def test_more_completions_may_vote_than_are_trained_on(name):
    assert method(name).num_votes is None
    assert method(name, votes=64).num_votes == 64
    for wrong in (0, -1, 2.5, True, "many"):
        with pytest.raises(RecipeError, match=r"supervision\.options\.votes"):
            method(name, votes=wrong)


def test_the_two_wordings_label_each_other():
    evidence = Evidence(
        answers=[
            answers(FOUR, FIVE),
            answers(FOUR, None),
            answers(FOUR, FIVE),
            answers(FIVE, FIVE),
        ],
        own_votes=[FOUR, None, FIVE, FIVE],
    )
    found = method("co_rewarding_1").reward(evidence, [])
    assert found.labels == [FIVE, FIVE, FOUR, None]
    assert found.rewards == [[0, 1], [0, 0], [1, 0], [0, 0]]
    assert found.labelled == [True, True, True, False]


@given(st.data())
def test_a_wording_is_never_graded_by_its_own_vote(data):
    votes = st.lists(keys, min_size=6, max_size=6)
    groups = [answers(*group) for group in data.draw(st.lists(votes, min_size=6, max_size=6))]
    one, other = data.draw(votes), data.draw(votes)
    for half, kept in ((slice(0, 3), slice(3, 6)), (slice(3, 6), slice(0, 3))):
        mixed = list(one)
        mixed[half] = other[half]
        before = method("co_rewarding_1").reward(Evidence(answers=groups, own_votes=one), [])
        after = method("co_rewarding_1").reward(Evidence(answers=groups, own_votes=mixed), [])
        assert before.rewards[half] == after.rewards[half]
        assert before.labels[kept] == one[half] and after.labels[kept] == other[half]


def test_the_teachers_vote_is_the_label_and_the_own_vote_is_not():
    group = [answers(FOUR, FIVE, None)] * 2
    for own in (FOUR, FIVE, None):
        evidence = Evidence(answers=group, own_votes=[own] * 2, teacher_votes=[FIVE, None])
        found = method("co_rewarding_2").reward(evidence, [])
        assert found.labels == [FIVE, None]
        assert found.rewards == [[0, 1, 0], [0, 0, 0]]


def test_what_each_method_asks_an_agent_for():
    def asking(attribute):
        return {name for name, found in METHODS.items() if getattr(found, attribute)}

    assert asking("needs_labels") == {"ground_truth"}
    assert asking("needs_token_statistics") == {"self_certainty", "entropy"}
    assert asking("needs_rewrites") == {"co_rewarding_1"}
    assert asking("needs_teacher") == {"co_rewarding_2"}
