"""Accuracy of a policy on labelled prompts: greedy, avg@K, maj@K and pass@K.

All from one sampling pass of K completions and one greedy pass, by the rollout engine that
training uses; evaluation never touches the exchange. What was sampled is an `AnswerSheet` of
answer keys, which holds no label: grading it, and choosing a checkpoint by it without labels
(`corl.evaluation.selection`), are pure functions.

Shapes: P prompts, K completions per prompt (8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from corl.answers import Answer, majority
from corl.data.prompts import PromptRow
from corl.data.reading import read_completion, read_label
from corl.evaluation.completions import Asking, complete
from corl.evaluation.ensemble import ensemble_majority

if TYPE_CHECKING:
    from corl.policy import Policy

NUM_COMPLETIONS = 8

Key = str | None
"""A canonical answer's key; None where no answer was stated."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Shares of the problems, each in [0, 1]."""

    greedy: float
    """The most probable completion is right."""
    avg_at_8: float
    """Mean share of right completions of 8."""
    maj_at_8: float
    """The majority of 8 is right; a tie has no answer and is wrong."""
    pass_at_8: float
    """At least one of 8 is right."""

    def to_json(self) -> dict[str, float]:
        """Plain numbers by name."""
        return {name: round(value, 6) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class AnswerSheet:
    """What one policy answered; nothing here knows what is right."""

    greedy: list[Key]
    """[P]"""
    sampled: list[list[Key]]
    """[P][K]"""

    def rows(self, chosen: slice) -> AnswerSheet:
        """The sheet of some of the prompts."""
        return AnswerSheet(self.greedy[chosen], self.sampled[chosen])


def answer_sheet(
    policy: Policy, rows: Sequence[PromptRow], asking: Asking, *, seed: int = 0
) -> AnswerSheet:
    """Sample 8 completions and one greedy completion per row and read their answers.

    seed: of the sampling noise, which is the same for every policy measured. A row's draws depend
    on its place in `rows`, so the first n rows alone give the first n lines of the sheet.
    """

    def keys(completions: int, asked: Asking) -> list[list[Key]]:
        drawn = complete(policy, rows, asked, completions=completions, seed=seed)
        return [
            [
                _key(
                    read_completion(
                        one.text,
                        row,
                        truncated=one.truncated,
                        lenient=asked.lenient,
                        isolation=asked.isolation,
                    )
                )
                for one in group
            ]
            for row, group in zip(rows, drawn, strict=True)
        ]

    greedy = [key for (key,) in keys(1, replace(asking, temperature=0.0))]
    return AnswerSheet(greedy, keys(NUM_COMPLETIONS, asking))


def grade(sheet: AnswerSheet, true_keys: Sequence[Key]) -> Accuracy:
    """Hold a sheet against the labels, [P] keys; an unlabelled prompt counts as wrong."""
    hits = [
        [answer is not None and answer == key for answer in group]
        for group, key in zip(sheet.sampled, true_keys, strict=True)
    ]
    return Accuracy(
        greedy=fmean(
            answer is not None and answer == key
            for answer, key in zip(sheet.greedy, true_keys, strict=True)
        ),
        avg_at_8=fmean(fmean(group) for group in hits),
        maj_at_8=_majority_share(sheet.sampled, true_keys),
        pass_at_8=fmean(any(group) for group in hits),
    )


def measure_accuracy(
    policy: Policy,
    rows: Sequence[PromptRow],
    *,
    max_tokens: int,
    temperature: float = 1.0,
    seed: int = 0,
) -> Accuracy:
    """Sample an answer sheet for these rows and grade it by answer key."""
    asking = Asking(max_tokens=max_tokens, temperature=temperature)
    return grade(answer_sheet(policy, rows, asking, seed=seed), label_keys(rows))


def label_keys(rows: Sequence[PromptRow]) -> list[Key]:
    """[P] keys of the rows' labels; None where a row has none."""
    return [_key(read_label(row)) for row in rows]


def ensemble_maj_at_8(sheets: Sequence[AnswerSheet], true_keys: Sequence[Key]) -> float:
    """maj@8 of 8 completions pooled in equal parts from several agents (4 + 4 of two).

    Each agent gives other places of its sheet than the others, so no two pooled completions share
    a draw of noise. Where 8 does not divide, the first agents give one more.
    """
    won = [
        ensemble_majority([sheet.sampled[row] for sheet in sheets], votes=NUM_COMPLETIONS)
        for row in range(len(true_keys))
    ]
    return round(_hits(won, true_keys), 6)


def majority_key(group: Sequence[Key]) -> tuple[Key, float]:
    """The most common key of a group and the share of all completions behind it.

    (None, 0.0) on a tie, or where nothing was answered.
    """
    vote = majority([None if key is None else Answer(text=key, key=key) for key in group])
    return (None, 0.0) if vote is None else (vote.answer.key, vote.support)


def _majority_share(groups: Sequence[Sequence[Key]], true_keys: Sequence[Key]) -> float:
    return _hits([majority_key(group)[0] for group in groups], true_keys)


def _hits(votes: Sequence[Key], true_keys: Sequence[Key]) -> float:
    return fmean(
        vote is not None and vote == key for vote, key in zip(votes, true_keys, strict=True)
    )


def _key(answer: Answer | None) -> Key:
    return None if answer is None else answer.key
