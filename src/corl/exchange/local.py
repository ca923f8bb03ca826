"""The exchange of agents that live in one process: a dictionary of one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corl.errors import ExchangeError
from corl.exchange.ballot import Ballot


class LocalExchange:
    """Passes ballots between the agents of this process."""

    def swap(
        self, ballots: Sequence[Ballot], *, graders: Mapping[str, Sequence[str]]
    ) -> dict[str, list[Ballot]]:
        """See `Exchange.swap`."""
        by_agent = {ballot.agent: ballot for ballot in ballots}
        due: dict[str, list[Ballot]] = {}
        for agent, names in graders.items():
            absent = [name for name in names if name not in by_agent]
            if absent:
                raise ExchangeError(f"agent {agent!r} is graded by {absent[0]!r}, who is not here")
            due[agent] = [by_agent[name].check(by_agent[agent]) for name in names]
        return due
