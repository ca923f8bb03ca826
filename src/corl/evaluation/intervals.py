"""Intervals over a few seeds."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

# 0.975 quantiles of Student's t for 1 to 10 degrees of freedom.
_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_NORMAL_975 = 1.960


def seed_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % t-interval of the mean over seeds; None for a single seed, which has no spread."""
    if len(values) < 2:
        return None
    freedom = len(values) - 1
    quantile = _T_975[freedom - 1] if freedom <= len(_T_975) else _NORMAL_975
    half = quantile * stdev(values) / sqrt(len(values))
    mean = fmean(values)
    return mean - half, mean + half
