"""Many answers, one prompt: what GRPO on votes does to a whole distribution over answers.

The two-answer theory of `corl.diversity.dynamics` says nothing about a model whose right answer is
at 40 % and beats three wrong ones at 20 %. Here an agent is a softmax over M answers and one more
outcome, *rest*: no answer, or one too rare to be followed. Rest never wins a vote.

A grader's vote falls on answer v with chance w_v, exact for K samples with ties abstaining. As in
the two-answer theory, a vote for v moves the pupil's logits by g(x_v) on v, and by
-g(x_v) x_a / (1 - x_v) on every other outcome a, for the K - n misses are spread as the pupil's own
shares. So

    dz_a/dt = sum_v w_v g(x_v) * (1 if a = v else -x_a / (1 - x_v)),    dx_a = x_a (dz_a - x . dz)

With two answers and no rest this is `dynamics.peer_drift`. An agent that grades itself is taken to
vote with a second, independent group of completions, which changes its speed, not where it ends.

Shapes: N agents, P problems, M answers; outcomes are M + 1, rest last.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np
from numpy.typing import NDArray

from corl.diversity.dynamics import expected_push

Floats = NDArray[np.float64]

DURATION = 3e3
_FIRST_STEP, _GROWTH, _LARGEST_MOVE = 0.5, 1.12, 1.0
_SETTLED = 1e-3
_BLOCK = 256


def plurality_chances(shares: Floats, completions: int) -> Floats:
    """[P, M] chance that each answer alone is the most frequent of K samples.

    shares: [P, M + 1], rows sum to 1, rest last. The rows of the result sum to at most 1; what
    is missing are ties and groups without an answer. Exact: the multinomial as a product of
    truncated exponential series, answer v at count c and all others below c.
    """
    k = completions
    answers, rest = shares[:, :-1], shares[:, -1]
    inverse = np.array([1 / factorial(j) for j in range(k + 1)])
    powers = answers[..., None] ** np.arange(k + 1) * inverse  # [P, M, K + 1]
    counts = np.arange(1, k + 1)
    below = np.arange(k + 1)[None, :] < counts[:, None]  # [C, K + 1]
    series = np.moveaxis(powers, 1, 0)[:, None] * below[:, None]  # [M, C, P, K + 1]
    of_rest = rest[:, None] ** np.arange(k + 1) * inverse
    before = [np.broadcast_to(of_rest, series.shape[1:])]
    for one in series[:-1]:
        before.append(_product(before[-1], one))
    behind = [np.zeros_like(before[0])]
    behind[0][..., 0] = 1
    for one in series[:0:-1]:
        behind.append(_product(behind[-1], one))
    behind.reverse()
    chances = np.empty_like(answers)
    for v in range(answers.shape[1]):
        others = np.stack(
            [
                np.einsum("pj,pj->p", before[v][c - 1, :, : k - c + 1],
                          behind[v][c - 1, :, k - c :: -1])
                for c in counts
            ],
            axis=1,
        )  # fmt: skip
        chances[:, v] = factorial(k) * (powers[:, v, 1:] * others).sum(1)
    return chances


def logit_drift(shares: Floats, votes: Floats, completions: int) -> Floats:
    """dz/dt [P, M + 1] of pupils with these shares under graders' vote chances, [P, M]."""
    answers = shares[:, :-1]
    pull = votes * expected_push(answers, completions)
    scattered = pull / np.maximum(1 - answers, 1e-12)
    # Every vote but the one for itself pushes an outcome down.
    down = scattered.sum(1, keepdims=True) - np.pad(scattered, ((0, 0), (0, 1)))
    return np.asarray(np.pad(pull, ((0, 0), (0, 1))) - shares * down)


def follow(
    start: Floats, graders: Sequence[int], completions: int, *, duration: float = DURATION
) -> Floats:
    """Where distributions end, [N, P, M + 1].

    start: [N, P, M + 1]. graders: [N], whose vote grades each agent; an agent's own index is
    self-reward. A step moves no logit by more than one; a problem that has settled is left alone.
    """
    ends = start.copy()
    for first in range(0, start.shape[1], _BLOCK):
        block = slice(first, first + _BLOCK)
        ends[:, block] = _follow(start[:, block], graders, completions, duration)
    return ends


def _follow(start: Floats, graders: Sequence[int], completions: int, duration: float) -> Floats:
    """`follow` for few enough problems to stay in a processor's cache; each has its own steps."""
    ends = start.copy()
    is_open = np.arange(start.shape[1])
    time_p, step_p = np.zeros(len(is_open)), np.full(len(is_open), _FIRST_STEP)
    while is_open.size:
        shares = ends[:, is_open]
        drifts = drift_of(shares, graders, completions)
        largest_p = np.maximum(np.abs(drifts).max((0, 2)), 1e-12)
        taken_p = np.minimum(step_p, np.minimum(_LARGEST_MOVE / largest_p, duration - time_p))
        moved = shares * np.exp(taken_p[:, None] * drifts)
        moved /= moved.sum(-1, keepdims=True)
        ends[:, is_open] = moved
        time_p = time_p + taken_p
        step_p = np.maximum(step_p, (_GROWTH - 1) * time_p)
        goes_on = ~_settled(moved, graders) & (time_p < duration)
        is_open, time_p, step_p = is_open[goes_on], time_p[goes_on], step_p[goes_on]
    return ends


def drift_of(shares: Floats, graders: Sequence[int], completions: int) -> Floats:
    """dz/dt [N, P, M + 1] of agents under their graders; `shares` and `graders` as in `follow`."""
    agents, problems, outcomes = shares.shape
    flat = shares.reshape(-1, outcomes)
    votes = plurality_chances(flat, completions).reshape(agents, problems, -1)
    graded = votes[list(graders)].reshape(-1, outcomes - 1)
    return logit_drift(flat, graded, completions).reshape(shares.shape)


def _settled(shares: Floats, graders: Sequence[int]) -> NDArray[np.bool_]:
    """[P] problems on which every agent has all but one answer behind it, the same as its grader.

    Such a problem is past every separatrix, and only creeps on.
    """
    best = shares[..., :-1].argmax(-1)
    is_sure = shares[..., :-1].max(-1) > 1 - _SETTLED
    return np.asarray((is_sure & (best == best[list(graders)])).all(0))


def _product(left: Floats, right: Floats) -> Floats:
    """The product of two power series [..., K + 1], cut at degree K."""
    product = np.zeros(np.broadcast_shapes(left.shape, right.shape))
    degree = left.shape[-1]
    for j in range(degree):
        product[..., j:] += left[..., : degree - j] * right[..., j : j + 1]
    return product
