"""Whether an agent can see what its prompts show; part of the preflight."""

from __future__ import annotations

from corl.config import AgentConfig
from corl.data.prompts import PromptSet
from corl.errors import PromptError, RecipeError
from corl.policy import ModelFacts


def check_sight(agent: AgentConfig, model: ModelFacts, prompts: PromptSet) -> None:
    """Raise PromptError where a text model is shown images.

    Raises RecipeError where a text model is to train a vision tower.
    """
    if model.sees_images:
        return
    if agent.train_vision:
        raise RecipeError(
            f"agent {agent.name!r}: train_vision is on, but {model.source} ({model.architecture}) "
            "has no vision tower; drop the key or choose a vision-language model"
        )
    for number, row in enumerate(prompts.rows, start=1):
        if row.images:
            raise PromptError(
                f"row {number} (id {row.id!r}) of {prompts.source} shows {len(row.images)} "
                f"image(s), and agent {agent.name!r} reads text alone ({model.architecture}): give "
                "it a vision-language model, or prompts without `images_field`"
            )
