"""Both exchanges hold every ballot against the receiver's own before they hand it over."""

from dataclasses import replace

import pytest

from corl.errors import ExchangeError
from corl.exchange import Ballot, LocalExchange, rows_digest
from corl.exchange.store import StoreExchange

OWN = Ballot(
    run="r",
    step=1,
    agent="a",
    answer_policy="1",
    digest=rows_digest(["x", "y"]),
    votes=("number@1:4", None),
)
PEERS = {
    "another order": replace(OWN, agent="b", digest=rows_digest(["y", "x"])),
    "not in lockstep": replace(OWN, agent="b", step=2),
    "different runs": replace(OWN, agent="b", run="s"),
    "different versions": replace(OWN, agent="b", answer_policy="0"),
    "holds 1 votes": replace(OWN, agent="b", votes=(None,)),
}


class Store(dict):
    """The calls of a key-value store that an exchange needs."""

    set = dict.__setitem__
    get = dict.__getitem__

    def check(self, keys):
        return all(key in self for key in keys)

    def delete_key(self, key):
        return self.pop(key, None) is not None


@pytest.mark.parametrize("says", PEERS)
def test_the_local_exchange_checks_what_it_passes_on(says):
    with pytest.raises(ExchangeError, match=says):
        LocalExchange().swap([OWN, PEERS[says]], graders={"a": ["b"]})


@pytest.mark.parametrize("says", PEERS)
def test_the_store_exchange_checks_what_it_fetches(says):
    store = Store({"ballot/r/1/b": PEERS[says].to_bytes()})
    with pytest.raises(ExchangeError, match=says):
        StoreExchange(store, num_agents=2, timeout_s=1).swap([OWN], graders={"a": ["b"]})


def test_graders_keep_the_order_in_which_they_were_asked_for():
    ballots = [replace(OWN, agent=name) for name in ("a", "b", "c")]
    due = LocalExchange().swap(ballots, graders={"a": ["c", "b"], "b": [], "c": []})
    assert [ballot.agent for ballot in due["a"]] == ["c", "b"]
