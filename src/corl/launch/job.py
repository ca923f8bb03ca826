"""What a launcher is handed: a checked recipe, its run directory, and where to begin."""

from __future__ import annotations

from dataclasses import dataclass

from corl.config import Recipe
from corl.data.prompts import PromptSet
from corl.run.directory import RunDirectory, RunFacts


@dataclass(frozen=True, slots=True)
class Job:
    """One start of a run, from the beginning or from a checkpoint."""

    recipe: Recipe
    run: RunDirectory
    facts: RunFacts
    prompts: dict[str, PromptSet]
    """Aligned rows of each agent."""
    devices: dict[str, str]
    done_step: int
    """Last step that the cohort has behind it; 0 at the beginning."""
    restarts: int = 0
    """Restarts since the launcher began."""

    @property
    def names(self) -> list[str]:
        """The agents, in recipe order."""
        return [agent.name for agent in self.recipe.agents]

    @property
    def num_rows(self) -> int:
        """Rows of every agent's prompts."""
        return len(next(iter(self.prompts.values())).rows)
