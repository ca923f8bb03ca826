"""The 95 % interval of a mean over problems, had other problems of the same kind been asked.

Problems are the units: the samples of one problem depend on each other, and are averaged first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, variance

Z_975 = 1.959964
"""0.975 quantile of the normal distribution."""


def problem_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float] | None:
    """Wilson's score interval with the design effect of averaged samples.

    values: [P] per problem, each in [0, 1]: 0 or 1, or a mean of several samples. A mean m of P
    values with variance s^2 is worth P * m (1 - m) / s^2 answers of 0 or 1 (more than P, since
    averaging takes noise out); Wilson's interval is taken for so many. It never leaves [0, 1], and
    0 right of 83 is not the interval [0, 0], as a bootstrap of the problems would have it.
    seed: unused; the interval is exact arithmetic. None for a single problem.
    """
    if len(values) < 2:
        return None
    if not all(0.0 <= value <= 1.0 for value in values):
        raise ValueError("values of problems must lie in [0, 1]")
    mean, spread = fmean(values), variance(values)
    size = float(len(values))
    if spread > 0:
        size = max(size, size * mean * (1 - mean) / spread)
    return wilson_interval(mean, size)


def wilson_interval(share: float, size: float) -> tuple[float, float]:
    """Wilson 1927: the shares p from which `share` of `size` is within 1.96 standard errors."""
    widening = Z_975 * Z_975 / size
    center = (share + widening / 2) / (1 + widening)
    half = Z_975 / (1 + widening) * sqrt(share * (1 - share) / size + widening / (4 * size))
    return max(0.0, center - half), min(1.0, center + half)
