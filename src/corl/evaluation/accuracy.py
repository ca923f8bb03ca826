"""Accuracy of a policy on labelled prompts: greedy, avg@K, maj@K and pass@K.

All from one sampling pass of K completions and one greedy pass, by the rollout
engine that training uses. Evaluation never touches the exchange.

Shapes: P prompts, K completions per prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from corl.answers import Answer, majority
from corl.data.prompts import PromptRow
from corl.data.reading import read_completion, read_label
from corl.data.template import render
from corl.policy import Policy
from corl.rollout.noise import Noise
from corl.rollout.sampling import SamplingParameters
from corl.rollout.transformers_engine import TransformersEngine

_GREEDY_STEP, _SAMPLED_STEP = 0, 1


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


def measure_accuracy(
    policy: Policy,
    rows: Sequence[PromptRow],
    *,
    max_tokens: int,
    temperature: float = 1.0,
    seed: int = 0,
) -> Accuracy:
    """Sample 8 completions and one greedy completion per row and grade them by answer key.

    seed: of the sampling noise, which is the same for every policy measured.
    """
    engine = TransformersEngine(policy, max_rows=1024)
    engine.sync()
    noise = Noise(seed, "evaluation")
    prompts = [render(policy.tokenizer, row.text) for row in rows]
    true_keys = [_key(read_label(row)) for row in rows]

    def right(completions: int, temperature: float, step: int) -> list[list[Answer | None]]:
        rollout = engine.sample(
            prompts,
            completions=completions,
            sampling=SamplingParameters(temperature=temperature, max_tokens=max_tokens),
            noise=noise,
            step=step,
        )
        return [
            [
                read_completion(text, row, truncated=cut)
                for text, cut in zip(texts, cuts, strict=True)
            ]
            for row, texts, cuts in zip(rows, rollout.texts, rollout.truncated, strict=True)
        ]

    greedy = right(1, 0.0, _GREEDY_STEP)
    sampled = right(8, temperature, _SAMPLED_STEP)
    hits = [
        [_key(answer) == key for answer in group]
        for group, key in zip(sampled, true_keys, strict=True)
    ]
    votes = [majority(group) for group in sampled]
    return Accuracy(
        greedy=fmean(_key(a) == key for (a,), key in zip(greedy, true_keys, strict=True)),
        avg_at_8=fmean(fmean(group) for group in hits),
        maj_at_8=fmean(
            vote is not None and vote.answer.key == key
            for vote, key in zip(votes, true_keys, strict=True)
        ),
        pass_at_8=fmean(any(group) for group in hits),
    )


def _key(answer: Answer | None) -> str | None:
    return None if answer is None else answer.key
