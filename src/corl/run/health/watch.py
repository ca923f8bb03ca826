"""What is said of one agent, step by step. No files, no torch: it may run over any metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from corl.run.health.config import HealthConfig
from corl.run.health.detectors import Finding, Level, examine
from corl.run.health.history import History, Record

_GROUPS = ("flat", "unlabelled", "forwarded")


@dataclass(frozen=True, slots=True)
class Notice:
    """A line of `health.jsonl`."""

    step: int
    agent: str
    detector: str
    level: Level
    message: str
    value: float
    threshold: float

    @property
    def is_alarm(self) -> bool:
        """Whether the policy acts on it."""
        return self.level == "alarm"


class Watch:
    """One agent's detectors, and which of them have spoken already."""

    def __init__(self, config: HealthConfig, *, completions_per_group: int) -> None:
        self._config = config
        self._completions = completions_per_group
        self._history = History(warmup=config.warmup, window=config.window)
        self._last_seen: dict[tuple[str, str], int] = {}

    def observe(self, record: Record) -> list[Notice]:
        """Take up the agent's next step; return what has not been said.

        Information is given once, an alarm again after a window of steps without it.
        """
        self._history.add(_with_shares(record, self._completions))
        step, agent = int(record["step"]), str(record["agent"])
        notices = []
        for finding in examine(self._history, self._config):
            key = (finding.detector, finding.level)
            last = self._last_seen.get(key)
            self._last_seen[key] = step
            is_back = (
                last is not None and finding.level == "alarm" and step - last > self._config.window
            )
            if last is None or is_back:
                notices.append(_notice(finding, step, agent))
        return notices


def _notice(finding: Finding, step: int, agent: str) -> Notice:
    return Notice(
        step=step,
        agent=agent,
        detector=finding.detector,
        level=finding.level,
        message=f"agent {agent}: {finding.what} by step {step}: {finding.means}",
        value=round(finding.value, 4),
        threshold=finding.threshold,
    )


def _with_shares(record: Record, completions: int) -> dict[str, Any]:
    """The record, and which share of its sampled tokens was not finite."""
    groups = sum(record.get(f"groups_{kind}") or 0 for kind in _GROUPS)
    bad, length = record.get("nonfinite_tokens"), record.get("length_mean")
    if bad is None or not length or not groups:
        return {**record, "nonfinite_share": None}
    return {**record, "nonfinite_share": bad / (length * completions * groups)}
