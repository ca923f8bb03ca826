"""Two answers, one prompt: the theory of peer votes as an ordinary differential equation.

Each agent is a softmax over two logits, right and wrong, and p is its probability of the right
answer. It draws K completions, is rewarded where they equal a vote, and takes GRPO's step. The
expected step, with samples of grader and pupil independent of each other, is

    dp_A/dt = q(p_A) * phi(p_B)                                     (arXiv 2608.17253, theory)

phi(p_B) is the chance that B's vote is right minus the chance that it is wrong: the signed majority
direction. A tie has no vote and moves nothing.

q follows from GRPO's group normalisation. Let n of A's K completions be right and the vote be
right. Rewards have mean n/K and unbiased deviation s(n) = sqrt(n (K - n) / (K (K - 1))), so a
right completion has advantage (1 - n/K) / (s + eps) and a wrong one -(n/K) / (s + eps). The
advantages of a group sum to zero, hence the mean over completions of advantage times the gradient
of log-probability is n (K - n) / (K^2 (s + eps)) on the right logit and its negative on the wrong
one. A wrong vote flips the sign. With g the mean over n ~ Binomial(K, p), the distance of the two
logits grows by 2 g(p) phi(p_B), and

    q(p) = 2 p (1 - p) g(p),    g(p) = E[ n (K - n) / (K^2 (s(n) + eps)) ]

Assumed: two answers, no abstentions but ties, a step small enough for its first order, one update
a batch without clipping or KL, and a prompt that nothing but itself moves. The last is never true
of a network. A unit of time is one step at learning rate 1 on the logits.

An agent that grades itself votes with the very completions it is graded on. The sign is then
decided by n: its drift is 2 p (1 - p) E[sign(n - K/2) n (K - n) / (K^2 (s + eps))], which has the
zeros and signs of q(p) phi(p) but not its values.

q(p) = q(1 - p) and phi(1 - p) = -phi(p), so two agents that start on p_A + p_B = 1 stay on it: this
is the separatrix of the pair. Above it both climb to 1, below it both fall to 0.

Shapes: N agents, `...` any further axes, elementwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corl.errors import RecipeError

Floats = NDArray[np.float64]

EPS = 1e-4
"""What GRPO adds to a group's deviation; the same as in `corl.grpo.group_advantages`."""

MAX_COMPLETIONS = 512
DURATION = 1e6
"""Near its corners the flow slows down algebraically (1 - p falls as 1/t): ends need long times."""

_FIRST_STEP, _GROWTH = 0.05, 1.05


@dataclass(frozen=True, slots=True)
class VoteChances:
    """Chances of the majority of K samples, each [...] in [0, 1]; they sum to 1."""

    right: Floats
    wrong: Floats
    tied: Floats
    """As many right as wrong, which only an even K can have: no vote."""


@dataclass(frozen=True, slots=True)
class Path:
    """A solution of the equation."""

    times: Floats
    """[T], from 0, in steps at learning rate 1."""
    shares: Floats
    """[T, N, ...] probabilities of the right answer."""

    @property
    def end(self) -> Floats:
        """[N, ...] at the last time."""
        return np.asarray(self.shares[-1])


def vote_chances(p: ArrayLike, completions: int) -> VoteChances:
    """How the majority of `completions` samples falls when each is right with probability p."""
    chances = _binomial(p, completions)
    lead = 2 * np.arange(completions + 1) - completions
    return VoteChances(*(chances[..., side].sum(-1) for side in (lead > 0, lead < 0, lead == 0)))


def vote_direction(p: ArrayLike, completions: int) -> Floats:
    """phi(p) in [-1, 1]: chance of a right vote minus chance of a wrong one."""
    chances = vote_chances(p, completions)
    return chances.right - chances.wrong


def expected_push(p: ArrayLike, completions: int) -> Floats:
    """g(p): what a vote of certain direction adds to its answer's logit, on average over n."""
    return np.asarray(_binomial(p, completions) @ _push(completions))


def learning_factor(p: ArrayLike, completions: int) -> Floats:
    """q(p) >= 0: how fast an agent follows a vote; zero at p = 0 and p = 1."""
    p = _shares(p)
    return 2 * p * (1 - p) * expected_push(p, completions)


def peer_drift(pupil: ArrayLike, grader: ArrayLike, completions: int) -> Floats:
    """dp/dt of a pupil that another agent's vote grades: q(pupil) * phi(grader)."""
    return learning_factor(pupil, completions) * vote_direction(grader, completions)


def own_drift(p: ArrayLike, completions: int) -> Floats:
    """dp/dt of an agent that its own vote on the same completions grades."""
    p = _shares(p)
    sign = np.sign(2 * np.arange(completions + 1) - completions)
    return 2 * p * (1 - p) * (_binomial(p, completions) @ (sign * _push(completions)))


def self_reward(start: ArrayLike, completions: int, *, duration: float = DURATION) -> Path:
    """Every agent graded by its own vote. start: [N, ...]."""
    return _integrate(start, lambda p: own_drift(p, completions), duration)


def ring(start: ArrayLike, completions: int, *, duration: float = DURATION) -> Path:
    """Agent n graded by agent n - 1, the first by the last; two label each other.

    start: [N, ...], N of 2 or more.
    """
    if np.ndim(start) == 0 or len(np.asarray(start)) < 2:
        raise RecipeError("a ring needs the probabilities of two agents or more, agents first")
    return _integrate(start, lambda p: peer_drift(p, np.roll(p, 1, axis=0), completions), duration)


def fixed_grader(
    start: ArrayLike, grader: ArrayLike, completions: int, *, duration: float = DURATION
) -> Path:
    """Pupils of a grader that does not learn itself. start and grader: [...] alike."""
    phi = vote_direction(grader, completions)
    return _integrate(start, lambda p: learning_factor(p, completions) * phi, duration)


def separatrix(p: ArrayLike) -> Floats:
    """The other agent's share on the line p_A + p_B = 1 that parts the basins of a pair."""
    return 1 - _shares(p)


def _integrate(start: ArrayLike, drift: Callable[[Floats], Floats], duration: float) -> Path:
    """Runge-Kutta of order 4 with growing steps: the flow slows down as it nears a corner."""
    p = _shares(start)
    times, paths = [0.0], [p]
    step = _FIRST_STEP
    while times[-1] < duration:
        step = min(step, duration - times[-1])
        k1 = drift(p)
        k2 = drift(_bounded(p + step / 2 * k1))
        k3 = drift(_bounded(p + step / 2 * k2))
        k4 = drift(_bounded(p + step * k3))
        p = _bounded(p + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
        times.append(times[-1] + step)
        paths.append(p)
        step = max(step, (_GROWTH - 1) * times[-1])
    return Path(np.array(times), np.stack(paths))


def _push(completions: int) -> Floats:
    """[K + 1] n (K - n) / (K^2 (s(n) + eps)); zero for a unanimous group, which is flat."""
    k = completions
    n = np.arange(k + 1)
    deviation = np.sqrt(n * (k - n) / (k * max(k - 1, 1)))
    return np.asarray(n * (k - n) / (k * k * (deviation + EPS)))


def _binomial(p: ArrayLike, completions: int) -> Floats:
    """[..., K + 1] chances of n right answers among K."""
    if not 1 <= completions <= MAX_COMPLETIONS:
        raise RecipeError(
            f"completions is {completions}; the theory takes 1 to {MAX_COMPLETIONS} of a prompt"
        )
    n = np.arange(completions + 1)
    ways = np.array([float(comb(completions, int(one))) for one in n])
    p = _shares(p)[..., None]
    return np.asarray(ways * p**n * (1 - p) ** (completions - n))


def _shares(p: ArrayLike) -> Floats:
    p = np.asarray(p, dtype=np.float64)
    if not (np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()):
        bad: Any = p[~((p >= 0) & (p <= 1))].flat[0]
        raise RecipeError(f"a probability of a right answer is {bad}; it lies between 0 and 1")
    return p


def _bounded(p: Floats) -> Floats:
    return np.clip(p, 0.0, 1.0)
