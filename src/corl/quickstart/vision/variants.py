"""The vision-language models of the demonstration: what each is taught, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from corl.errors import ModelError
from corl.quickstart.corpus import CorpusSpec
from corl.quickstart.vision.prompts import NUM_STEPS


@dataclass(frozen=True, kw_only=True, slots=True)
class VisionVariant:
    """One model to pretrain."""

    family: str
    """A key of `corl.quickstart.vision.families.VISION_FAMILIES`."""

    steps: int
    """Optimizer steps of 64 pictures to read and 64 to solve, all fresh."""

    seed: int
    """Draws the first weights, the corpus and the pictures."""

    corpus: CorpusSpec


VISION_VARIANTS = {
    "llava": VisionVariant(
        family="llava",
        steps=1000,
        seed=1,
        corpus=CorpusSpec(misconceptions=("carry",), num_steps=NUM_STEPS),
    ),
    "internvl": VisionVariant(
        family="internvl",
        steps=1000,
        seed=2,
        corpus=CorpusSpec(misconceptions=("smaller_from_larger",), num_steps=NUM_STEPS),
    ),
}
"""All of them lie in the package as checkpoints."""


def shipped_vision_model(name: str) -> Path:
    """The directory of a checkpoint that the package carries. Raises ModelError for others."""
    if name not in VISION_VARIANTS:
        raise ModelError(f"{name!r} is not among the shipped models {', '.join(VISION_VARIANTS)}.")
    return Path(str(files("corl.quickstart.vision") / "models" / name))
