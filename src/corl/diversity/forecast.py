"""What `corl basin` computes and leaves: each model alone, pairs both ways, the ring of all."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from corl.diversity.basins import Prediction, predict_ring, predict_self
from corl.diversity.counts import Probed, read_probe
from corl.diversity.pair_figures import PairFigures, read_pairs, write_pair_pictures
from corl.diversity.pictures import Places, phase_portrait
from corl.errors import PromptError, RecipeError
from corl.run.files import write_atomically

_FEWEST_SAMPLES = 2


@dataclass(frozen=True, slots=True)
class Forecast:
    """All predictions of one probe."""

    probed: Probed
    overlaps: tuple[PairFigures, ...]
    """What `corl kappa` said of the pairs."""
    completions: int
    alone: tuple[Prediction, ...]
    """Self-reward of each model."""
    pairs: tuple[tuple[Prediction, Prediction], ...]
    """Co-RL of each pair: the first taught by the second, and the reverse."""
    ring: tuple[Prediction, ...]
    """Co-RL of all models in the probe's order; empty for two."""

    def places(self, index: int) -> Places:
        """The problems on the portrait of pair `index`."""
        first, second = self.pairs[index]
        ends = [(a + b) / 2 for a, b in zip(first.ends, second.ends, strict=True)]
        return Places(first.starts, second.starts, ends)


def forecast(path: Path, *, pair: Sequence[str] = (), completions: int) -> Forecast:
    """Predict from a probe's file or directory.

    pair: two names, or none for all models. Raises PromptError for a probe that cannot serve,
    RecipeError for a pair that is none.
    """
    probed = read_probe(path)
    if probed.fewest_samples < _FEWEST_SAMPLES:
        raise PromptError(
            f"{path} has {probed.fewest_samples} sample of some problems: from one sample nobody "
            "can tell how often a model is right; probe again with --samples 8"
        )
    if pair and (len(pair) != 2 or pair[0] == pair[1]):
        raise RecipeError(f"--pair takes the names of two models, and was {' '.join(pair)}")
    names = list(pair) or [model.name for model in probed.models]
    pairs = [predict_ring(probed, two, completions=completions) for two in combinations(names, 2)]
    ring = predict_ring(probed, names, completions=completions) if len(names) > 2 else []
    return Forecast(
        probed=probed,
        overlaps=tuple(read_pairs(path)),
        completions=completions,
        alone=tuple(predict_self(probed, name, completions=completions) for name in names),
        pairs=tuple((first, second) for first, second in pairs),
        ring=tuple(ring),
    )


def write_forecast(found: Forecast, out: Path) -> list[Path]:
    """Write `basins.json`, and as PNG and SVG a portrait of each pair and what kappa said.

    Returns what was written. Raises RecipeError without matplotlib.
    """
    out.mkdir(parents=True, exist_ok=True)
    names = [one.pupil for one in found.alone]
    overlaps = [one for one in found.overlaps if one.a in names and one.b in names]
    written = write_pair_pictures(names, overlaps, out)
    for index, (first, _) in enumerate(found.pairs):
        stem = "portrait-" + "-".join(_plain(name) for name in (first.pupil, first.teacher))
        written += portraits(
            out / stem,
            completions=found.completions,
            names=(first.pupil, first.teacher),
            places=found.places(index),
        )
    figures = out / "basins.json"
    tree = {
        "completions": found.completions,
        "problems": list(found.probed.ids),
        "predictions": list(_records(found)),
    }
    write_atomically(figures, json.dumps(tree, indent=1))
    return [figures, *written]


def portraits(
    stem: Path,
    *,
    completions: int,
    names: tuple[str, str] = ("A", "B"),
    places: Places | None = None,
) -> list[Path]:
    """One phase portrait as STEM.png and STEM.svg."""
    return [
        phase_portrait(
            stem.with_name(stem.name + suffix), completions=completions, names=names, places=places
        )
        for suffix in (".png", ".svg")
    ]


def _records(found: Forecast) -> Iterator[dict[str, Any]]:
    for method, group in (
        ("self_vote", found.alone),
        ("peer", [one for two in found.pairs for one in two]),
        ("ring", found.ring),
    ):
        for one in group:
            yield {
                "method": method,
                "pupil": one.pupil,
                "teacher": one.teacher,
                "start": round(one.start, 6),
                "ceiling": round(one.ceiling, 6),
                "interval": [round(bound, 6) for bound in one.interval],
                "signal": None if math.isnan(one.signal) else round(one.signal, 6),
                "gained": list(one.gained),
                "lost": list(one.lost),
                "ends": [round(end, 4) for end in one.ends],
            }


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._")[:60] or "model"
