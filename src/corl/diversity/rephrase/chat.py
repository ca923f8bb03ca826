"""One request to an OpenAI-compatible `/v1/chat/completions`, and what its answer means."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from corl.diversity.rephrase.pacing import retry_after
from corl.errors import CorlError

LARGEST_BODY = 2 * 2**20
"""Bytes of a response that are read."""
_CONNECT_SECONDS = 15.0
_FATAL = (401, 402, 403, 404, 405, 407)
"""The key, the URL or the model is wrong: no other row will fare better."""
_PASSING = (408, 409, 425, 429)


class EndpointError(CorlError, ConnectionError):
    """The endpoint cannot be used: wrong URL, key or model, or it answers no more."""


class Passing(Exception):
    """A failure that may pass."""

    def __init__(self, why: str, *, pause: float | None = None, connects: bool = True) -> None:
        super().__init__(why)
        self.pause = pause
        """Seconds that the server asked for."""
        self.connects = connects
        """Whether a server was reached at all."""


class Refusal(Exception):
    """The server refuses this one request, and would again."""


@dataclass(frozen=True, slots=True)
class Said:
    """The text of a response."""

    text: str
    is_cut: bool
    """Whether it ended at a length limit."""


class Chat:
    """A connection pool to one endpoint. Redirects are not followed: they would carry the key."""

    def __init__(self, url: str, *, key: str | None, timeout: float, connections: int) -> None:
        """Open no connection yet.

        url: up to `/v1`, or whole. key: sent as a bearer token, never shown. timeout: seconds for
        one whole answer. Raises EndpointError for a URL or key that cannot be used.
        """
        try:
            import httpx2
        except ImportError:
            raise EndpointError(
                "asking an endpoint needs the httpx2 library; install corl[rephrase]"
            ) from None

        self.url = completions_url(url)
        self._key, self._timeout = key, timeout
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if key is not None:
            if not key.isascii() or not key.isprintable() or not key or " " in key:
                raise EndpointError("the API key holds characters that no key has; set it again")
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx2.Client(
            headers=headers,
            timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
            limits=httpx2.Limits(
                max_connections=connections, max_keepalive_connections=connections
            ),
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close all connections; requests under way fail."""
        self._client.close()

    def say(self, body: Mapping[str, Any]) -> Said:
        """Post one request. Raises Passing, Refusal or EndpointError."""
        import httpx2

        try:
            status, headers, content = self._exchange(body)
        except httpx2.TimeoutException as error:
            reached = not isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout)
            raise Passing(f"no answer within {self._timeout:g} s", connects=reached) from None
        except httpx2.ConnectError as error:
            raise Passing(f"no connection ({self.clean(str(error))})", connects=False) from None
        except httpx2.UnsupportedProtocol as error:
            raise EndpointError(f"endpoint {self.url}: {self.clean(str(error))}") from None
        except httpx2.TransportError as error:
            raise Passing(f"broken answer ({self.clean(str(error))})") from None
        if status != 200:
            self._raise_for(status, headers, content)
        return self._said(content)

    def clean(self, text: str) -> str:
        """Text of the server's for people: one line, no control characters, never the key."""
        if self._key:
            text = text.replace(self._key, "***")
        return "".join(one if one.isprintable() else " " for one in text)[:300].strip()

    def _exchange(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        deadline = time.monotonic() + self._timeout
        parts: list[bytes] = []
        size = 0
        with self._client.stream("POST", self.url, json=dict(body)) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise Passing("the answer is compressed, which was not asked for")
            for part in response.iter_raw():
                size += len(part)
                if size > LARGEST_BODY:
                    raise Passing(f"the answer is longer than {LARGEST_BODY} bytes")
                if time.monotonic() > deadline:
                    raise Passing(f"no whole answer within {self._timeout:g} s")
                parts.append(part)
            return response.status_code, dict(response.headers), b"".join(parts)

    def _raise_for(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        said = self.clean(_message(content))
        why = f"status {status}{f' ({said})' if said else ''}"
        if 300 <= status < 400:
            raise EndpointError(f"endpoint {self.url} redirects elsewhere; give the final URL")
        if status in _FATAL:
            raise EndpointError(f"endpoint {self.url}: {why}; check its URL, the model and the key")
        if status in _PASSING or status >= 500 or status < 200:
            pause = retry_after(headers.get("retry-after"), datetime.now(UTC))
            raise Passing(why, pause=pause)
        raise Refusal(why)

    def _said(self, content: bytes) -> Said:
        try:
            choice = json.loads(content)["choices"][0]
            text, end = choice["message"]["content"], choice.get("finish_reason")
        except (ValueError, RecursionError):
            raise Passing("the answer is no JSON") from None
        except (KeyError, IndexError, TypeError, AttributeError):
            raise Passing("the answer holds no choices[0].message.content") from None
        if end == "content_filter":
            raise Refusal("the endpoint's content filter took the answer")
        if not isinstance(text, str):
            raise Passing("the answer's content is no text")
        # A lone surrogate is valid in JSON and in no file.
        text = text.encode("utf-8", "replace").decode()
        return Said(text.replace(self._key, "***") if self._key else text, end == "length")


def completions_url(url: str) -> str:
    """The full URL of an endpoint given up to its host, its `/v1`, or whole.

    Raises EndpointError for anything but http and https, and for a URL that carries a password.
    """
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (raises for what is no port)
    except ValueError as error:
        raise EndpointError(f"the endpoint's URL cannot be read: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EndpointError(
            f"endpoint {url.partition('@')[2] or url!r} is no URL; write http://HOST:PORT/v1"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise EndpointError(
            "the endpoint's URL must hold no user, password or query; name the variable that holds "
            "the key: --api-key-env NAME"
        )
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path += "" if re.search(r"/(?:v\d+\w*|openai)$", path) else "/v1"
        path += "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _message(content: bytes) -> str:
    """What an error's body says."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return content[:300].decode("utf-8", "replace")
    for key in ("error", "message", "detail"):
        if isinstance(body, dict) and body.get(key):
            body = body[key]
    return body if isinstance(body, str) else json.dumps(body)
