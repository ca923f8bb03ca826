"""Ranks of one trainer, where torch.distributed runs; alone, everything is the first rank's.

Objects pass between the ranks of one trainer only, which trust each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch import distributed

from corl.errors import CorlError

Value = TypeVar("Value")


def of_all_ranks(mine: list[Value]) -> list[Value]:
    """The ranks' lists behind one another, which is the order in which TRL groups completions."""
    _, ranks = _ranks()
    if ranks == 1:
        return mine
    parts: list[Any] = [None] * ranks
    distributed.all_gather_object(parts, mine)
    return [each for part in parts for each in part]


def on_first_rank(work: Callable[[], Value]) -> Value:
    """What `work` returns on the first rank, on every rank; or its error, so that none waits."""
    rank, ranks = _ranks()
    if ranks == 1:
        return work()
    box: list[Any] = [None]
    if rank == 0:
        try:
            box = [(work(), None)]
        except CorlError as error:
            box = [(None, error)]
    distributed.broadcast_object_list(box, src=0)
    value, failure = box[0]
    if failure is not None:
        raise failure
    return value


def this_ranks(count: int) -> slice:
    """Where this rank's `count` values lie among all ranks' values, each having as many."""
    rank, _ = _ranks()
    return slice(rank * count, (rank + 1) * count)


def _ranks() -> tuple[int, int]:
    """(this rank, number of ranks)."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()
