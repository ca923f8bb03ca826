"""Majorities: counts, supports and ties that no order of completions changes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corl.answers import POLICY_VERSION, TIES, Answer, Vote, canonical, majority
from corl.errors import RecipeError

answers = st.builds(Answer, text=st.text("ab", max_size=3), key=st.sampled_from("abcd"))
groups = st.lists(st.none() | answers, max_size=14)


def an(key: str, text: str | None = None) -> Answer:
    """An answer with its key as its text."""
    return Answer(text=key if text is None else text, key=key)


def test_answers_are_compared_by_key_alone() -> None:
    assert an("k", "0.5") == an("k", "1/2")
    assert hash(an("k", "0.5")) == hash(an("k", "1/2"))
    assert an("k") != an("l")
    with pytest.raises(FrozenInstanceError):
        an("k").key = "l"  # type: ignore[misc]


def test_keys_carry_type_and_policy_version() -> None:
    number, words = canonical("0.5"), canonical("Ann", "text")
    assert number is not None and number.key == f"number@{POLICY_VERSION}:1/2"
    assert words is not None and words.key == f"text@{POLICY_VERSION}:ann"


def test_a_key_survives_utf_8() -> None:
    answer = canonical("\ud800 words", "text")
    assert answer is not None and answer.key.encode("utf-8").decode("utf-8") == answer.key


def test_a_vote_counts_voters_total_and_margin() -> None:
    vote = majority([an("x"), None, an("y"), an("x"), an("x"), None])
    assert vote == Vote(an("x"), count=3, voters=4, total=6, margin=2)
    assert vote is not None and vote.support == 0.5


def test_a_sole_answer_leads_by_all_its_votes() -> None:
    vote = majority([an("x"), an("x"), None])
    assert vote is not None and vote.margin == 2


def test_abstentions_never_win() -> None:
    vote = majority([None, None, None, an("x")])
    assert vote is not None and vote.answer == an("x")
    assert majority([None, None]) is None
    assert majority([]) is None


@pytest.mark.parametrize(
    ("min_support", "wins"), [(0.0, True), (0.3, True), (0.31, False), (1.0, False)]
)
def test_support_is_a_share_of_the_whole_group(min_support: float, wins: bool) -> None:
    group = [an("x")] * 3 + [an("y")] + [None] * 6
    assert (majority(group, min_support=min_support) is not None) is wins


def test_tied_votes_abstain_by_default() -> None:
    assert majority([an("x"), an("y"), an("y"), an("x")]) is None
    assert majority([an("x"), an("y")], min_support=0.5) is None


def test_ties_fall_to_the_smallest_key_where_asked() -> None:
    vote = majority([an("y"), an("x"), an("y"), an("x"), an("a")], ties="smallest_key")
    assert vote is not None and vote.answer.key == "x" and vote.margin == 0


def test_hashed_ties_favour_no_end_of_the_alphabet() -> None:
    won = [majority([an(f"a{n}"), an(f"b{n}")], ties="hashed") for n in range(40)]
    first = Counter(vote.answer.key[0] for vote in won if vote is not None)
    assert sum(first.values()) == 40 and 10 <= first["a"] <= 30


def test_the_winner_is_shown_by_its_shortest_then_smallest_text() -> None:
    vote = majority([an("x", "0.50"), an("x", "1/2"), an("x", ".50"), an("y")])
    assert vote is not None and vote.answer.text == "0.50"[1:]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_support_that_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(RecipeError, match="share between 0 and 1"):
        majority([an("x")], min_support=share)


def test_an_unknown_tie_policy_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="abstain, smallest_key, hashed"):
        majority([an("x")], ties="first")


@given(group=groups, ties=st.sampled_from(TIES), seed=st.integers(0, 99), share=st.floats(0, 1))
def test_no_order_changes_a_vote(
    group: list[Answer | None], ties: str, seed: int, share: float
) -> None:
    shuffled = random.Random(seed).sample(group, len(group))
    vote, again = (majority(order, ties=ties, min_support=share) for order in (group, shuffled))
    assert vote == again
    if vote is not None and again is not None:
        assert vote.answer.text == again.answer.text


@given(group=groups, ties=st.sampled_from(TIES))
def test_votes_agree_with_a_plain_count(group: list[Answer | None], ties: str) -> None:
    counts = Counter(answer.key for answer in group if answer is not None)
    vote = majority(group, ties=ties)
    ranked = counts.most_common(2)
    if not ranked or (ties == "abstain" and len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        assert vote is None
        return
    assert vote is not None
    assert vote.count == counts[vote.answer.key] == ranked[0][1]
    assert vote.voters == sum(counts.values()) <= vote.total == len(group)
    assert vote.margin == vote.count - (ranked[1][1] if len(ranked) == 2 else 0)
    assert 0 < vote.support <= 1
