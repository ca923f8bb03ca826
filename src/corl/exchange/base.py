"""What the loop asks of an exchange, whatever carries the ballots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from corl.exchange.ballot import Ballot


class Exchange(Protocol):
    """Brings each agent of this process the ballots of the peers it is graded by."""

    def swap(
        self, ballots: Sequence[Ballot], *, graders: Mapping[str, Sequence[str]]
    ) -> dict[str, list[Ballot]]:
        """Hand in this process's ballots of one step, return what its agents are due.

        ballots: one per agent that lives in this process, all of one step.
        graders: per such agent, the names of the agents whose ballots it needs.
        Returns, per agent, those ballots in that order, each checked against the
        agent's own. Raises ExchangeError on a ballot of another run, step, row
        list or answer policy, ExchangeTimeout naming the agent that is late.
        """
        ...


class PatientExchange(Exchange, Protocol):
    """One whose ballots may be handed in steps before the peers' are needed."""

    def post(self, ballots: Sequence[Ballot]) -> None:
        """Hand in this process's ballots of one step; `swap` of the same ones follows later."""
        ...

    def arrived(self, ballots: Sequence[Ballot], *, graders: Mapping[str, Sequence[str]]) -> bool:
        """Whether `swap` would not wait for a peer. Waits for none itself."""
        ...
