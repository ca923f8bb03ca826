"""The exchange of agents in processes of their own, over torch's TCPStore.

A ballot lies in the store under its run, step and agent until no peer can
still need it: an agent is at most as many steps ahead of another as there are
agents, so it takes its own ballot of that many steps ago away.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from corl.errors import ExchangeError, ExchangeLost, ExchangeTimeout, first_line
from corl.exchange.ballot import Ballot

_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.05
_PAUSE_SHARE = 0.02
"""Of the time waited so far: what a look too late may add to a wait."""


class StoreExchange:
    """Passes ballots between processes through a key-value store."""

    def __init__(self, store: Any, *, num_agents: int, timeout_s: float) -> None:
        """store: a connected torch.distributed store; timeout_s: longest wait for one ballot."""
        self._store = store
        self._num_agents = num_agents
        self._timeout_s = timeout_s

    def swap(
        self, ballots: Sequence[Ballot], *, graders: Mapping[str, Sequence[str]]
    ) -> dict[str, list[Ballot]]:
        """See `Exchange.swap`."""
        for ballot in ballots:
            self._store.set(_key(ballot.run, ballot.step, ballot.agent), ballot.to_bytes())
            self._store.delete_key(
                _key(ballot.run, ballot.step - self._num_agents - 1, ballot.agent)
            )
        return {
            own.agent: [self._collect(name, own).check(own) for name in graders[own.agent]]
            for own in ballots
        }

    def _collect(self, name: str, own: Ballot) -> Ballot:
        key = _key(own.run, own.step, name)
        started = time.monotonic()
        deadline = started + self._timeout_s
        while not self._arrived(key, own):
            if time.monotonic() > deadline:
                raise ExchangeTimeout(
                    f"agent {own.agent!r} waited {self._timeout_s:.0f} s at step {own.step} for "
                    f"the ballot of {name!r}; look at that agent's log, or raise exchange.timeout_s"
                )
            pause_s = _PAUSE_SHARE * (time.monotonic() - started)
            time.sleep(min(max(pause_s, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S))
        ballot = Ballot.from_bytes(self._store.get(key))
        if ballot.agent != name:
            raise ExchangeError(
                f"agent {own.agent!r} was due the ballot of {name!r} at step {own.step}, "
                f"but it is signed {ballot.agent!r}"
            )
        return ballot

    def _arrived(self, key: str, own: Ballot) -> bool:
        # The store's own wait prints a stack trace for every time-out.
        try:
            return bool(self._store.check([key]))
        except RuntimeError as error:
            raise ExchangeLost(
                f"agent {own.agent!r} lost the exchange at step {own.step}: {first_line(error)}"
            ) from None


def _key(run: str, step: int, agent: str) -> str:
    return f"ballot/{run}/{step}/{agent}"
