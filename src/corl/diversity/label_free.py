"""What can be said of two models' error overlap without a label.

*Agreement* and what of it exceeds chance are facts, but they rise with accuracy as much as with
shared errors. *Minority agreement* leaves most of the accuracy out: where both models depart from
the answer that all probed models give most often, how often do they depart to the same one? It
stands for "the same wrong answer, given both wrong".

The *estimate* of kappa needs an assumption, for from two answers that differ nobody can tell which
is right, or whether any is: an answer's chance of being right is proportional to the chance that
two answers drawn from all probed models' answers to that problem (equal weight a model) are both
that one; no answer counts as one more outcome, under which none is right. Errors that most models
share are taken for right answers. docs/kappa.md has the measured error.

Shapes: P problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corl.diversity.counts import Tally
from corl.diversity.intervals import Interval, around, posterior_interval, share_interval
from corl.diversity.overlap import kappa_of

Shares = Mapping[str, float]
"""Answer key -> share of a problem's samples; what is missing to 1 stated no answer."""

FEWEST_ANSWERS = 6
"""Answers of a problem, over all models, below which kappa is not estimated."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What all probed models together answered."""

    shares: list[Shares]
    """[P], models weighing the same."""
    num_models: int
    answers_per_problem: int
    """Samples of a problem over all models, the fewest of all problems."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelFree:
    """Two models' agreement, each figure over pairs of samples (one of each) on one problem."""

    agreement: float
    """Share of pairs with the same answer; two without an answer do not agree."""
    agreement_interval: Interval | None
    beyond_chance: float | None
    """(agreement - chance) / (1 - chance); chance: the same for two different problems."""
    minority_agreement: float | None
    """Of pairs that both depart from the pool's most frequent answer: those with one answer."""
    minority_agreement_interval: Interval | None
    kappa_estimate: float | None
    reason: str | None
    """Why there is no estimate, where there is none."""


def pool_of(models: Sequence[Sequence[Tally]]) -> Pool:
    """Pool [N][P] tallies."""
    return Pool(
        [_mean([_shares(one) for one in tallies]) for tallies in zip(*models, strict=True)],
        len(models),
        min(sum(one.samples for one in tallies) for tallies in zip(*models, strict=True)),
    )


def label_free_overlap(a: Sequence[Tally], b: Sequence[Tally], pool: Pool) -> LabelFree:
    """Compare two models, [P] tallies each, both among those that the pool was made of."""
    ours, theirs = [_shares(one) for one in a], [_shares(one) for one in b]
    agreed = [_product(x, y) for x, y in zip(ours, theirs, strict=True)]
    agreement = sum(agreed) / len(agreed)
    chance = _chance(ours, theirs, agreed)
    minority, minority_interval = _minority(ours, theirs, pool)
    kappa, reason = estimated_kappa(a, b, pool)
    return LabelFree(
        agreement=agreement,
        agreement_interval=share_interval([min(one, 1.0) for one in agreed]),
        beyond_chance=None if chance is None else (agreement - chance) / (1 - chance),
        minority_agreement=minority,
        minority_agreement_interval=minority_interval,
        kappa_estimate=kappa,
        reason=reason,
    )


def chances_of_right(pool: Shares) -> dict[str, float]:
    """Chance that each answer of one problem is the right one; they sum to at most 1."""
    silent = max(0.0, 1 - sum(pool.values()))
    total = sum(share**2 for share in pool.values()) + silent**2
    return {key: share**2 / total for key, share in pool.items()}


def estimated_kappa(
    a: Sequence[Tally], b: Sequence[Tally], pool: Pool
) -> tuple[float | None, str | None]:
    """Kappa as the pool suggests it, or None and why there is no estimate. [P] tallies each."""
    if pool.num_models < 2 or pool.answers_per_problem < FEWEST_ANSWERS:
        return None, (
            f"{pool.num_models} model(s) with {pool.answers_per_problem} answer(s) a problem are "
            f"too few; it takes 2 models and {FEWEST_ANSWERS} answers: raise --samples"
        )
    table = np.zeros(4)
    for x, y, both in zip(map(_shares, a), map(_shares, b), pool.shares, strict=True):
        chances = chances_of_right(both)
        right_x = sum(chance * x.get(key, 0.0) for key, chance in chances.items())
        right_y = sum(chance * y.get(key, 0.0) for key, chance in chances.items())
        right = sum(chance * x.get(key, 0.0) * y.get(key, 0.0) for key, chance in chances.items())
        table += (right, right_x - right, right_y - right, 1 - right_x - right_y + right)
    kappa = float(kappa_of(np.clip(table, 0.0, None)))
    if np.isnan(kappa):
        return None, "all samples of all models agree on every problem"
    return kappa, None


def _minority(
    ours: Sequence[Shares], theirs: Sequence[Shares], pool: Pool
) -> tuple[float | None, Interval | None]:
    pairs = []
    for x, y, both in zip(ours, theirs, pool.shares, strict=True):
        most = max(both.values(), default=0.0)
        rare_x, rare_y = (
            # Shares are sums of fractions; a tie for the first place must not hang on rounding.
            {key: share for key, share in one.items() if both[key] < most - 1e-9}
            for one in (x, y)
        )
        pairs.append((_product(rare_x, rare_y), sum(rare_x.values()) * sum(rare_y.values())))
    tables = np.array(pairs)
    same, departing = tables.sum(axis=0)
    if departing <= 0:
        return None, None
    # The prior's pure cells weigh what a problem with a departing pair weighs in the mean.
    typical = float(departing / np.count_nonzero(tables[:, 1]))
    pure = np.array([[0.0, typical], [typical, typical]])
    interval = posterior_interval(tables, pure, lambda sums: sums[:, 0] / sums[:, 1])
    return float(same / departing), around(interval, float(same / departing))


def _chance(
    ours: Sequence[Shares], theirs: Sequence[Shares], agreed: Sequence[float]
) -> float | None:
    """Agreement of answers to two different problems; None for a single problem, or if it is 1."""
    problems = len(ours)
    if problems < 2:
        return None
    total = _product(_sum(ours), _sum(theirs)) - sum(agreed)
    chance = max(0.0, total / (problems * (problems - 1)))
    return chance if chance < 1 - 1e-12 else None


def _shares(tally: Tally) -> Shares:
    return {key: count / tally.samples for key, count in tally.counts.items() if count}


def _product(x: Shares, y: Shares) -> float:
    return sum(share * y.get(key, 0.0) for key, share in x.items())


def _sum(shares: Sequence[Shares]) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in shares:
        for key, share in one.items():
            total[key] = total.get(key, 0.0) + share
    return total


def _mean(shares: Sequence[Shares]) -> Shares:
    return {key: total / len(shares) for key, total in _sum(shares).items()}
