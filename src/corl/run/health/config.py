"""The recipe's `health` section: thresholds of the detectors, and what an alarm leads to.

Defaults were set on quickstart runs of seeds 100 to 102 and on published curves
(docs/health.md). It knows no other section, because the recipe imports it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, field_validator


class HealthConfig(BaseModel):
    """When a run is taken to be ill. A threshold of null turns its detector off."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    policy: Literal["warn", "stop", "rollback", "off"] = "warn"
    """What an alarm does. warn: says so; stop: ends the run, saved and resumable; rollback: ends
    it and drops checkpoints behind the last healthy one; off: no detector runs."""
    warmup: PositiveInt = 4
    """First steps whose medians are the start that later steps are held against."""
    window: PositiveInt = 4
    """Latest steps whose medians are judged."""

    reward_std_collapse: float | None = Field(0.2, ge=0, le=1)
    """Group reward std below this share of its start."""
    entropy_collapse: float | None = Field(0.1, ge=0, le=1)
    """Token entropy below this share of its start."""
    entropy_rise: float | None = Field(1.3, ge=1)
    """Token entropy above so many times its start, where the policy's own certainty is the
    reward."""
    entropy_rise_voted: float | None = Field(2.0, ge=1)
    """The same where votes or labels are the reward, and it has not risen."""
    length_inflation: float | None = Field(1.5, ge=1)
    """Mean length above so many times its start."""
    length_deflation: float | None = Field(0.5, ge=0, le=1)
    """Mean length below this share of its start."""
    truncated_rise: float | None = Field(0.25, ge=0, le=1)
    """Rise of the share of completions that are cut off, 0.25 for 25 points."""
    repetition_rise: float | None = Field(0.2, ge=0, le=1)
    """Rise of the share of repeated 4-grams, 0.2 for 20 points."""
    answered_fall: float | None = Field(0.6, ge=0, le=1)
    """Share of completions that state an answer below this share of its start."""
    labelled_floor: float | None = Field(0.2, ge=0, le=1)
    """Share of prompts with a label."""
    nonfinite_share: float | None = Field(0.01, ge=0, le=1)
    """Share of sampled tokens without a finite log-probability."""

    kl_ceiling: float | None = Field(0.5, ge=0)
    """KL to the starting policy, nats a token; information only."""
    agreement_ceiling: float | None = Field(0.99, ge=0, le=1)
    """Agreement of own votes with labels; information only."""
    flat_ceiling: float | None = Field(0.9, ge=0, le=1)
    """Share of groups without a reward difference; information only."""
    distinct_floor: float | None = Field(1.1, ge=0)
    """Different answers in a group; information only."""

    @field_validator("policy", mode="before")
    @classmethod
    def _unquoted_off(cls, value: object) -> object:
        return "off" if value is False else value  # YAML reads a bare `off` as false

    def checkpoints_to_keep(self, *, keep: int, every: int) -> int:
        """`checkpoint.keep`, or more where a rollback must find one from before its alarm.

        An alarm at step s rolls back behind its window. Saved since then may be
        one checkpoint every `every` steps up to the stop, a few steps after s,
        and the one of the stop.
        """
        if self.policy != "rollback" or not every:
            return keep
        return max(keep, -(-(self.window + _STEPS_TO_STOP) // every) + 2)


_STEPS_TO_STOP = 4
