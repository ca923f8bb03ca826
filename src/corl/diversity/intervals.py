"""95 % intervals of figures over problems, had other problems of the same kind been asked.

A share of problems gets Wilson's interval (`corl.evaluation.resampling`). Kappa, and any other
figure of a table of cells, gets quantiles of a posterior: problems are drawn from a multinomial
with a Dirichlet prior of 1/2 on each pure cell (Jeffreys). docs/kappa.md compares it with the
bootstrap and others. With one sample a problem this is the Dirichlet posterior of the 2x2 table.
With several, a problem's table holds fractions and is one unit, since its samples depend on each
other (Rubin 1981, the Bayesian bootstrap, with the same prior).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corl.evaluation.resampling import problem_interval

Floats = NDArray[np.float64]

_DRAWS = 10_000
_PRIOR = 0.5
_LEVELS = (0.025, 0.975)
_NUMBERS_AT_ONCE = 2_000_000


class Interval(NamedTuple):
    """A 95 % interval, both ends in the units of its figure."""

    low: float
    high: float


def share_interval(values: Sequence[float]) -> Interval | None:
    """Of the mean of [P] values in [0, 1]; None for a single problem."""
    found = problem_interval(values)
    return None if found is None else Interval(*found)


def posterior_interval(
    tables: Floats, pure: Floats, statistic: Callable[[Floats], Floats]
) -> Interval | None:
    """Of a statistic of the summed tables.

    tables: [P, C], each problem's cells. pure: [M, C], the tables that one problem with one sample
    can have; each counts as half a problem more. statistic: from [D, C] summed tables, of any
    scale, to [D] figures; NaN where it has none. Draws are fixed, so the same tables give the same
    interval. None where more than half of the draws have no figure.
    """
    units, counts = np.unique(np.concatenate([tables, pure]), axis=0, return_counts=True)
    weights = counts.astype(np.float64)
    for table in pure:
        weights[(units == table).all(axis=1)] -= 1 - _PRIOR
    random = np.random.default_rng(0)
    block = max(1, _NUMBERS_AT_ONCE // len(units))
    figures = np.concatenate(
        [
            statistic(
                random.standard_gamma(weights, (min(block, _DRAWS - start), len(units))) @ units
            )
            for start in range(0, _DRAWS, block)
        ]
    )
    known = figures[~np.isnan(figures)]
    if 2 * len(known) < len(figures):
        return None
    low, high = np.quantile(known, _LEVELS)
    return Interval(float(low), float(high))


def around(interval: Interval | None, figure: float) -> Interval | None:
    """The interval, widened to its own figure: a prior pulls it off the ends of the range."""
    if interval is None:
        return None
    return Interval(min(interval.low, figure), max(interval.high, figure))
