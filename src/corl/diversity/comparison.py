"""All pairs of a probe: which answers are held against which, with labels and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from corl.data.prompts import PromptRow
from corl.data.reading import read_label
from corl.diversity.answer_table import Answers, Key, together
from corl.diversity.label_free import LabelFree, label_free_overlap, pool_of
from corl.diversity.overlap import Overlap, error_overlap


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models on the same problems, or one model with two seeds."""

    a: Answers
    b: Answers
    seeds: tuple[int, int]
    """Passes of a and b that are compared; (0, 0) for two models."""
    overlap: Overlap | None
    """Over the labelled problems; None where there are none."""
    label_free: LabelFree
    """Over all problems."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What all models answered, and how each pair's errors overlap."""

    ids: tuple[str, ...]
    """[P]"""
    labels: tuple[Key, ...]
    """[P] keys of the labels; None where a problem has none."""
    models: tuple[Answers, ...]
    """The first pass of each."""
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]


def compare(takes: Sequence[Sequence[Answers]], rows: Sequence[PromptRow]) -> Probe:
    """Compare models: [N] models, each with one table a pass.

    Two models meet in their first passes, the passes of one model in each other.
    """
    labels = [None if label is None else label.key for label in map(read_label, rows)]
    pool = pool_of([together(passes).tallies() for passes in takes])

    def pair(a: Answers, b: Answers, seeds: tuple[int, int]) -> Pair:
        free = label_free_overlap(a.tallies(), b.tallies(), pool)
        return Pair(a, b, seeds, _overlap(a, b, labels), free)

    pairs = [pair(a[0], b[0], (0, 0)) for a, b in combinations(takes, 2)]
    pairs += [
        pair(passes[first], passes[second], (first, second))
        for passes in takes
        for first, second in combinations(range(len(passes)), 2)
    ]
    return Probe(
        tuple(row.id for row in rows),
        tuple(labels),
        tuple(passes[0] for passes in takes),
        tuple(pairs),
        tuple(_notes(rows, labels)),
    )


def _overlap(a: Answers, b: Answers, labels: Sequence[Key]) -> Overlap | None:
    """Over the labelled problems; None where there are none."""
    known = [index for index, label in enumerate(labels) if label is not None]
    if not known:
        return None
    right_a, right_b = a.right(labels), b.right(labels)
    return error_overlap(
        [right_a[index] for index in known],
        [right_b[index] for index in known],
        answers_a=[a.keys[index] for index in known],
        answers_b=[b.keys[index] for index in known],
    )


def _notes(rows: Sequence[PromptRow], labels: Sequence[Key]) -> list[str]:
    unread = [row for row, key in zip(rows, labels, strict=True) if row.label and key is None]
    without = [row for row in rows if not row.label]
    notes = []
    if len(without) == len(rows):
        notes.append(
            "no problem has a label: kappa is estimated from agreement alone (--answer-field names "
            "the label's field)"
        )
    elif without:
        notes.append(
            f"{len(without)} of {len(rows)} problems have no label, the first is "
            f"{without[0].id!r}; figures with labels leave them out"
        )
    if unread:
        notes.append(
            f"{len(unread)} labels are no answer of their kind, the first is "
            f"{unread[0].label!r} of {unread[0].id!r}: figures with labels leave them out. Does "
            "--answer-marker fit?"
        )
    return notes
