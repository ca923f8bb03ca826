"""A rewriter behind an OpenAI-compatible endpoint: concurrent, paced, patient.

Requests are tried again where a failure may pass. A row whose requests all fail gets a reply
without a text. Such replies are held back until another row is answered: a server that answers
nobody is an error, not a verdict on rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from corl.diversity.rephrase.chat import Chat, EndpointError, Passing, Refusal
from corl.diversity.rephrase.instruction import SYSTEM, user_message
from corl.diversity.rephrase.pacing import Pace, backoff
from corl.diversity.rephrase.rewriter import Ask, Reply

_FEWEST_FAILURES = 8
_POLL_S = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointSettings:
    """How an endpoint is asked."""

    url: str
    model: str
    temperature: float = 0.7
    max_tokens: int = 2048
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of every request's body."""
    concurrency: int = 8
    per_minute: float | None = None
    """Requests a minute, attempts included."""
    attempts: int = 6
    """Requests for one reply before it is given up."""
    timeout: float = 120.0
    """Seconds for one whole answer."""
    first_backoff: float = 1.0
    """Seconds after a first failure; doubles from there."""
    key: str | None = field(default=None, repr=False)
    """Sent as a bearer token; neither shown nor stored."""

    @property
    def name(self) -> str:
        extra = f", {dict(self.extra)}" if self.extra else ""
        return f"{self.model}, temperature {self.temperature:g}, {self.max_tokens} tokens{extra}"

    def open(self, *, has_answered: bool) -> Endpoint:
        return Endpoint(self, has_answered=has_answered)


class Endpoint:
    """Asks over HTTP."""

    def __init__(self, settings: EndpointSettings, *, has_answered: bool = False) -> None:
        """has_answered: an earlier start got answers, so that a row alone may be at fault."""
        self._settings = settings
        self._chat = Chat(
            settings.url,
            key=settings.key,
            timeout=settings.timeout,
            connections=settings.concurrency,
        )
        self._pace = Pace(settings.per_minute)
        self._has_answered = has_answered
        self._random = random.Random()

    def close(self) -> None:
        self._pace.stop()
        self._chat.close()

    def replies(self, asks: Sequence[Ask], is_stopped: Callable[[], bool]) -> Iterator[Reply]:
        """Replies as they come, at most `concurrency` requests under way.

        After a stop no request goes out; those under way end, and their replies are yielded.
        """
        queue = list(reversed(asks))
        held: list[Reply] = []
        running: set[Future[Reply | None]] = set()
        pool = ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="rephrase")
        try:
            while queue or running:
                if is_stopped():
                    queue.clear()
                    self._pace.stop()
                while queue and len(running) < self._settings.concurrency:
                    running.add(pool.submit(self._asked, queue.pop()))
                done, running = wait(running, _POLL_S, return_when=FIRST_COMPLETED)
                for future in done:
                    reply = future.result()
                    if reply is not None:
                        yield from self._sorted_out(reply, held)
            if not is_stopped():
                yield from self._held_back(held)
        finally:
            if running:
                self.close()
            pool.shutdown(wait=False, cancel_futures=True)

    def _sorted_out(self, reply: Reply, held: list[Reply]) -> Iterator[Reply]:
        if reply.text is None:
            held.append(reply)
            most = max(_FEWEST_FAILURES, 2 * self._settings.concurrency)
            if len(held) >= most:
                raise EndpointError(self._gone(held))
            return
        self._has_answered = True
        yield from held
        held.clear()
        yield reply

    def _held_back(self, held: list[Reply]) -> Iterator[Reply]:
        if held and not self._has_answered:
            raise EndpointError(self._gone(held))
        yield from held

    def _gone(self, held: Sequence[Reply]) -> str:
        return (
            f"endpoint {self._chat.url} failed {len(held)} prompts in a row, the last with: "
            f"{held[-1].problem}. What was answered is kept; run again when it works"
        )

    def _asked(self, ask: Ask) -> Reply | None:
        """One reply; None when the job is stopping. Runs in a thread of the pool."""
        body = {
            "model": self._settings.model,
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": user_message(ask.text, ask.refused)},
            ],
            "temperature": self._settings.temperature,
            "max_tokens": self._settings.max_tokens,
            **self._settings.extra,
        }
        failures = 0
        while self._pace.wait_for_turn():
            try:
                said = self._chat.say(body)
            except Refusal as refusal:
                return Reply(ask, None, problem=str(refusal))
            except Passing as failure:
                failures += 1
                if failures >= self._settings.attempts:
                    why = f"{failure}, {failures} times" if failures > 1 else str(failure)
                    if not failure.connects:
                        raise EndpointError(f"endpoint {self._chat.url}: {why}") from None
                    return Reply(ask, None, problem=why)
                if failure.pause is not None:
                    self._pace.hold(failure.pause)
                else:
                    first = self._settings.first_backoff
                    self._pace.sleep(backoff(failures, self._random.random(), first=first))
            else:
                return Reply(ask, said.text, is_cut=said.is_cut)
        return None
