"""Error overlap of two models on the same labelled problems: Cohen's kappa of right and wrong.

Right/wrong of two models is a 2x2 table of shares (both right, only a, only b, both wrong). With
accuracies p_a and p_b, agreement p_o and chance agreement p_e = p_a p_b + (1 - p_a)(1 - p_b),
kappa = (p_o - p_e) / (1 - p_e) (Cohen 1960). Unequal accuracies cap it: agreement is at most
1 - |p_a - p_b|, which gives kappa_max.

Shapes: P problems, S samples a problem, any number for either model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corl.diversity.intervals import Interval, around, posterior_interval, share_interval
from corl.errors import PromptError

Floats = NDArray[np.float64]
Key = str | None
"""What equal answers share; None where no answer was stated."""

_PURE_TABLES = np.eye(4)


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """How two models err on the same problems. Shares are of all problems, each in [0, 1].

    An interval is the 95 % one, None where its figure is, and for a single problem.
    """

    n: int
    """Problems."""
    kappa: float | None
    """-1 to 1; 0 is what two independent models of these accuracies have."""
    kappa_reason: str | None
    """Why kappa is undefined, where it is."""
    kappa_max: float | None
    """The largest kappa that two models of these accuracies can have."""
    exactly_one_right: float
    same_wrong_answer: float | None
    """Both wrong with one answer; None where no answers were given."""
    at_least_one_right: float
    accuracy_a: float
    accuracy_b: float
    kappa_interval: Interval | None
    exactly_one_right_interval: Interval | None
    same_wrong_answer_interval: Interval | None
    at_least_one_right_interval: Interval | None
    accuracy_a_interval: Interval | None
    accuracy_b_interval: Interval | None


def error_overlap(
    right_a: Sequence[Any],
    right_b: Sequence[Any],
    *,
    answers_a: Sequence[Any] | None = None,
    answers_b: Sequence[Any] | None = None,
) -> Overlap:
    """Compare right and wrong of two models.

    right_a, right_b: [P] bools (or 0 and 1), or [P][S] with several samples a problem. Every sample
    of one model then meets every sample of the other on that problem, for their numbers mean
    nothing; problems stay the units of all intervals.
    answers_a, answers_b: answer keys in the shape of `right`, None where none was stated. Two
    samples without an answer are not the same answer.
    Raises PromptError (a ValueError) where shapes differ, a value is neither 0 nor 1, or there is
    no problem.
    """
    a, b = _samples(right_a, "right_a"), _samples(right_b, "right_b")
    if len(a) != len(b):
        raise PromptError(
            f"right_a has {len(a)} problems and right_b {len(b)}; both need the same, in one order"
        )
    if (answers_a is None) != (answers_b is None):
        raise PromptError("answers of one model only; give answers_a and answers_b, or neither")
    share_a, share_b = a.mean(axis=1), b.mean(axis=1)
    tables = np.stack(
        [
            share_a * share_b,
            share_a * (1 - share_b),
            (1 - share_a) * share_b,
            (1 - share_a) * (1 - share_b),
        ],
        axis=1,
    )
    one_right = tables[:, 1] + tables[:, 2]
    any_right = 1 - tables[:, 3]
    same_wrong = None
    if answers_a is not None and answers_b is not None:
        same_wrong = _same_wrong(
            _wrong(a, answers_a, "answers_a"), _wrong(b, answers_b, "answers_b"), a, b
        )
    kappa, kappa_max = (_known(figure) for figure in _kappa_and_max(tables))
    return Overlap(
        n=len(a),
        kappa=kappa,
        kappa_reason=None if kappa is not None else _reason(a),
        kappa_max=kappa_max,
        exactly_one_right=float(one_right.mean()),
        same_wrong_answer=None if same_wrong is None else float(same_wrong.mean()),
        at_least_one_right=float(any_right.mean()),
        accuracy_a=float(share_a.mean()),
        accuracy_b=float(share_b.mean()),
        kappa_interval=None if kappa is None else kappa_interval(tables, kappa),
        exactly_one_right_interval=_share(one_right),
        same_wrong_answer_interval=None if same_wrong is None else _share(same_wrong),
        at_least_one_right_interval=_share(any_right),
        accuracy_a_interval=_share(share_a),
        accuracy_b_interval=_share(share_b),
    )


def kappa_of(tables: Floats) -> Floats:
    """Kappa of [..., 4] summed tables of any scale; NaN where it is undefined."""
    both, only_a, only_b, neither = np.moveaxis(tables / tables.sum(-1, keepdims=True), -1, 0)
    p_a, p_b = both + only_a, both + only_b
    # 1 - p_e, written so that it is exactly 0 where both are always right or always wrong.
    room = p_a * (only_a + neither) + p_b * (only_b + neither)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(room > 0, 1 - (only_a + only_b) / room, np.nan))


def kappa_interval(tables: Floats, kappa: float) -> Interval | None:
    """The 95 % interval of kappa over [P, 4] tables; None for a single problem."""
    if len(tables) < 2:
        return None
    return around(posterior_interval(tables, _PURE_TABLES, kappa_of), kappa)


def _kappa_and_max(tables: Floats) -> tuple[Floats, Floats]:
    total = tables.sum(axis=0)
    _, only_a, only_b, _ = total
    # The same accuracies with as little disagreement as they allow.
    moved = min(only_a, only_b)
    closest = total + moved * np.array([1.0, -1.0, -1.0, 1.0])
    return kappa_of(total), kappa_of(closest)


def _samples(right: Sequence[Any], name: str) -> Floats:
    """[P, S] zeros and ones."""
    try:
        values = np.asarray(right)
    except ValueError:
        raise PromptError(f"{name}: every problem needs the same number of samples") from None
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.size == 0:
        raise PromptError(
            f"{name} has shape {values.shape}; it takes one value a problem, or one list of "
            "samples a problem, and at least one of each"
        )
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise PromptError(f"{name} holds values that are neither right (1) nor wrong (0)")
    return values.astype(np.float64)


def _wrong(right: Floats, answers: Sequence[Any], name: str) -> list[Counter[str]]:
    """[P] counts of the answers of wrong samples."""
    groups: list[Sequence[Key]] = [
        [one] if one is None or isinstance(one, str) else one for one in answers
    ]
    if [len(group) for group in groups] != [right.shape[1]] * len(right):
        raise PromptError(f"{name} does not have the shape of its right/wrong: {right.shape}")
    return [
        Counter(
            key
            for key, is_right in zip(group, row, strict=True)
            if key is not None and not is_right
        )
        for group, row in zip(groups, right, strict=True)
    ]


def _same_wrong(
    wrong_a: list[Counter[str]], wrong_b: list[Counter[str]], a: Floats, b: Floats
) -> Floats:
    """[P] share of sample pairs that are wrong with one answer."""
    pairs = a.shape[1] * b.shape[1]
    return np.array(
        [
            sum(count * theirs[key] for key, count in ours.items()) / pairs
            for ours, theirs in zip(wrong_a, wrong_b, strict=True)
        ]
    )


def _reason(right_a: Floats) -> str:
    said = "right" if right_a.any() else "wrong"
    return f"both models are {said} on every problem, so there is no chance agreement to exceed"


def _known(figure: Floats) -> float | None:
    return None if np.isnan(figure) else float(figure)


def _share(values: Floats) -> Interval | None:
    return share_interval(np.clip(values, 0.0, 1.0).tolist())
