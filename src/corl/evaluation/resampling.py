"""The 95 % interval of a mean over problems, had other problems of the same kind been asked.

Problems are the units: the samples of one problem depend on each other, and are averaged first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean

Z_975 = 1.959964
"""0.975 quantile of the normal distribution."""

_AT_EACH_END = 0.1
"""Problems at 0 and at 1 that the variance counts besides."""


def problem_interval(values: Sequence[float], *, seed: int = 0) -> tuple[float, float] | None:
    """Wilson's score interval with the design effect of averaged samples.

    values: [P] per problem, each in [0, 1]: 0 or 1, or a mean of several samples. A mean m of P
    values with variance s^2 is worth P * m (1 - m) / s^2 answers of 0 or 1 (more than P, since
    averaging takes noise out); Wilson's interval is taken for so many. Near 0 and 1 a few problems
    carry all of the variance and may be missing, so a tenth of a problem at either end is counted
    in s^2. The interval never leaves [0, 1], and 0 right of 83 is not [0, 0], as a bootstrap of the
    problems would have it. docs/statistics.md has its coverage.
    seed: unused; the interval is exact arithmetic. None for a single problem.
    """
    if len(values) < 2:
        return None
    if not all(0.0 <= value <= 1.0 for value in values):
        raise ValueError("values of problems must lie in [0, 1]")
    mean, count = fmean(values), len(values)
    squares = sum((value - mean) ** 2 for value in values)
    size = float(count)
    if squares > 0:
        squares += _AT_EACH_END * (mean * mean + (1 - mean) * (1 - mean))
        spread = squares / (count - 1 + 2 * _AT_EACH_END)
        size = max(size, count * mean * (1 - mean) / spread)
    return wilson_interval(mean, size)


def wilson_interval(share: float, size: float) -> tuple[float, float]:
    """Wilson 1927: the shares p from which `share` of `size` is within 1.96 standard errors."""
    widening = Z_975 * Z_975 / size
    center = (share + widening / 2) / (1 + widening)
    half = Z_975 / (1 + widening) * sqrt(share * (1 - share) / size + widening / (4 * size))
    return max(0.0, center - half), min(1.0, center + half)
