"""How a probe asks: every sampling parameter, nothing left to a checkpoint's defaults."""

from __future__ import annotations

from dataclasses import dataclass

from corl.errors import RecipeError


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeSettings:
    """How every model is asked."""

    samples: int | None = None
    """Completions of a problem; None: 1 of a model, and all that saved completions hold."""
    temperature: float = 0.8
    """0 takes the most probable completion."""
    max_tokens: int = 1024
    """New tokens of one completion."""
    seeds: int = 1
    """Passes of each model with seeds of their own; from 2 on a model is compared with itself."""
    batch_rows: int = 128
    """Completions decoded at once."""

    def __post_init__(self) -> None:
        limits: list[tuple[str, bool, str]] = [
            ("samples", self.samples is None or 1 <= self.samples <= 4096, "1 to 4096"),
            ("temperature", 0 <= self.temperature <= 10, "0 to 10"),
            ("max_tokens", self.max_tokens >= 1, "at least 1"),
            ("seeds", 1 <= self.seeds <= 16, "1 to 16"),
            ("batch_rows", self.batch_rows >= 1, "at least 1"),
        ]
        for name, is_fine, takes in limits:
            if not is_fine:
                raise RecipeError(
                    f"--{name.replace('_', '-')} is {getattr(self, name)!r}: it takes {takes}"
                )
        if self.temperature == 0 and ((self.samples or 1) > 1 or self.seeds > 1):
            raise RecipeError(
                "--temperature 0 has one completion of a problem: leave out --samples and --seeds"
            )
