"""Ballots are checked against what was due, and arrive over every exchange alike."""

import json
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corl.errors import ExchangeError, ExchangeTimeout
from corl.exchange import Ballot, LocalExchange, rows_digest
from corl.exchange.store import StoreExchange


def ballot(agent="left", step=1, votes=("number@1:4", None), **changes):
    fields = {"run": "r", "answer_policy": "1", "digest": rows_digest(["a", "b"])}
    return Ballot(step=step, agent=agent, votes=votes, **{**fields, **changes})


@given(st.lists(st.none() | st.text(min_size=1), max_size=5), st.integers(1, 10**9), st.text())
def test_a_ballot_survives_the_wire(votes, step, agent):
    sent = ballot(agent=agent, step=step, votes=tuple(votes))
    assert Ballot.from_bytes(sent.to_bytes()) == sent


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"[]",
        b"{}",
        b"[" * 200_000,
        ballot().to_bytes().replace(b'"step":1', b'"step":0'),
        ballot().to_bytes().replace(b'"step":1', b'"step":true'),
        ballot().to_bytes().replace(b'"step":1', b'"step":1.5'),
        ballot().to_bytes().replace(b"null", b'""'),
        ballot().to_bytes().replace(b"null", b"7"),
        ballot().to_bytes().replace(b"[", b"{}#["),
        json.dumps({**json.loads(ballot().to_bytes()), "prompt": "secret"}).encode(),
        json.dumps({**json.loads(ballot().to_bytes()), "votes": "ab"}).encode(),
        json.dumps({**json.loads(ballot().to_bytes()), "run": 3}).encode(),
    ],
)
def test_a_malformed_ballot_is_refused(content):
    with pytest.raises(ExchangeError):
        Ballot.from_bytes(content)


def test_an_oversized_ballot_is_refused_unread():
    with pytest.raises(ExchangeError, match="exceeds"):
        Ballot.from_bytes(b" " * (64 * 2**20 + 1))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"run": "other"}, "different runs"),
        ({"step": 2}, "not in lockstep"),
        ({"answer_policy": "0"}, "different versions"),
        ({"digest": rows_digest(["b", "a"])}, "another order"),
        ({"votes": (None,)}, "holds 1 votes"),
    ],
)
def test_a_ballot_for_something_else_names_both_sides(change, says):
    with pytest.raises(ExchangeError, match=says) as caught:
        replace(ballot("right"), **change).check(ballot("left"))
    assert "'right'" in str(caught.value) and "'left'" in str(caught.value)


def test_the_digest_covers_ids_and_their_order():
    assert rows_digest(["1", "23"]) != rows_digest(["12", "3"])
    assert rows_digest(["1", "2"]) != rows_digest(["2", "1"])
    assert rows_digest(iter(["1", "2"])) == rows_digest(["1", "2"])


def test_the_local_exchange_returns_what_each_agent_asked_for():
    left, right, third = ballot("left"), ballot("right"), ballot("third")
    due = LocalExchange().swap(
        [left, right, third], graders={"left": ["third"], "right": ["left", "third"], "third": []}
    )
    assert due == {"left": [third], "right": [left, third], "third": []}


def test_the_local_exchange_refuses_an_absent_grader():
    with pytest.raises(ExchangeError, match="graded by 'nobody'"):
        LocalExchange().swap([ballot("left")], graders={"left": ["nobody"]})


@pytest.fixture
def store():
    from torch.distributed import TCPStore

    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def client(store):
    from torch.distributed import TCPStore

    return TCPStore("127.0.0.1", store.port, is_master=False, wait_for_workers=False)


def test_the_store_exchange_brings_peers_ballots_over_many_steps(store):
    ring = ["a", "b", "c"]
    seen = {}

    def run(name):
        exchange = StoreExchange(client(store), num_agents=3, timeout_s=20)
        for step in range(1, 13):
            own = ballot(name, step=step, votes=(f"{name}{step}",))
            due = exchange.swap([own], graders={name: [ring[ring.index(name) - 1]]})
            seen[name, step] = due[name][0].votes[0]

    threads = [threading.Thread(target=run, args=(name,)) for name in ring]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    expected = {
        (name, step): f"{ring[ring.index(name) - 1]}{step}"
        for name in ring
        for step in range(1, 13)
    }
    assert seen == expected


def test_old_ballots_are_taken_away(store):
    exchange = StoreExchange(client(store), num_agents=2, timeout_s=5)
    for step in range(1, 9):
        exchange.swap([ballot("a", step=step)], graders={"a": []})
    kept = [step for step in range(1, 9) if store.check([f"ballot/r/{step}/a"])]
    assert kept == [6, 7, 8]


def test_a_late_agent_is_named(store):
    exchange = StoreExchange(client(store), num_agents=2, timeout_s=0.2)
    with pytest.raises(ExchangeTimeout, match=r"'a' waited 0 s at step 1 for the ballot of 'b'"):
        exchange.swap([ballot("a")], graders={"a": ["b"]})


def test_a_ballot_signed_by_another_is_refused(store):
    store.set("ballot/r/1/b", ballot("c").to_bytes())
    exchange = StoreExchange(client(store), num_agents=2, timeout_s=5)
    with pytest.raises(ExchangeError, match="signed 'c'"):
        exchange.swap([ballot("a")], graders={"a": ["b"]})


def test_a_lost_store_is_an_error_and_not_a_wait():
    from torch.distributed import TCPStore

    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    exchange = StoreExchange(client(server), num_agents=2, timeout_s=60)
    del server
    with pytest.raises((ExchangeError, RuntimeError)):
        exchange.swap([ballot("a")], graders={"a": ["b"]})
