"""A ballot: one agent's vote, or none, for each prompt of one step.

Only canonical answer keys are on it: no prompt, completion, reward, margin or
label. A ballot read off the wire is untrusted: it is bounded, typed and held
against the step, run, rows and answer policy that were due.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from corl.errors import ExchangeError

MAX_BYTES = 64 * 2**20
MAX_KEY_CHARS = 2**20


@dataclass(frozen=True, slots=True)
class Ballot:
    """One agent's votes of one step."""

    run: str
    """Id of the run."""
    step: int
    """Step, counted from 1."""
    agent: str
    """Who voted."""
    answer_policy: str
    """Version of the rules by which answers became keys."""
    digest: str
    """`rows_digest` of the step's rows."""
    votes: tuple[str | None, ...]
    """One canonical answer key per prompt; None abstains."""

    def to_bytes(self) -> bytes:
        """The ballot as UTF-8 JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Ballot:
        """Read an untrusted ballot. Raises ExchangeError where it is malformed."""
        if len(content) > MAX_BYTES:
            raise ExchangeError(f"a ballot of {len(content)} bytes exceeds {MAX_BYTES}")
        try:
            record = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ExchangeError(f"a ballot is not JSON: {error}") from None
        _check_types(record)
        return cls(**{**record, "votes": tuple(record["votes"])})

    def check(self, due: Ballot) -> Ballot:
        """Return this ballot if it answers the same call as `due`, the receiver's own.

        Raises ExchangeError naming both sides where run, step, rows, answer
        policy or the number of prompts differ.
        """
        hints = {
            "run": "the agents were started for different runs",
            "step": "the agents are not in lockstep",
            "answer_policy": "the agents run different versions of corl",
            "digest": "the agents see other prompts or another order; check their prompt files "
            "and data_seed",
        }
        for field, hint in hints.items():
            theirs, ours = getattr(self, field), getattr(due, field)
            if theirs != ours:
                raise ExchangeError(
                    f"ballot of agent {self.agent!r} has {field} {theirs!r}, "
                    f"but agent {due.agent!r} is at {ours!r}: {hint}"
                )
        if len(self.votes) != len(due.votes):
            raise ExchangeError(
                f"ballot of agent {self.agent!r} holds {len(self.votes)} votes, "
                f"but agent {due.agent!r} has {len(due.votes)} prompts at step {due.step}"
            )
        return self


def rows_digest(row_ids: Iterable[str]) -> str:
    """Digest of row ids and their order, never of the wording: a peer may read a rewrite."""
    text = json.dumps(list(row_ids), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _check_types(record: Any) -> None:
    names = [field.name for field in fields(Ballot)]
    if not isinstance(record, dict) or sorted(record) != sorted(names):
        raise ExchangeError(f"a ballot must have exactly the fields {', '.join(names)}")
    texts = [record[name] for name in ("run", "agent", "answer_policy", "digest")]
    step, votes = record["step"], record["votes"]
    if not all(isinstance(text, str) and _is_writable(text) for text in texts):
        raise ExchangeError("a ballot's run, agent, answer_policy and digest must be texts")
    if type(step) is not int or step < 1:
        raise ExchangeError(f"a ballot's step is {step!r}, not a whole number from 1")
    if not isinstance(votes, list) or not all(_is_vote(vote) for vote in votes):
        raise ExchangeError("a ballot's votes must be a list of keys or nulls")


def _is_vote(vote: Any) -> bool:
    if vote is None:
        return True
    return isinstance(vote, str) and 0 < len(vote) <= MAX_KEY_CHARS and _is_writable(vote)


def _is_writable(text: str) -> bool:
    """Whether a text can be written down: JSON may smuggle half a surrogate pair in."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
