"""Measures how often the intervals of `corl eval` hold the truth, and how often p-values cry wolf.

    python benchmarks/interval_coverage.py --simulations 4000

Problems are drawn from Beta distributions of difficulty with a given mean (the population's
accuracy) and answered once (0 or 1) or 8 times (averaged). Two models of equal accuracy share the
problems' difficulty and answer them independently: every p below 0.05 is a false alarm.
"""

import argparse
from functools import cache
from itertools import product

import numpy as np

from corl.evaluation.paired import paired_comparison
from corl.evaluation.resampling import problem_interval

SIZES = (83, 164, 500, 1319)
ACCURACIES = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98)
SPREAD = 1.0
"""a + b of the Beta distribution: 1 is many easy and many hard problems, as in real benchmarks."""


def draw(generator: np.random.Generator, chances: np.ndarray, samples: int) -> np.ndarray:
    """Values of problems, [P]: their shares of right answers."""
    return generator.binomial(samples, chances) / samples


def difficulties(generator: np.random.Generator, accuracy: float, size: int) -> np.ndarray:
    """Chances of a right answer, [P]."""
    return generator.beta(SPREAD * accuracy, SPREAD * (1 - accuracy), size)


def other_spreads(count: int) -> None:
    """Coverage where difficulty spreads otherwise: logit-normal, or two kinds of problems."""
    generator = np.random.default_rng(314159)
    covered = []
    cells = product((83, 164, 198, 500), (0.05, 0.2, 0.5, 0.8, 0.95, 0.98), (None, 1.0, 3.0))
    for size, accuracy, deviation in cells:
        for samples in (2, 5, 8, 32):
            held = 0
            for _ in range(count):
                if deviation is None:
                    high, low = min(0.995, accuracy + 0.8 * (1 - accuracy)), 0.3 * accuracy
                    is_easy = generator.random(size) < (accuracy - low) / (high - low)
                    chances = np.where(is_easy, high, low)
                else:
                    center = _logit_center(accuracy, deviation)
                    chances = 1 / (1 + np.exp(-generator.normal(center, deviation, size)))
                values = draw(generator, chances, samples)
                below, above = problem_interval(values.tolist()) or (0.0, 1.0)
                held += below <= accuracy <= above
            covered.append(held / count)
            kind = "two kinds" if deviation is None else f"logit-normal, {deviation:.0f}"
            print(
                f"{size:8d} {samples:7d} {accuracy:8.2f} {kind:16} {covered[-1]:8.3f}", flush=True
            )
    low, high = (
        sum(test(one) for one in covered) for test in (lambda c: c < 0.93, lambda c: c > 0.97)
    )
    print(f"{len(covered)} settings: {min(covered):.3f} to {max(covered):.3f}, {low} below 0.93, "
          f"{high} above 0.97")  # fmt: skip


@cache
def _logit_center(accuracy: float, deviation: float) -> float:
    """Where a logit-normal of that deviation has its mean at `accuracy`."""
    grid = np.sort(np.random.default_rng(0).standard_normal(200_000)) * deviation
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        is_low = (1 / (1 + np.exp(-(grid + middle)))).mean() < accuracy
        low, high = (middle, high) if is_low else (low, middle)
    return low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--other-spreads", action="store_true", help="of difficulty, instead")
    arguments = parser.parse_args()
    count = arguments.simulations
    if arguments.other_spreads:
        other_spreads(count)
        return
    generator = np.random.default_rng(0)
    print("problems samples accuracy  interval  difference  false alarms at 0.05")
    for size, samples, accuracy in product(SIZES, (1, 8), ACCURACIES):
        held = held_difference = alarms = 0
        pairs = count if samples == 1 else count // 20  # 20,000 sign flips each
        for number in range(count):
            chances = difficulties(generator, accuracy, size)
            values = draw(generator, chances, samples)
            low, high = problem_interval(values.tolist()) or (0.0, 1.0)
            held += low <= accuracy <= high
            if number < pairs:
                other = draw(generator, chances, samples)
                compared = paired_comparison(values.tolist(), other.tolist())
                below, above = compared.interval or (-1.0, 1.0)
                held_difference += below <= 0 <= above
                alarms += (compared.p_value or 1.0) < 0.05
        print(
            f"{size:8d} {samples:7d} {accuracy:8.2f}  {held / count:8.3f}  "
            f"{held_difference / pairs:10.3f}  {alarms / pairs:.3f}  ({count}, {pairs})",
            flush=True,
        )


if __name__ == "__main__":
    main()
