"""How an evaluation asks: every sampling parameter, nothing left to a checkpoint's defaults."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from corl.errors import RecipeError
from corl.evaluation.benchmarks import Benchmark

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # Co-RL, arXiv 2608.17253: temperature 0.6, top-p 0.95, 3072 new tokens; one completion a row,
    # eight for AMC (the benchmark files' own numbers); the average is the plain mean.
    "paper": {"temperature": 0.6, "top_p": 0.95, "max_tokens": 3072},
}
"""Settings by name; what the command names itself goes over them."""

Chat = Literal["auto", "always", "never"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalSettings:
    """What is the same for every model and benchmark of one evaluation."""

    samples: int | None = None
    """Completions of a row; None takes each benchmark's own number, 0 samples none."""
    greedy: bool = False
    """Also take the most probable completion of every row."""
    temperature: float = 0.6
    top_p: float = 0.95
    max_tokens: int = 1024
    """New tokens of one completion."""
    chat: Chat | None = None
    """None: as the run's recipe says, else auto."""
    system_prompt: str | None = None
    """None: as the run's recipe says, else none."""
    seed: int = 0
    limit: int | None = None
    """Use the first so many rows of every benchmark."""
    batch_rows: int = 128
    """Completions decoded at once."""

    def __post_init__(self) -> None:
        limits: list[tuple[str, bool, str]] = [
            ("samples", self.samples is None or 0 <= self.samples <= 4096, "0 to 4096"),
            ("temperature", 0 < self.temperature <= 10, "above 0, at most 10; --greedy for 0"),
            ("top_p", 0 < self.top_p <= 1, "above 0, at most 1"),
            ("max_tokens", self.max_tokens >= 1, "at least 1"),
            ("limit", self.limit is None or self.limit >= 1, "at least 1"),
            ("batch_rows", self.batch_rows >= 1, "at least 1"),
            ("chat", self.chat in (None, "auto", "always", "never"), "auto, always or never"),
        ]
        for name, is_fine, takes in limits:
            if not is_fine:
                raise RecipeError(
                    f"--{name.replace('_', '-')} is {getattr(self, name)!r}: it takes {takes}"
                )
        if self.samples == 0 and not self.greedy:
            raise RecipeError("--samples 0 without --greedy asks for nothing; add --greedy")

    @classmethod
    def of(cls, *, preset: str | None = None, **given: Any) -> EvalSettings:
        """Defaults, under the preset, under what was given (None: not given).

        Raises RecipeError for an unknown preset, naming the nearest one.
        """
        under: Mapping[str, Any] = {}
        if preset is not None:
            if preset not in PRESETS:
                near = difflib.get_close_matches(preset, PRESETS, n=1, cutoff=0.4)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(PRESETS)}"
                raise RecipeError(f"no preset {preset!r}; {hint}")
            under = PRESETS[preset]
        known = {field.name for field in fields(cls)}
        over = {key: value for key, value in given.items() if value is not None}
        assert set(over) <= known, over
        return cls(**{**under, **over})

    def samples_of(self, benchmark: Benchmark) -> int:
        """Sampled completions of each of its rows."""
        return benchmark.samples if self.samples is None else self.samples

    def is_greedy_on(self, benchmark: Benchmark) -> bool:
        """Whether its rows also get a most probable completion."""
        return self.greedy or benchmark.metric == "greedy"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
