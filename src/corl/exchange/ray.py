"""Ballots through a Ray actor: a box that lies in one process of the cluster.

`BallotBox` is the actor's class, `BoxStore` what agents and launcher hold of
it: the four calls of a key-value store, so that `StoreExchange` serves here
too, with its checks, its waits that name the late agent, and its way to take
old ballots away. How a call reaches the actor is `launch/ray.py`'s business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corl.errors import ExchangeError
from corl.exchange.ballot import MAX_BYTES


class BallotBox:
    """Keeps what the agents of one start of a run have for one another."""

    def __init__(self, num_agents: int) -> None:
        """num_agents: bounds what is kept: the ballots of a few steps, and two words an agent."""
        self._kept: dict[str, bytes] = {}
        self._most = num_agents * (num_agents + 4) + 8

    def set(self, key: str, value: bytes) -> None:
        """Keep a value. Raises ExchangeError where it is too long, or too many are kept."""
        if len(value) > MAX_BYTES:
            raise ExchangeError(f"{key}: a ballot of {len(value)} bytes exceeds {MAX_BYTES}")
        if key not in self._kept and len(self._kept) >= self._most:
            raise ExchangeError(
                f"{key}: the ballot box is full with {self._most} entries; an agent of another run "
                "writes into it, or one is far ahead of the others"
            )
        self._kept[key] = value

    def get(self, key: str) -> bytes:
        """What is kept under the key. Raises ExchangeError where that is nothing."""
        if key not in self._kept:
            raise ExchangeError(f"the ballot box holds nothing under {key}")
        return self._kept[key]

    def check(self, keys: list[str]) -> bool:
        """Whether something is kept under every one of them."""
        return all(key in self._kept for key in keys)

    def delete_key(self, key: str) -> bool:
        """Drop a key. Returns whether there was one."""
        return self._kept.pop(key, None) is not None


class BoxStore:
    """A key-value store whose values lie in a ballot box elsewhere."""

    def __init__(self, call: Callable[..., Any]) -> None:
        """call: of a method's name and its arguments; it raises ExchangeLost where the box
        cannot be reached."""
        self._call = call

    def set(self, key: str, value: str | bytes) -> None:
        """See `BallotBox.set`."""
        self._call("set", key, value.encode() if isinstance(value, str) else value)

    def get(self, key: str) -> bytes:
        """See `BallotBox.get`."""
        return bytes(self._call("get", key))

    def check(self, keys: list[str]) -> bool:
        """See `BallotBox.check`."""
        return bool(self._call("check", keys))

    def delete_key(self, key: str) -> bool:
        """See `BallotBox.delete_key`."""
        return bool(self._call("delete_key", key))
