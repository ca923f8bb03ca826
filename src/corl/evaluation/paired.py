"""Two models on the same problems: the difference, its interval and a p-value, by problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np

from corl.evaluation.resampling import Z_975

_EXACT_UP_TO = 16
_FLIPS = 20_000


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """How much better a is than b, on the same problems."""

    difference: float
    """Mean of a - b."""
    interval: tuple[float, float] | None
    """95 %; None for fewer than two problems."""
    p_value: float | None
    """Two-sided, of the hypothesis that a and b may trade places on every problem; None without
    a problem."""
    n: int
    """Problems."""


def paired_comparison(a: Sequence[float], b: Sequence[float]) -> PairedComparison:
    """Compare two models' values on the same problems.

    a, b: [P] each in [0, 1]. Of 0 and 1 alone the p-value is McNemar's, exact; otherwise that of
    flipping the signs of the differences, exact up to 16 that are not 0 and by 20,000 seeded draws
    above. The interval is Bonett and Price's (2012) for 0 and 1, else the normal one of the mean
    difference.
    Raises ValueError where the lengths differ.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} problems: a pair needs the same")
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    n = len(differences)
    if n == 0:
        return PairedComparison(0.0, None, None, 0)
    is_binary = all(value in (0, 1) for value in (*a, *b))
    p_value = _mcnemar(differences) if is_binary else _sign_flips(differences)
    interval = None
    if n > 1:
        interval = _bonett_price(differences) if is_binary else _normal(differences)
    return PairedComparison(float(differences.mean()), interval, p_value, n)


def _mcnemar(differences: np.ndarray) -> float:
    """Twice the smaller tail of Binomial(discordant, 1/2)."""
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    total, fewer = wins + losses, min(wins, losses)
    tail = sum(comb(total, count) for count in range(fewer + 1))
    return min(1.0, 2 * tail / 2**total)


def _sign_flips(differences: np.ndarray) -> float:
    moved = differences[differences != 0]
    if len(moved) == 0:
        return 1.0
    seen = abs(moved.sum())
    # Sums that differ by rounding alone are ties.
    least = seen - 1e-9 * np.abs(moved).sum()
    if len(moved) <= _EXACT_UP_TO:
        bits = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1
        return float(np.mean(np.abs((1 - 2 * bits) @ moved) >= least))
    generator = np.random.default_rng(0)
    as_extreme = 0
    for start in range(0, _FLIPS, 1000):
        count = min(1000, _FLIPS - start)
        signs = 1 - 2 * generator.integers(0, 2, size=(count, len(moved)))
        as_extreme += int((np.abs(signs @ moved) >= least).sum())
    return (as_extreme + 1) / (_FLIPS + 1)


def _bonett_price(differences: np.ndarray) -> tuple[float, float]:
    """Adjusted Wald interval: one problem is added to each kind of discordant pair."""
    n = len(differences)
    only_a = ((differences > 0).sum() + 1) / (n + 2)
    only_b = ((differences < 0).sum() + 1) / (n + 2)
    center = only_a - only_b
    half = Z_975 * sqrt((only_a + only_b - center * center) / (n + 2))
    return max(-1.0, float(center - half)), min(1.0, float(center + half))


def _normal(differences: np.ndarray) -> tuple[float, float]:
    mean = float(differences.mean())
    half = Z_975 * float(differences.std(ddof=1)) / sqrt(len(differences))
    return max(-1.0, mean - half), min(1.0, mean + half)
