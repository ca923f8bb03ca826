"""The exchange of agents at sites that share nothing but a Redis server.

A ballot lies under its cohort, step and agent, signed by its site. Nothing on the server is
trusted: what is too long, forged, replayed or out of its place is refused, told, and waited past,
since its writer puts the right one back: every few seconds, from a thread of its own, as long as
the exchange is open. So a server that restarts, even empty, gets the newest ballots again.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corl.errors import (
    ExchangeError,
    ExchangeLost,
    ExchangeStopped,
    ExchangeTimeout,
    first_line,
)
from corl.exchange.ballot import Ballot
from corl.exchange.signing import Signer, Verifier

_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.5
_PAUSE_SHARE = 0.02
"""Of the time waited so far: what a look too late may add to a wait."""
_POST_AGAIN_S = 3.0
_NEWEST = 4
"""Ballots that are put back whatever lies there; older ones where their length is another."""
_KEPT = 64
"""Ballots of this process that it can put back."""
_REFUSALS_TOLD = 1000


class BrokerExchange:
    """Passes signed ballots through a Redis server."""

    def __init__(
        self,
        client: Any,
        *,
        signer: Signer,
        verifiers: Mapping[str, Verifier],
        timeout_s: float,
        keep_s: int,
        max_bytes: int,
        on_refusal: Callable[[str], None],
        stops: Callable[[], bool] = lambda: False,
    ) -> None:
        """client: a redis.Redis. verifiers: key of every agent that lives elsewhere. timeout_s:
        longest wait for one ballot, or for the server. on_refusal: told of each ballot that is
        refused, once, up to a thousand. stops: whether a wait is to end with ExchangeStopped."""
        import redis

        self._client = client
        self._signer = signer
        self._verifiers = verifiers
        self._timeout_s = timeout_s
        self._keep_s = keep_s
        self._max_bytes = max_bytes
        self._on_refusal = on_refusal
        self._stops = stops
        self._posted: deque[tuple[str, bytes]] = deque(maxlen=_KEPT)
        self._posted_lock = threading.Lock()
        self._closing = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="corl-ballots", daemon=True)
        self._here: dict[str, Ballot] = {}
        self._found: dict[str, Ballot] = {}
        self._refused: set[str] = set()
        self._why: dict[str, str] = {}
        self._away = (
            redis.ConnectionError,
            redis.TimeoutError,
            redis.BusyLoadingError,
            redis.OutOfMemoryError,
            redis.ReadOnlyError,
            redis.exceptions.ClusterDownError,
            redis.exceptions.MasterDownError,
            redis.exceptions.TryAgainError,
        )
        self._wrong = redis.ResponseError
        self._other = redis.RedisError

    def post(self, ballots: Sequence[Ballot]) -> None:
        """Lay this process's ballots of one step out for the peers. Raises ExchangeLost."""
        for ballot in ballots:
            key = ballot_key(ballot.run, ballot.step, ballot.agent)
            if key in self._here:
                continue
            self._here[key] = ballot
            sealed = self._signer.seal(ballot)
            if len(sealed) > self._max_bytes:
                raise ExchangeError(
                    f"the ballot of {ballot.agent!r} at step {ballot.step} has {len(sealed)} "
                    f"bytes, more than sites.max_ballot_bytes: {self._max_bytes}"
                )
            with self._posted_lock:
                self._posted.append((key, sealed))
            self._insist_on_set(key, sealed)
        if self._keeper.ident is None:
            self._keeper.start()

    def arrived(self, ballots: Sequence[Ballot], *, graders: Mapping[str, Sequence[str]]) -> bool:
        """Whether every ballot that these agents are due is there. Waits for nobody but a server
        that does not answer, and for that no longer than the client's own time-out."""
        try:
            return all(
                self._look(name, own) is not None for own in ballots for name in graders[own.agent]
            )
        except self._other:
            return False  # `swap` tells of it

    def swap(
        self, ballots: Sequence[Ballot], *, graders: Mapping[str, Sequence[str]]
    ) -> dict[str, list[Ballot]]:
        """See `Exchange.swap`."""
        self.post(ballots)
        due = {
            own.agent: [self._collect(name, own).check(own) for name in graders[own.agent]]
            for own in ballots
        }
        steps = {ballot.step for ballot in ballots}
        for kept in (self._here, self._found):
            for key in [key for key, ballot in kept.items() if ballot.step in steps]:
                del kept[key]
                self._why.pop(key, None)
        return due

    def close(self) -> None:
        """Stop putting ballots back."""
        self._closing.set()
        if self._keeper.ident is not None:
            self._keeper.join(timeout=_POST_AGAIN_S)

    def _keep(self) -> None:
        while not self._closing.wait(_POST_AGAIN_S):
            with self._posted_lock:
                posted = tuple(self._posted)
            try:
                for key, sealed in posted[:-_NEWEST]:
                    if self._length(key) != len(sealed):
                        self._set(key, sealed)
                for key, sealed in posted[-_NEWEST:]:
                    self._set(key, sealed)
            except (self._other, OSError):
                continue  # whoever waits next tells of it

    def _collect(self, name: str, own: Ballot) -> Ballot:
        started = time.monotonic()
        away = ""
        while True:
            self._heed_stop()
            now = time.monotonic()
            try:
                ballot = self._look(name, own)
                if ballot is not None:
                    return ballot
                away = ""
            except self._away as error:
                away = f"; the broker cannot be reached: {first_line(error)}"
            except self._other as error:
                raise self._lost(error) from None
            if now - started > self._timeout_s:
                raise ExchangeTimeout(
                    f"agent {own.agent!r} waited {self._timeout_s:.0f} s at step {own.step} for "
                    f"the ballot of {name!r}{away}{self._told(own, name)}; ask its site, or raise "
                    "exchange.timeout_s"
                )
            pause_s = _PAUSE_SHARE * (now - started)
            time.sleep(min(max(pause_s, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S))

    def _look(self, name: str, own: Ballot) -> Ballot | None:
        """The ballot of that agent for this step, if the right one is there."""
        key = ballot_key(own.run, own.step, name)
        for known in (self._here, self._found):
            if key in known:
                return known[key]
        length = self._length(key)
        if length is None:
            self._refuse(key, "", "it is no text")
            return None
        if not length:
            return None
        if length > self._max_bytes:
            self._refuse(key, f"{length}", f"it has {length} bytes, more than {self._max_bytes}")
            return None
        sealed = self._client.getrange(key, 0, self._max_bytes - 1)
        try:
            ballot = self._verifiers[name].open(sealed)
            if (ballot.run, ballot.step, ballot.agent) != (own.run, own.step, name):
                raise ExchangeError(
                    f"it is that of {ballot.agent!r} for step {ballot.step} of {ballot.run!r}"
                )
        except ExchangeError as error:
            self._refuse(key, hashlib.sha256(sealed).hexdigest(), str(error))
            return None
        self._found[key] = ballot
        return ballot

    def _length(self, key: str) -> int | None:
        """Bytes that lie there, 0 for nothing, None where it is no text at all."""
        try:
            return int(self._client.strlen(key))
        except self._wrong as error:
            if str(error).startswith("WRONGTYPE"):
                return None
            raise

    def _heed_stop(self) -> None:
        if self._stops():
            raise ExchangeStopped("the wait for ballots was ended by a stop")

    def _told(self, own: Ballot, name: str) -> str:
        why = self._why.get(ballot_key(own.run, own.step, name))
        return f" (a ballot was refused: {why})" if why else ""

    def _set(self, key: str, sealed: bytes) -> None:
        self._client.set(key, sealed, ex=self._keep_s)

    def _insist_on_set(self, key: str, sealed: bytes) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            self._heed_stop()
            try:
                return self._set(key, sealed)
            except self._away as error:
                if time.monotonic() > deadline:
                    raise self._lost(error) from None
            except self._other as error:
                raise self._lost(error) from None
            time.sleep(_LONGEST_PAUSE_S)

    def _lost(self, error: Exception) -> ExchangeLost:
        return ExchangeLost(f"the broker refuses or cannot be reached: {first_line(error)}")

    def _refuse(self, key: str, mark: str, why: str) -> None:
        self._why[key] = why
        seen = f"{key}/{mark}"
        if seen in self._refused or len(self._refused) > _REFUSALS_TOLD:
            return
        self._refused.add(seen)
        is_last = len(self._refused) > _REFUSALS_TOLD
        self._on_refusal("further ones are not told" if is_last else f"{key}: {why}")


def ballot_key(run: str, step: int, agent: str) -> str:
    """Where a ballot lies at the broker."""
    return f"corl/{run}/{step}/{agent}"
