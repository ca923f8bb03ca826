"""How often 95 % intervals of kappa hold the true one: ours and four others, 1,000 probes a row.

    python benchmarks/kappa_coverage.py [--probes 1000]

Probes are drawn from a 2x2 multinomial with the given accuracies and kappa; the last table has
problems of unequal difficulty and four samples of each. Needs scipy (it comes with scikit-learn).
About 4 minutes on one core.
"""

import argparse

import numpy as np
from scipy.stats import norm

from corl.diversity.overlap import error_overlap, kappa_interval, kappa_of

Z = norm.ppf(0.975)
RESAMPLES = 2000


def cells(kappa, p_a, p_b):
    """[4] shares, or None where these accuracies do not allow that kappa."""
    chance = p_a * p_b + (1 - p_a) * (1 - p_b)
    both = (chance + kappa * (1 - chance) - 1 + p_a + p_b) / 2
    table = np.array([both, p_a - both, p_b - both, 1 - p_a - p_b + both])
    return None if (table < -1e-12).any() else table.clip(0)


def standard_error(counts):
    shares, step = counts / counts.sum(), 1e-6
    moves = step * np.eye(4)
    slope = (kappa_of(shares + moves) - kappa_of(shares - moves)) / (2 * step)
    return np.sqrt(max(shares @ slope**2 - (shares @ slope) ** 2, 0) / counts.sum())


def wald(counts, random):
    kappa, error = kappa_of(counts), standard_error(counts)
    return kappa - Z * error, kappa + Z * error


def fisher(counts, random):
    """The delta method on atanh(kappa)."""
    kappa = np.clip(kappa_of(counts), -0.999999, 0.999999)
    error = standard_error(counts) / (1 - kappa**2)
    return tuple(np.tanh(np.arctanh(kappa) + side * Z * error) for side in (-1, 1))


def percentile(counts, random):
    return np.nanquantile(resampled(counts, random), [0.025, 0.975])


def bca(counts, random):
    """Efron 1987, acceleration by the jackknife."""
    drawn, kappa = resampled(counts, random), kappa_of(counts)
    below = (np.mean(drawn < kappa) + np.mean(drawn <= kappa)) / 2
    bias = norm.ppf(np.clip(below, 1e-4, 1 - 1e-4))
    seen = np.flatnonzero(counts)
    left_out = np.array([kappa_of(counts - np.eye(4)[cell]) for cell in seen])
    away = (counts[seen] * left_out).sum() / counts.sum() - left_out
    spread = (counts[seen] * away**2).sum()
    skew = (counts[seen] * away**3).sum() / (6 * spread**1.5) if spread else 0
    levels = [norm.cdf(bias + (bias + z) / (1 - skew * (bias + z))) for z in (-Z, Z)]
    return np.nanquantile(drawn, levels)


def resampled(counts, random):
    size = int(counts.sum())
    return kappa_of(random.multinomial(size, counts / size, size=RESAMPLES).astype(float))


def jeffreys(counts, random):
    """The product's."""
    return kappa_interval(np.repeat(np.eye(4), counts.astype(int), axis=0), float(kappa_of(counts)))


METHODS = {
    "Jeffreys": jeffreys, "Wald": wald, "Fisher z": fisher, "percentile": percentile, "BCa": bca,
}  # fmt: skip


def one_sample(probes, random):
    print("| n | accuracies | kappa | " + " | ".join(METHODS) + " |")
    print("|---|---|---|" + "---|" * len(METHODS))
    for size in (256, 500):
        for p_a, p_b in ((0.5, 0.5), (0.3, 0.6), (0.2, 0.2), (0.85, 0.9)):
            for kappa in (0, 0.2, 0.4, 0.6, 0.9, 0.96):
                table = cells(kappa, p_a, p_b)
                if table is None:
                    continue
                covered = dict.fromkeys(METHODS, 0)
                for counts in random.multinomial(size, table, size=probes).astype(float):
                    for name, method in METHODS.items():
                        low, high = method(counts, random)
                        covered[name] += low <= kappa <= high
                shown = " | ".join(f"{100 * held / probes:.1f}" for held in covered.values())
                print(f"| {size} | {p_a}, {p_b} | {kappa} | {shown} |", flush=True)


def several_samples(probes, random):
    """Right with a chance of its own for every problem, partly shared by the two models."""
    print("\n| n | samples | kappa | Jeffreys |\n|---|---|---|---|")
    for size in (256, 500):
        for shared in (0.0, 0.5, 1.0):

            def chances(problems, shared=shared):
                own = random.beta(0.5, 0.5, size=(2, problems))
                is_shared = random.random(problems) < shared
                return own[0], np.where(is_shared, own[0], own[1])

            a, b = chances(2_000_000)
            truth = float(kappa_of(np.array([a @ b, a @ (1 - b), (1 - a) @ b, (1 - a) @ (1 - b)])))
            covered = 0
            for _ in range(probes):
                a, b = chances(size)
                low, high = error_overlap(
                    random.random((size, 4)) < a[:, None], random.random((size, 4)) < b[:, None]
                ).kappa_interval
                covered += low <= truth <= high
            print(f"| {size} | 4 | {truth:.2f} | {100 * covered / probes:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probes", type=int, default=1000)
    probes = parser.parse_args().probes
    one_sample(probes, np.random.default_rng(1))
    several_samples(probes, np.random.default_rng(2))


if __name__ == "__main__":
    main()
