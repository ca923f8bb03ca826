"""Ballots and how they travel: all that agents ever learn of one another."""

from corl.exchange.ballot import Ballot, rows_digest
from corl.exchange.base import Exchange
from corl.exchange.local import LocalExchange

__all__ = ["Ballot", "Exchange", "LocalExchange", "rows_digest"]
