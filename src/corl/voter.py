"""A policy that answers prompts and votes on them: render, sample, read, count.

An agent has one for its policy, and one for its teacher where its method has a
teacher. Each draws from a noise stream of its own name.

Shapes: P prompts, K completions per prompt.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from corl.answers import Answer, Vote, majority
from corl.config import AgentConfig, Recipe
from corl.data.prompts import PromptRow
from corl.data.reading import read_completion
from corl.errors import NonFiniteLossError
from corl.policy import Policy
from corl.policy.vision.encode import EncodedPrompt, encode_for
from corl.rollout.noise import Noise
from corl.rollout.rollout import Rollout
from corl.rollout.transformers_engine import TransformersEngine


@dataclass(frozen=True, slots=True)
class Poll:
    """What a policy answered in one step, and what it voted for."""

    rollout: Rollout
    answers: list[list[Answer | None]]
    """[P][K]"""
    votes: list[Vote | None]
    """[P], each over all K answers."""
    sample_s: float
    read_s: float


class Voter:
    """Polls one policy."""

    def __init__(
        self,
        policy: Policy,
        config: AgentConfig,
        recipe: Recipe,
        *,
        stream: str,
        completions: int,
    ) -> None:
        """stream: names the sampling noise; completions: those of one prompt (K)."""
        self._policy = policy
        self._config = config
        self._rules = recipe.votes
        self._sampling = recipe.sampling_of(config)
        self._stream = stream
        self._noise = Noise(recipe.seed, stream)
        self._completions = completions
        self._engine = TransformersEngine(policy, max_rows=recipe.rollout.max_rows)

    def poll(self, rows: Sequence[PromptRow], step: int) -> Poll:
        """Sample K completions per row with the policy's current weights, read them and vote.

        Raises NonFiniteLossError where not one token has a finite log-probability.
        """
        started = time.perf_counter()
        self._engine.sync()
        prompts = [self._read(row) for row in rows]
        rollout = self._engine.sample(
            [prompt.ids for prompt in prompts],
            vision=[prompt.vision for prompt in prompts],
            completions=self._completions,
            sampling=self._sampling,
            noise=self._noise,
            step=step,
        )
        self._require_finite(rollout, step)
        sampled = time.perf_counter()
        answers = [
            [
                read_completion(
                    text,
                    row,
                    truncated=cut_off,
                    lenient=self._rules.lenient,
                    isolation=self._rules.isolation,
                )
                for text, cut_off in zip(texts, truncated, strict=True)
            ]
            for row, texts, truncated in zip(rows, rollout.texts, rollout.truncated, strict=True)
        ]
        votes = [
            majority(group, ties=self._rules.ties, min_support=self._rules.min_support)
            for group in answers
        ]
        read_s = time.perf_counter() - sampled
        return Poll(rollout, answers, votes, sample_s=sampled - started, read_s=read_s)

    def _read(self, row: PromptRow) -> EncodedPrompt:
        return encode_for(
            self._policy,
            row,
            system_prompt=self._config.system_prompt,
            chat=self._config.chat,
            chat_template_kwargs=self._config.chat_template_kwargs,
        )

    def _require_finite(self, rollout: Rollout, step: int) -> None:
        if 0 < rollout.num_tokens == rollout.num_nonfinite:
            raise NonFiniteLossError(
                f"agent {self._stream!r}, step {step}: no sampled token has a finite "
                "log-probability, so its weights hold NaN or infinity; lower its learning rate and "
                "resume from an earlier checkpoint"
            )


def vote_keys(votes: Sequence[Vote | None]) -> list[str | None]:
    """[P] keys of the votes, None where there is none."""
    return [None if vote is None else vote.answer.key for vote in votes]
