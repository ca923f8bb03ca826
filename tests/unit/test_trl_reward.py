"""The adapter's parts that need no second trainer."""

import threading
from types import SimpleNamespace

import pytest
from torch.distributed import TCPStore

from corl.errors import ExchangeError, ExchangeTimeout, RecipeError
from corl.exchange.store import StoreExchange
from corl.integrations.meeting import Introduction, introduce, take_leave
from corl.integrations.trl import PeerVoteReward

RING = ("left", "right")


def reward(agent="left", **settings):
    return PeerVoteReward(agent, **{"ring": RING, "address": "127.0.0.1:29411", **settings})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ring": ("right", "third")}, "it must name each agent once, 'left' too"),
        ({"ring": ("left", "left")}, "must name each agent once"),
        ({"ring": ("left",)}, "has no peer"),
        ({"address": "29411"}, "is not HOST:PORT"),
        ({"address": "here:0"}, "is not HOST:PORT"),
        ({"address": "here:70000"}, "is not HOST:PORT"),
        ({"supervision": "ground_truth"}, "needs labels, which a reward function is not given"),
        ({"supervision": "entropy"}, "needs token statistics"),
        ({"supervision": "pear"}, "peer"),
        ({"ties": "sometimes"}, "votes: "),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(settings, said):
    with pytest.raises(RecipeError, match=said):
        reward(**settings)


def test_a_reward_that_is_no_callback_says_so():
    with pytest.raises(RecipeError, match=r"callbacks=\[votes\]"):
        reward()(prompts=["a"], completions=["b"], completion_ids=[[1]])


def test_evaluation_gives_no_reward_and_touches_no_exchange():
    votes = reward()
    votes._model = SimpleNamespace(training=False)
    given = votes(prompts=["a"] * 2, completions=["\\boxed{1}"] * 2, completion_ids=[[1]] * 2)
    assert given == [None, None]
    assert votes._calls == 0


@pytest.fixture
def store():
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def introduction(agent, **changes):
    known = {
        "agent": agent, "run": "r", "ring": RING, "method": "peer", "prompts": 2,
        "seed": RING.index(agent), "first_step": 1,
    }  # fmt: skip
    return Introduction(**{**known, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prompts": 4}, "'left' has prompts 2, but agent 'right' has 4"),
        ({"ring": ("right", "left")}, "ring left, right, but agent 'right' has right, left"),
        ({"method": "all_peers"}, "one supervision"),
        ({"first_step": 5}, "resume from, the same step"),
        ({"seed": 0}, "both sample with seed 0"),
    ],
)
def test_what_makes_no_cohort_is_named_on_both_sides(store, changes, said):
    store.set("hello/r/right", introduction("right", **changes).to_bytes())
    with pytest.raises(ExchangeError, match=said):
        introduce(store, introduction("left"), timeout_s=1)


def test_a_peer_that_does_not_come_is_named(store):
    with pytest.raises(ExchangeTimeout, match="'left' waited 0 s for agent 'right'"):
        introduce(store, introduction("left"), timeout_s=0.2)
    with pytest.raises(ExchangeTimeout, match="for agent 'right'"):
        take_leave(store, introduction("left"), holds_store=True, timeout_s=0.2)
    take_leave(store, introduction("left"), holds_store=False, timeout_s=0.2)


@pytest.mark.parametrize("content", [b"{}", b"no json", b"[1]", b'{"agent": "right"}'])
def test_another_greeting_is_refused(store, content):
    store.set("hello/r/right", content)
    with pytest.raises(ExchangeError, match="'right' did not introduce itself"):
        introduce(store, introduction("left"), timeout_s=1)


def rewards_of(store, agent, completions, **settings):
    """Rewards of one call, on a store that the other side uses too."""
    votes = reward(agent, **settings)
    votes._model = SimpleNamespace(training=True)
    votes._group, votes._cap, votes._stops = 2, 8, frozenset({1})
    votes._introduction = introduction(agent)
    votes._exchange = StoreExchange(store, num_agents=2, timeout_s=20)
    return votes(
        prompts=["first"] * 2 + ["second"] * 2,
        completions=completions,
        completion_ids=[[5, 1]] * 4,
        id=["a", "a", "b", "b"],
    )


def both(store, left, right, **settings):
    out = {}

    def run(agent, completions):
        out[agent] = rewards_of(store, agent, completions, **settings)

    thread = threading.Thread(target=run, args=("right", right))
    thread.start()
    run("left", left)
    thread.join()
    return out["left"], out["right"]


def test_rewards_are_the_peers_votes_and_none_where_it_abstains(store):
    left, right = both(
        store,
        ["\\boxed{1}", "\\boxed{1}", "\\boxed{3}", "\\boxed{4}"],
        ["\\boxed{1}", "\\boxed{2}", "\\boxed{3}", "\\boxed{3}"],
    )
    assert left == [None, None, 1.0, 0.0]  # right's first two tie, so it abstains
    assert right == [1.0, 0.0, None, None]


def test_chat_completions_and_answers_in_parts_are_read(store):
    def chat(text):
        return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]

    said = [chat("\\boxed{1}")] * 2 + [chat("\\boxed{2}")] * 2
    plain = ["\\boxed{1}", "no answer", "\\boxed{2}", "\\boxed{1}"]
    left, right = both(store, said, plain, ties="hashed")
    assert right == [1.0, 0.0, 1.0, 0.0]
    assert left[:2] == [1.0, 1.0]


def test_an_own_vote_changes_nothing_of_ones_own_rewards(store):
    right = ["\\boxed{1}", "\\boxed{1}", "\\boxed{3}", "\\boxed{3}"]
    first, _ = both(store, ["\\boxed{1}", "\\boxed{9}", "\\boxed{3}", "\\boxed{9}"], right)
    assert first == [1.0, 0.0, 1.0, 0.0]


def test_completions_that_do_not_stand_in_groups_are_refused(store):
    votes = reward()
    votes._model = SimpleNamespace(training=True)
    votes._group, votes._cap = 2, 8
    votes._introduction = introduction("left")
    with pytest.raises(ExchangeError, match="do not stand together in groups of 2"):
        votes(prompts=["x"] * 4, completions=["1"] * 4, completion_ids=[[1]] * 4, id=list("abab"))


def test_an_order_of_ones_own_is_refused():
    arguments = SimpleNamespace(shuffle_dataset=True)
    with pytest.raises(RecipeError, match="shuffle_dataset=False"):
        reward().on_train_begin(arguments, SimpleNamespace(global_step=0), None, model=None)
