"""Who should teach whom: the directed ring that a probe favours.

An edge teacher -> pupil is worth its `signal`: of all pushes that the teacher's votes give the
pupil's answers, the share on right ones (`corl.diversity.basins.signal_share`). A ring is worth the
mean over its edges. On the quickstart's study this figure ranked trained gains better than kappa
and as well as predicted ceilings did, and it alone saw that a weak teacher ruins its pupil
(docs/basins.md). Ceilings are shown beside it; they do not choose.

Shapes: N models; worth[n, m] is pupil n under teacher m.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from corl.diversity.basins import COMPLETIONS, answer_shares, signal_share
from corl.diversity.counts import Probed
from corl.errors import RecipeError

Floats = NDArray[np.float64]

EXHAUSTIVE_UP_TO = 8
"""Models up to which every one of the (N - 1)! rings is looked at."""
MAX_MODELS = 64
WEAK_SHARE = 0.5
"""A teacher with less than this share of its pupil's accuracy is named as weak."""
DRAGS_BELOW = 0.5
"""Signal below which more of the first push goes to wrong answers than to right ones."""

_STARTS = 64
_SEED = 0


@dataclass(frozen=True, slots=True)
class Ring:
    """A directed ring: each is graded by the one before it, the first by the last."""

    order: tuple[int, ...]
    """Indices of models; starts at 0."""
    worth: float
    """Mean worth of its edges."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One teacher and its pupil."""

    teacher: str
    pupil: str
    signal: float
    teacher_accuracy: float
    pupil_accuracy: float

    @property
    def warning(self) -> str | None:
        """What is to be feared of this teacher, or None."""
        if self.teacher_accuracy < WEAK_SHARE * self.pupil_accuracy:
            return (
                f"{self.teacher} is a weak teacher: right in {100 * self.teacher_accuracy:.0f} % "
                f"of its samples, and its pupil {self.pupil} in {100 * self.pupil_accuracy:.0f} %. "
                "Such a teacher drags its pupil down; leave it out, or train it first"
            )
        if self.pupil_accuracy == self.teacher_accuracy == 0:
            return (
                f"{self.teacher} and {self.pupil} were right in no sample of this probe, so "
                "nothing can be said of them; probe easier problems, or more of them"
            )
        if self.signal < DRAGS_BELOW:
            return (
                f"{self.teacher} teaches {self.pupil} more wrong than right: "
                f"{100 * self.signal:.0f} % of the signal points to right answers; "
                "they share their mistakes"
            )
        return None


@dataclass(frozen=True, slots=True)
class Pairing:
    """The ring that a probe favours, and the ones it was held against."""

    names: tuple[str, ...]
    """In ring order."""
    worth: float
    """Mean signal of its edges, 0 to 1."""
    edges: tuple[Edge, ...]
    """[N], of each agent in ring order with its grader."""
    others: tuple[tuple[tuple[str, ...], float], ...]
    """The next best rings and their worth; empty where not all were looked at."""
    is_exhaustive: bool

    @property
    def warnings(self) -> list[str]:
        """Teachers to beware of."""
        return [edge.warning for edge in self.edges if edge.warning]


def edge_worth(probed: Probed, *, completions: int = COMPLETIONS) -> Floats:
    """[N, N] signal of pupil (row) under teacher (column); the diagonal is self-reward."""
    names = [model.name for model in probed.models]
    worth = np.empty((len(names), len(names)))
    for n, pupil in enumerate(names):
        for m, teacher in enumerate(names):
            shares = answer_shares(probed, [pupil, teacher] if n != m else [pupil])
            worth[n, m] = signal_share(shares[0], shares[-1], completions)
    return np.nan_to_num(worth, nan=0.0)


def pair(probed: Probed, *, completions: int = COMPLETIONS, shown: int = 5) -> Pairing:
    """The best ring of all probed models. Raises RecipeError for fewer than two or too many."""
    worth = edge_worth(probed, completions=completions)
    is_exhaustive = len(worth) <= EXHAUSTIVE_UP_TO
    ranked = all_rings(worth) if is_exhaustive else [search(worth)]
    names = [model.name for model in probed.models]
    best, *others = ranked[: shown + 1]
    order = best.order
    edges = tuple(
        Edge(
            teacher=names[order[place - 1]],
            pupil=names[n],
            signal=float(worth[n, order[place - 1]]),
            teacher_accuracy=probed.accuracy(names[order[place - 1]]),
            pupil_accuracy=probed.accuracy(names[n]),
        )
        for place, n in enumerate(order)
    )
    return Pairing(
        names=tuple(names[n] for n in order),
        worth=best.worth,
        edges=edges,
        others=tuple((tuple(names[n] for n in ring.order), ring.worth) for ring in others),
        is_exhaustive=is_exhaustive,
    )


def all_rings(worth: Floats) -> list[Ring]:
    """Every ring, best first; equal ones in lexical order. worth: [N, N], N up to 8."""
    _check(worth, EXHAUSTIVE_UP_TO)
    orders = np.array([(0, *rest) for rest in permutations(range(1, len(worth)))])
    means = worth[orders, np.roll(orders, 1, axis=1)].mean(axis=1)
    # Sums of the same edges in another order differ in the last bits.
    ranked = np.argsort(-np.round(means, 12), kind="stable")
    return [Ring(tuple(map(int, orders[r])), float(means[r])) for r in ranked]


def search(worth: Floats) -> Ring:
    """A ring that no exchange of two models and no move of a segment betters.

    The best of 64 local searches from random rings of a fixed seed. worth: [N, N].
    """
    _check(worth, MAX_MODELS)
    rng = np.random.default_rng(_SEED)
    found = [_climb(worth, rng.permutation(len(worth))) for _ in range(_STARTS)]
    best = max(found, key=lambda order: round(_mean(worth, order), 12))
    start = int(np.flatnonzero(best == 0)[0])
    order = np.roll(best, -start)
    return Ring(tuple(map(int, order)), _mean(worth, order))


def recipe_text(
    probed: Probed, names: Sequence[str], *, prompts: str, completions: int = COMPLETIONS
) -> str:
    """A recipe of this ring as YAML that `load_recipe` takes.

    names: in ring order. prompts: the file of unlabelled training prompts. Names that a recipe does
    not take, such as a path's, are cut down to one that it does.
    """
    called = _agent_names([probed.model(name).name for name in names])
    tree = {
        "name": "ring",
        "agents": [
            {"name": agent, "model": probed.model(name).model}
            for agent, name in zip(called, names, strict=True)
        ],
        "prompts": {"file": prompts},
        "supervision": {"method": "peer", "ring": called},
        "batch": {"completions": completions},
    }
    head = "# Each agent is graded by the vote of the one before it in `ring`; docs/recipes.md.\n"
    return head + yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)


def write_recipe(
    probed: Probed,
    found: Pairing,
    path: Path,
    *,
    prompts: str,
    completions: int = COMPLETIONS,
) -> None:
    """Write `recipe_text` of a pairing. Raises RecipeError where the path is no place for it."""
    text = recipe_text(probed, found.names, prompts=prompts, completions=completions)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RecipeError(f"{path} cannot be written: {error.strerror}") from None


def _agent_names(names: Sequence[str]) -> list[str]:
    called: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name.rstrip("/").split("/")[-1]).strip("._-")[:56]
        plain = plain or "agent"
        number = 2
        while (unique := plain if number == 2 and plain not in called else f"{plain}-{number}") in (
            called
        ):
            number += 1
        called.append(unique)
    return called


def _check(worth: Floats, most: int) -> None:
    if worth.ndim != 2 or worth.shape[0] != worth.shape[1] or not np.isfinite(worth).all():
        raise RecipeError(f"the worth of edges is no square table of numbers: {worth.shape}")
    if not 2 <= len(worth) <= most:
        raise RecipeError(f"a ring needs 2 to {most} models here, and the probe has {len(worth)}")


def _mean(worth: Floats, order: NDArray[np.int64]) -> float:
    return float(worth[order, np.roll(order, 1)].mean())


def _climb(worth: Floats, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Take the best of all neighbours until none is better."""
    value = _mean(worth, order)
    while True:
        neighbours = _neighbours(order)
        means = worth[neighbours, np.roll(neighbours, 1, axis=1)].mean(axis=1)
        best = int(means.argmax())
        if means[best] <= value + 1e-12:
            return order
        order, value = neighbours[best], float(means[best])


def _neighbours(order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rings with two models exchanged, or up to three in a row moved elsewhere."""
    size, found = len(order), []
    for i in range(size):
        for j in range(i + 1, size):
            swapped = order.copy()
            swapped[[i, j]] = swapped[[j, i]]
            found.append(swapped)
    for length in range(1, min(3, size - 2) + 1):
        for i in range(size):
            turned = np.roll(order, -i)
            segment, rest = turned[:length], turned[length:]
            found += [np.concatenate([rest[:j], segment, rest[j:]]) for j in range(1, len(rest))]
    return np.stack(found) if found else order[None]
