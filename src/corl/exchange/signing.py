"""Signed ballots: who wrote one is proven by its Ed25519 signature (RFC 8032), by cryptography.

What is signed are the ballot's very bytes, run, step and agent among them, so a ballot that was
replayed, moved to another step or put under another name does not pass for the one that is due.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from corl.errors import ExchangeError, RecipeError
from corl.exchange.ballot import Ballot

_PURPOSE = b"corl ballot 1\n"
"""Before what is signed: a signature for another purpose is none of a ballot."""


class Signer:
    """A site's private key."""

    def __init__(self, path: str | Path) -> None:
        """path: PEM file, not encrypted. Raises RecipeError where it is none."""
        serialization, ed25519, _, unsupported = _cryptography()
        try:
            key = serialization.load_pem_private_key(_read(path), password=None)
        except (ValueError, TypeError, unsupported) as error:
            raise RecipeError(
                f"key {str(path)!r} is not a plain PEM private key: {error}"
            ) from None
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise RecipeError(f"key {str(path)!r} is not an Ed25519 private key; {_ADVICE}")
        self._key = key

    def seal(self, ballot: Ballot) -> bytes:
        """The ballot with its signature, as UTF-8 JSON."""
        content = ballot.to_bytes()
        signature = self._key.sign(_PURPOSE + content).hex()
        sealed = {"ballot": content.decode(), "signature": signature}
        return json.dumps(sealed, ensure_ascii=False, separators=(",", ":")).encode()


class Verifier:
    """A peer's public key."""

    def __init__(self, path: str | Path) -> None:
        """path: PEM file. Raises RecipeError where it is none."""
        serialization, ed25519, self._invalid, unsupported = _cryptography()
        try:
            key = serialization.load_pem_public_key(_read(path))
        except (ValueError, unsupported) as error:
            raise RecipeError(f"key {str(path)!r} is not a PEM public key: {error}") from None
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise RecipeError(f"key {str(path)!r} is not an Ed25519 public key; {_ADVICE}")
        self._key = key

    def open(self, sealed: bytes) -> Ballot:
        """The ballot inside. Raises ExchangeError where it is malformed or signed by another."""
        try:
            record = json.loads(sealed)
            content, signature = record["ballot"].encode(), bytes.fromhex(record["signature"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ExchangeError("it is not a signed ballot") from None
        try:
            self._key.verify(signature, _PURPOSE + content)
        except self._invalid:
            raise ExchangeError("its signature is not its agent's") from None
        return Ballot.from_bytes(content)


_ADVICE = "make one by `openssl genpkey -algorithm ed25519`"


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except OSError as error:
        raise RecipeError(
            f"key {str(path)!r} cannot be read ({error.strerror}); {_ADVICE}"
        ) from None


def _cryptography() -> tuple[Any, Any, type[Exception], type[Exception]]:
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise RecipeError("sites needs corl[sites]; install that extra") from None
    return serialization, ed25519, InvalidSignature, UnsupportedAlgorithm
