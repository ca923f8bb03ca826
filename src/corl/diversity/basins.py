"""From a probe to a prediction: where self-reward and Co-RL would take each problem, and why.

The samples of a problem become a distribution over answers for each model, and the replicator of
`corl.diversity.replicator` follows it to its end. Self-reward climbs where the right answer leads
all wrong ones in the model's own votes; Co-RL where it does so for the cohort together.

**Few samples.** Of K samples none may be right, and p is still not zero. The shares are posterior
means under a Dirichlet prior of weight 1 sample, centred on the cohort's pooled answers to that
problem (95 %) and on a uniform share for every outcome (5 %). Intervals resample the problems; a
problem and its counts are drawn together, so they hold the noise of few samples too, but not its
bias: a problem near the separatrix is pulled towards the side that its samples happened to show.

**What this cannot know.** Each problem is taken to be moved by itself alone. A network is not: it
generalises, for good (an error mended on some problems is mended on all that share it) and for ill
(two agents may come to agree on answers that no sample showed). Ceilings are limits of many steps,
and a problem whose right answer is hardly ever sampled takes longer than a run lasts. `signal`
makes no such assumption, and says of the first step only what share of it points the right way.

Shapes: N agents, P problems, M answers followed; outcomes are M + 1, rest last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corl.diversity.counts import Probed
from corl.diversity.dynamics import expected_push
from corl.diversity.replicator import follow, plurality_chances
from corl.errors import RecipeError

Floats = NDArray[np.float64]

COMPLETIONS = 8
"""Completions of a prompt in the run that is predicted."""
FOLLOWED = 6
"""Answers followed per problem: the right one and the most frequent others; the rest is pooled."""
NOTABLE = 0.2
"""A problem counts as gained or lost where its share of right answers moves by so much."""

_PRIOR_SAMPLES, _PRIOR_UNIFORM = 1.0, 0.05
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one grader would make of one agent."""

    pupil: str
    teacher: str
    """The pupil itself under self-reward."""
    start: float
    """Mean share of right answers before training, 0 to 1."""
    ceiling: float
    """The same after very many steps."""
    interval: tuple[float, float]
    """95 % of the ceiling, over problems drawn anew."""
    signal: float
    """Share of the pupil's first learning signal that points to right answers; NaN without any."""
    starts: tuple[float, ...]
    """[P] share of right answers before."""
    ends: tuple[float, ...]
    """[P] the same after."""
    gained: tuple[str, ...]
    """Ids of problems whose share of right answers rises by `NOTABLE` or more."""
    lost: tuple[str, ...]
    """Ids of those where it falls by as much."""

    @property
    def gain(self) -> float:
        """Ceiling less start."""
        return self.ceiling - self.start


def answer_shares(probed: Probed, names: Sequence[str]) -> Floats:
    """[N, P, M + 1] posterior mean shares of answers; the right one first, rest last."""
    models = [probed.model(name) for name in names]
    counts = np.zeros((len(names), len(probed.ids), FOLLOWED + 1))
    for p, label in enumerate(probed.labels):
        tallies = [model.tallies[p] for model in models]
        pooled: Counter[str] = Counter()
        for tally in tallies:
            pooled.update(tally.counts)
        ranked = sorted(pooled, key=lambda key: (key != label, -pooled[key], key))
        followed = [label, *(key for key in ranked if key != label)][:FOLLOWED]
        for n, tally in enumerate(tallies):
            of_followed = [tally.counts.get(key, 0) for key in followed]
            counts[n, p, : len(followed)] = of_followed
            counts[n, p, -1] = tally.samples - sum(of_followed)
    pooled_pm = counts.sum(0) / counts.sum((0, 2))[:, None]
    prior = (1 - _PRIOR_UNIFORM) * pooled_pm + _PRIOR_UNIFORM / (FOLLOWED + 1)
    posterior = counts + _PRIOR_SAMPLES * prior
    return np.asarray(posterior / posterior.sum(-1, keepdims=True))


def predict_self(
    probed: Probed, name: str, *, completions: int = COMPLETIONS, follows: bool = True
) -> Prediction:
    """Self-reward (TTRL) of one model. Arguments and errors as those of `predict_ring`."""
    return _predict(probed, [name], [0], completions, follows)[0]


def predict_ring(
    probed: Probed, ring: Sequence[str], *, completions: int = COMPLETIONS, follows: bool = True
) -> list[Prediction]:
    """Co-RL of a ring, one prediction an agent; each is graded by the one before it.

    ring: names of two models or more, none twice. follows: False leaves out the costly part, and
    ceilings are NaN. Raises RecipeError for a ring that is none, PromptError for an unknown name.
    """
    if len(ring) < 2 or len(set(ring)) < len(ring):
        raise RecipeError(f"a ring needs two different models or more, and was {list(ring)}")
    graders = [(n - 1) % len(ring) for n in range(len(ring))]
    return _predict(probed, ring, graders, completions, follows)


def signal_share(pupil: Floats, teacher: Floats, completions: int) -> float:
    """Of the pushes that the teacher's votes give its pupil's answers, the share on right ones.

    pupil, teacher: [P, M + 1] shares. A vote v moves its answer's logit by w_v g(x_v): a wrong vote
    counts as far as the pupil gives that answer itself, which is how a shared error does its harm.
    """
    pushes = plurality_chances(teacher, completions) * expected_push(pupil[:, :-1], completions)
    total = float(pushes.sum())
    return float(pushes[:, 0].sum()) / total if total > 0 else float("nan")


def _predict(
    probed: Probed, names: Sequence[str], graders: Sequence[int], completions: int, follows: bool
) -> list[Prediction]:
    if completions < 2:
        raise RecipeError(f"completions is {completions}; a group of one teaches nothing")
    shares = answer_shares(probed, names)
    ends = follow(shares, graders, completions) if follows else np.full_like(shares, np.nan)
    return [
        _summary(
            probed,
            (name, names[grader]),
            shares[n, :, 0],
            ends[n, :, 0],
            signal_share(shares[n], shares[grader], completions),
        )
        for n, (name, grader) in enumerate(zip(names, graders, strict=True))
    ]


def _summary(
    probed: Probed, who: tuple[str, str], starts: Floats, ends: Floats, signal: float
) -> Prediction:
    moves = ends - starts
    rng = np.random.default_rng(0)
    weights = rng.multinomial(len(ends), np.full(len(ends), 1 / len(ends)), size=_RESAMPLES)
    low, high = np.quantile(weights @ ends / len(ends), (0.025, 0.975))
    return Prediction(
        pupil=who[0],
        teacher=who[1],
        start=float(starts.mean()),
        ceiling=float(ends.mean()),
        interval=(float(low), float(high)),
        signal=signal,
        starts=tuple(map(float, starts)),
        ends=tuple(map(float, ends)),
        gained=tuple(id_ for id_, move in zip(probed.ids, moves, strict=True) if move >= NOTABLE),
        lost=tuple(id_ for id_, move in zip(probed.ids, moves, strict=True) if move <= -NOTABLE),
    )
