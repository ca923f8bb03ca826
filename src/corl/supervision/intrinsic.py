"""Rewards from the policy's own token distributions: no votes, no labels.

`SelfCertainty` is Intuitor (arXiv 2505.19590): the mean over completion tokens
of KL(U, p_t) = -log V - (1/V) * sum_j log p_t(j). `Entropy` is RENT (arXiv
2505.22660): minus the mean token entropy. Both read statistics gathered while
sampling, so they cost no second pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from corl.supervision.base import Evidence, Rewards, Supervision


class SelfCertainty(Supervision):
    """Reward a completion by the policy's mean self-certainty, in nats."""

    needs_token_statistics = True

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """The statistic itself; every prompt has a policy term."""
        return _all_prompts([list(map(float, group)) for group in evidence.self_certainty])


class Entropy(Supervision):
    """Reward a completion by minus the policy's mean token entropy, in nats."""

    needs_token_statistics = True

    def __init__(self, *, format_floor: float | None = None) -> None:
        """format_floor: reward of a completion without an answer (RENT's release: -7)."""
        self.format_floor = format_floor

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """Minus the entropy, or the floor where the completion states no answer."""
        return _all_prompts(
            [
                [
                    self.format_floor
                    if self.format_floor is not None and answer is None
                    else -float(entropy)
                    for answer, entropy in zip(answers, entropies, strict=True)
                ]
                for answers, entropies in zip(evidence.answers, evidence.entropy, strict=True)
            ]
        )


def _all_prompts(rewards: list[list[float]]) -> Rewards:
    return Rewards(rewards, [None] * len(rewards), [True] * len(rewards))
