"""What every supervision method is given and returns.

Shapes: P prompts, K completions per prompt that are trained on. For methods with
`needs_rewrites` P counts both halves: the prompts, then their second wordings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from corl.answers import Answer
from corl.errors import RecipeError


@dataclass(frozen=True, slots=True)
class Evidence:
    """One agent's own step, as far as a method may look at it."""

    answers: Sequence[Sequence[Answer | None]]
    """[P][K] answers; None abstains."""
    own_votes: Sequence[str | None]
    """[P] keys of the agent's own majority votes, taken over all that it sampled."""
    entropy: Sequence[Sequence[float]] = ()
    """[P][K] mean token entropy in nats; only for methods with `needs_token_statistics`."""
    self_certainty: Sequence[Sequence[float]] = ()
    """[P][K] mean token self-certainty in nats; likewise."""
    labels: Sequence[str | None] | None = None
    """[P] keys of the true answers; only for methods with `needs_labels`."""
    teacher_votes: Sequence[str | None] = ()
    """[P] keys of the teacher's majority votes; only for methods with `needs_teacher`."""


@dataclass(frozen=True, slots=True)
class Rewards:
    """One agent's rewards of one step."""

    rewards: list[list[float]]
    """[P][K]."""
    labels: list[str | None]
    """[P] the key each completion was held against; None where there is none."""
    labelled: list[bool] = field(default_factory=list)
    """[P] whether the prompt has a policy term. Without one its rewards are 0."""


class Supervision:
    """A way to reward an agent. Subclasses override `reward`, and `graders` if they use peers.

    The attributes say what the agent must bring; an agent brings nothing that is not asked for.
    """

    graded_by: ClassVar[str] = "itself"
    """Who grades an agent that has no graders, in a reader's words."""
    needs_labels: ClassVar[bool] = False
    """Whether true answers are handed over. False keeps labels out of training altogether."""
    needs_token_statistics: ClassVar[bool] = False
    """Whether rewards come from the policy's own token distributions."""
    needs_rewrites: ClassVar[bool] = False
    """Whether a step holds every prompt twice: as it is, and in a second wording."""
    needs_teacher: ClassVar[bool] = False
    """Whether the agent keeps a teacher, a moving average of its policy, that votes as well."""
    num_votes: int | None = None
    """Completions per prompt that vote, where they are more than those trained on."""

    def graders(self, agent: str, ring: Sequence[str]) -> tuple[str, ...]:
        """Names of the agents whose ballots `agent` needs, in the order `reward` gets them."""
        return ()

    def teacher_share(self, step: int, *, steps: int) -> float:
        """Share of the policy that the teacher takes up after a step of `steps`, from 1."""
        return 0.0

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """Rewards of one agent's step.

        ballots: the votes of `graders`, [len(graders)][P] keys.
        """
        raise NotImplementedError


def agreement_rewards(
    answers: Sequence[Sequence[Answer | None]], labels: Sequence[str | None]
) -> Rewards:
    """1 where a completion's answer has its label's key, else 0 (method section 1, step 2).

    answers: [P][K]; labels: [P] keys. An abstention earns 0, and a prompt
    without a label gives 0 to all and has no policy term.
    """
    rewards = [
        [
            1.0 if label is not None and answer is not None and answer.key == label else 0.0
            for answer in group
        ]
        for group, label in zip(answers, labels, strict=True)
    ]
    return Rewards(rewards, list(labels), [label is not None for label in labels])


def checked_votes(votes: int | None) -> int | None:
    """The option `votes` of a method. Raises RecipeError unless it is a count or left out."""
    if votes is not None and (type(votes) is not int or votes < 1):
        raise RecipeError(
            f"supervision.options.votes is {votes!r}; it is the number of completions per prompt "
            "that vote, such as 64"
        )
    return votes
