"""How trainers that share nothing but a store agree, before the first ballot, to be one cohort.

Each says once who it is, what a step of its is made of and with which seeds it draws; what cannot
work together is an error that names both sides. At the end the trainer that holds the store waits
until the others have gone.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, fields
from typing import Any

from corl.errors import ExchangeError, ExchangeTimeout

_POLL_S = 0.05
_MOST_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class Introduction:
    """What one trainer tells the others about itself."""

    agent: str
    run: str
    ring: tuple[str, ...]
    method: str
    prompts: int
    """Prompts of one step."""
    seed: int
    """Seeds sampling: different for each."""
    first_step: int
    """Where it begins: 1, or behind the checkpoint it resumes from."""

    def to_bytes(self) -> bytes:
        """UTF-8 JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes, *, agent: str) -> Introduction:
        """Read an untrusted one. Raises ExchangeError where it is malformed."""
        try:
            record = json.loads(content[: _MOST_BYTES + 1])
            names = {field.name for field in fields(cls)}
            if set(record) != names or record["agent"] != agent:
                raise ValueError
            return cls(**{**record, "ring": tuple(record["ring"])})
        except (ValueError, TypeError, RecursionError):
            raise ExchangeError(
                f"agent {agent!r} did not introduce itself as corl does; do both sides run the "
                "same version?"
            ) from None


_EQUAL = {
    "run": "give both trainers one run id",
    "ring": "give both trainers one ring, in one order",
    "method": "give both trainers one supervision",
    "prompts": "per_device_train_batch_size, gradient_accumulation_steps and num_generations must "
    "give both the same number of prompts a step",
    "first_step": "both must begin at, or resume from, the same step",
}


def introduce(store: Any, own: Introduction, *, timeout_s: float) -> None:
    """Tell the others of the ring, hear them, and check that they make one cohort.

    store: a connected torch.distributed store. Raises ExchangeError naming both sides and what
    differs, ExchangeTimeout naming who is missing.
    """
    store.set(f"hello/{own.run}/{own.agent}", own.to_bytes())
    for name in own.ring:
        if name == own.agent:
            continue
        _wait(store, f"hello/{own.run}/{name}", own.agent, name, timeout_s)
        other = Introduction.from_bytes(store.get(f"hello/{own.run}/{name}"), agent=name)
        _check(own, other)


def take_leave(store: Any, own: Introduction, *, holds_store: bool, timeout_s: float) -> None:
    """Say that this trainer is done; whoever holds the store waits for the others.

    Raises ExchangeTimeout naming who has not finished.
    """
    store.set(f"bye/{own.run}/{own.agent}", b"1")
    if holds_store:
        for name in own.ring:
            _wait(store, f"bye/{own.run}/{name}", own.agent, name, timeout_s)


def _check(own: Introduction, other: Introduction) -> None:
    for field, advice in _EQUAL.items():
        ours, theirs = getattr(own, field), getattr(other, field)
        if ours != theirs:
            raise ExchangeError(
                f"agent {own.agent!r} has {field} {_shown(ours)}, but agent {other.agent!r} has "
                f"{_shown(theirs)}: {advice}"
            )
    if own.seed == other.seed:
        raise ExchangeError(
            f"agents {own.agent!r} and {other.agent!r} both sample with seed {own.seed}: equal "
            "models would then draw equal completions, and a peer's vote would be one's own; "
            "give each trainer a seed of its own"
        )


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else repr(value)


def _wait(store: Any, key: str, own: str, name: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not _has(store, key, own):
        if time.monotonic() > deadline:
            raise ExchangeTimeout(
                f"agent {own!r} waited {timeout_s:.0f} s for agent {name!r}; does its trainer run, "
                "with the same address and run id? Raise timeout_s where it takes longer to start"
            )
        time.sleep(_POLL_S)


def _has(store: Any, key: str, own: str) -> bool:
    try:
        return bool(store.check([key]))
    except RuntimeError as error:
        raise ExchangeError(
            f"agent {own!r} lost the store of the cohort: {str(error).splitlines()[0]}"
        ) from None
