"""Measures how often the intervals of `corl eval` hold the truth, and how often p-values cry wolf.

    python benchmarks/interval_coverage.py --simulations 4000

Problems are drawn from Beta distributions of difficulty with a given mean (the population's
accuracy) and answered once (0 or 1) or 8 times (averaged). Two models of equal accuracy share the
problems' difficulty and answer them independently: every p below 0.05 is a false alarm.
"""

import argparse
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000)
    count = parser.parse_args().simulations
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
