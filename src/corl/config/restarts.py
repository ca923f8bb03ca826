"""The recipe's `restarts` section: whether a run that lost an agent goes on by itself."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from corl.config.section import Section


class RestartsConfig(Section):
    """What follows when an agent, its process or its node dies. An error that the same seed would
    meet again (a recipe, a loss that is not finite, a wrong ballot) ends the run all the same."""

    limit: int = Field(0, ge=0)
    """Restarts of the whole cohort from its newest common checkpoint; 0: the run ends instead."""
    fruitless: PositiveInt = 3
    """Restarts in a row that brought the cohort no step further, after which the run ends."""
    pause_s: float = Field(1.0, ge=0)
    """Seconds between a loss and the restart."""
    wait_s: float = Field(300.0, ge=0)
    """Longest wait of a restart for the resources of a lost node, under `launch: ray`."""
