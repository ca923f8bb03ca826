"""Ask a policy: completions of prompt rows by the rollout engine that training uses.

Shapes: P prompts, K completions per prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from corl.config import AgentConfig, Recipe
from corl.data.prompts import PromptRow

if TYPE_CHECKING:
    from corl.evaluation.sandbox import Level
    from corl.policy import Policy

_GREEDY_STEP, _SAMPLED_STEP = 0, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """How a model is asked and read, which is how it was trained."""

    max_tokens: int
    temperature: float = 1.0
    """0 takes the most probable token."""
    top_p: float = 1.0
    top_k: int = 0
    """Most likely tokens kept, 0 for all."""
    stop: tuple[str, ...] = ()
    system_prompt: str | None = None
    chat: Literal["auto", "always", "never"] = "auto"
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    lenient: bool = False
    isolation: Level = "landlock"
    """The weakest sandbox for generated programs."""
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
            isolation=recipe.votes.isolation,
            max_rows=recipe.rollout.max_rows,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled text."""

    text: str
    truncated: bool
    """A length limit cut it before it ended by itself."""


def complete(
    policy: Policy,
    rows: Sequence[PromptRow],
    asking: Asking,
    *,
    completions: int,
    seed: int = 0,
    places: Sequence[int] | None = None,
) -> list[list[Completion]]:
    """Sample [P][K] completions.

    seed: of the sampling noise, which is the same for every policy asked. places: [P] indices of
    the rows in their data set, on which their draws depend: a data set asked in parts, or from its
    middle, gets the same completions. Left out: the rows are the data set's first.
    Raises PromptError for a prompt that is empty or leaves no room in the context.
    """
    from corl.policy.vision.encode import encode_for
    from corl.rollout.noise import Noise
    from corl.rollout.sampling import SamplingParameters
    from corl.rollout.transformers_engine import TransformersEngine

    engine = TransformersEngine(policy, max_rows=asking.max_rows)
    engine.sync()
    prompts = [
        encode_for(
            policy,
            row,
            system_prompt=asking.system_prompt,
            chat=asking.chat,
            chat_template_kwargs=asking.chat_template_kwargs,
        )
        for row in rows
    ]
    rollout = engine.sample(
        [prompt.ids for prompt in prompts],
        vision=[prompt.vision for prompt in prompts],
        completions=completions,
        sampling=SamplingParameters(
            temperature=asking.temperature,
            max_tokens=asking.max_tokens,
            top_p=asking.top_p,
            top_k=asking.top_k,
            stop=asking.stop,
        ),
        noise=Noise(seed, "evaluation"),
        step=_SAMPLED_STEP if asking.temperature else _GREEDY_STEP,
        places=places,
    )
    return [
        [Completion(text, cut) for text, cut in zip(texts, cuts, strict=True)]
        for texts, cuts in zip(rollout.texts, rollout.truncated, strict=True)
    ]
