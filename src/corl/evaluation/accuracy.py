"""Accuracy of a policy on labelled prompts: greedy, avg@K, maj@K and pass@K.

All from one sampling pass of K completions and one greedy pass, by the rollout engine that
training uses; evaluation never touches the exchange. What was sampled is an `AnswerSheet` of
answer keys, which holds no label: grading it, and choosing a checkpoint by it without labels
(`corl.evaluation.selection`), are pure functions.

Shapes: P prompts, K completions per prompt (8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from corl.answers import Answer, majority
from corl.config import AgentConfig, Recipe
from corl.data.prompts import PromptRow
from corl.data.reading import read_completion, read_label
from corl.data.template import render

if TYPE_CHECKING:
    from corl.policy import Policy

NUM_COMPLETIONS = 8
_GREEDY_STEP, _SAMPLED_STEP = 0, 1

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """How a model is asked and read, which is how it was trained."""

    max_tokens: int
    temperature: float = 1.0
    stop: tuple[str, ...] = ()
    system_prompt: str | None = None
    chat: Literal["auto", "always", "never"] = "auto"
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    lenient: bool = False
    max_rows: int = 1024
    """Completions decoded at once."""

    @classmethod
    def of(cls, recipe: Recipe, agent: AgentConfig) -> Asking:
        """The recipe's way to ask that agent."""
        sampling = recipe.sampling_of(agent)
        return cls(
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            stop=sampling.stop,
            system_prompt=agent.system_prompt,
            chat=agent.chat,
            chat_template_kwargs=agent.chat_template_kwargs,
            lenient=recipe.votes.lenient,
            max_rows=recipe.rollout.max_rows,
        )


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
    from corl.rollout.noise import Noise
    from corl.rollout.sampling import SamplingParameters
    from corl.rollout.transformers_engine import TransformersEngine

    engine = TransformersEngine(policy, max_rows=asking.max_rows)
    engine.sync()
    noise = Noise(seed, "evaluation")
    prompts = [
        render(
            policy.tokenizer,
            row.text,
            system_prompt=asking.system_prompt,
            chat=asking.chat,
            chat_template_kwargs=asking.chat_template_kwargs,
        )
        for row in rows
    ]

    def keys(completions: int, temperature: float, step: int) -> list[list[Key]]:
        rollout = engine.sample(
            prompts,
            completions=completions,
            sampling=SamplingParameters(
                temperature=temperature, max_tokens=asking.max_tokens, stop=asking.stop
            ),
            noise=noise,
            step=step,
        )
        return [
            [
                _key(read_completion(text, row, truncated=cut, lenient=asking.lenient))
                for text, cut in zip(texts, cuts, strict=True)
            ]
            for row, texts, cuts in zip(rows, rollout.texts, rollout.truncated, strict=True)
        ]

    greedy = [key for (key,) in keys(1, 0.0, _GREEDY_STEP)]
    return AnswerSheet(greedy, keys(NUM_COMPLETIONS, asking.temperature, _SAMPLED_STEP))


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
    share, more = divmod(NUM_COMPLETIONS, len(sheets))
    ends = [0]
    for index in range(len(sheets)):
        ends.append(ends[-1] + share + (index < more))
    pooled = [
        [
            key
            for sheet, start, end in zip(sheets, ends, ends[1:], strict=False)
            for key in sheet.sampled[row][start:end]
        ]
        for row in range(len(true_keys))
    ]
    return round(_majority_share(pooled, true_keys), 6)


def majority_key(group: Sequence[Key]) -> tuple[Key, float]:
    """The most common key of a group and the share of all completions behind it.

    (None, 0.0) on a tie, or where nothing was answered.
    """
    vote = majority([None if key is None else Answer(text=key, key=key) for key in group])
    return (None, 0.0) if vote is None else (vote.answer.key, vote.support)


def _majority_share(groups: Sequence[Sequence[Key]], true_keys: Sequence[Key]) -> float:
    won = [majority_key(group)[0] for group in groups]
    return fmean(vote is not None and vote == key for vote, key in zip(won, true_keys, strict=True))


def _key(answer: Answer | None) -> Key:
    return None if answer is None else answer.key
