"""A stop that all agents agree on, with a dictionary for a store."""

import pytest

from corl.launch.control import LocalControl, StopRequest, StoreControl, agree_on_stop


class Store(dict):
    """The three calls of a key-value store that a stop needs."""

    def set(self, key, value):
        self[key] = str(value).encode()

    def get(self, key):
        return self[key]

    def check(self, keys):
        return all(key in self for key in keys)


@pytest.fixture
def store():
    """One agent about to start step 5, the other step 3."""
    store = Store()
    assert not StoreControl(store).ends_before(5, ["left"])
    assert not StoreControl(store).ends_before(3, ["right"])
    return store


def test_the_last_step_is_one_past_the_furthest_agents(store):
    assert agree_on_stop(store, ["left", "right"]) == 6


def test_every_agent_trains_the_last_step_and_none_after_it(store):
    agree_on_stop(store, ["left", "right"])
    for name in ("left", "right"):
        assert not StoreControl(store).ends_before(6, [name])
        assert StoreControl(store).ends_before(7, [name])


def test_an_agent_that_has_not_begun_holds_nobody_up(store):
    assert agree_on_stop(store, ["left", "right", "loading"]) == 6


def test_agents_in_one_process_stop_before_their_next_step():
    request = StopRequest()
    control = LocalControl(request)
    assert not control.ends_before(4, ["left", "right"])
    request.requested = True
    assert control.ends_before(4, ["left", "right"])
