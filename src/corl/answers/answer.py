"""One answer, and the key that decides whether two answers are the same.

Two answers are the same exactly when their keys are equal strings: an
equivalence relation by construction. The text is for people and is ignored by
`==`. A key carries its type and the version of the policy that made it, so
that agents which read answers by different rules never agree by accident.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

POLICY_VERSION = "1"
"""Version of the reading rules; raised whenever a rule changes a key."""

NO_ANSWER = frozenset({"none", "null", "nan", "no answer"})
"""Bare words that state no answer: they never win a vote or earn a reward."""

MAX_BODY = 200
"""Longest text body of a key, in characters; a longer one keeps its start and a digest."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one completion or label says; compared, hashed and voted on by `key` alone."""

    text: str = field(compare=False)
    key: str

    @classmethod
    def of(cls, text: str, kind: str, body: str) -> Answer:
        """An answer of key type `kind`; `body` is what equal answers share."""
        return cls(text=text, key=_encodable(f"{kind}@{POLICY_VERSION}:{body}"))


def bounded(body: str) -> str:
    """The body, or its start and a digest of the whole where it is long."""
    if len(body) <= MAX_BODY:
        return body
    return f"{body[:64]}#{digest(body)}"


def digest(text: str) -> str:
    """SHA-256 of any string, lone surrogates included, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _encodable(key: str) -> str:
    """Keys cross between agents as UTF-8, which lone surrogates do not survive."""
    if key.isascii():
        return key
    return key.encode("utf-8", "backslashreplace").decode("utf-8")
