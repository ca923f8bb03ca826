"""Which rows a step trains on: a function of the data seed alone.

Every agent computes the same order by itself, so nothing about it crosses the
exchange. Each epoch is a permutation of its own.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


def step_rows(step: int, *, num_rows: int, per_step: int, data_seed: int) -> list[int]:
    """Row indices of a step (counted from 1), `per_step` of them.

    A step that reaches past an epoch's end goes on with the next epoch's order.
    """
    first = (step - 1) * per_step
    return [
        int(_permutation(position // num_rows, num_rows, data_seed)[position % num_rows])
        for position in range(first, first + per_step)
    ]


def num_steps(*, num_rows: int, per_step: int, epochs: float) -> int:
    """Steps that `epochs` passes over the rows take, at least one."""
    return max(1, math.ceil(epochs * num_rows / per_step))


@lru_cache(maxsize=4)
def _permutation(epoch: int, num_rows: int, data_seed: int) -> np.ndarray:
    return np.random.Generator(np.random.Philox(key=[data_seed, epoch])).permutation(num_rows)
