"""GT-Reward: the labelled reference that label-free methods are measured against."""

from __future__ import annotations

from collections.abc import Sequence

from corl.errors import RecipeError
from corl.supervision.base import Evidence, Rewards, Supervision, agreement_rewards


class GroundTruth(Supervision):
    """Reward 1 for the true answer. The only method that is handed labels."""

    graded_by = "the labels"
    needs_labels = True

    def reward(self, evidence: Evidence, ballots: Sequence[Sequence[str | None]]) -> Rewards:
        """Hold every completion against the label; a row without one has no policy term."""
        if evidence.labels is None:
            raise RecipeError("supervision ground_truth needs labels; set `prompts.answer_field`")
        return agreement_rewards(evidence.answers, evidence.labels)
