"""The pairs of a `kappa.json`, read back for pictures: kappa and the three shares.

The file is untrusted; a figure that is missing or no number is None, and a picture shows a dash.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corl.diversity.counts import FILE_NAME
from corl.diversity.pictures import FORMATS, heat_map, table
from corl.errors import PromptError

HEADINGS = ("pair", "kappa", "95 % interval", "exactly one, %", "same wrong, %", "at least one, %")
_SHARES = ("exactly_one_right", "same_wrong_answer", "at_least_one_right")


@dataclass(frozen=True, slots=True)
class PairFigures:
    """One pair of models; a model with itself where it was asked with several seeds."""

    a: str
    b: str
    kappa: float | None
    interval: tuple[float, float] | None
    """95 % of kappa."""
    shares: tuple[float | None, float | None, float | None]
    """Exactly one right, both wrong with the same answer, at least one right; 0 to 1."""

    def cells(self) -> list[str]:
        """The row of this pair under `HEADINGS`."""
        return [
            f"{self.a}, {self.b}",
            "-" if self.kappa is None else f"{self.kappa:.2f}",
            "-" if self.interval is None else f"{self.interval[0]:.2f} to {self.interval[1]:.2f}",
            *("-" if share is None else f"{100 * share:.1f}" for share in self.shares),
        ]


def read_pairs(path: Path) -> list[PairFigures]:
    """The pairs of a file that `corl.diversity.counts.read_probe` has read, or of its directory."""
    file = path / FILE_NAME if path.is_dir() else path
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PromptError(f"{file} is no JSON of `corl kappa`: {error}") from None
    pairs = tree.get("pairs") if isinstance(tree, dict) else None
    return [
        PairFigures(
            str(one["a"]),
            str(one["b"]),
            _value(one.get("kappa")),
            _interval(one.get("kappa")),
            (_value(one.get(_SHARES[0])), _value(one.get(_SHARES[1])), _value(one.get(_SHARES[2]))),
        )
        for one in (pairs if isinstance(pairs, list) else [])
        if isinstance(one, dict) and "a" in one and "b" in one
    ]


def kappa_table(names: Sequence[str], pairs: Sequence[PairFigures]) -> list[list[float | None]]:
    """[N][N] kappa of every pair of these names, None where the probe has none."""
    known = {(one.a, one.b): one.kappa for one in pairs}
    return [[known.get((a, b), known.get((b, a))) for b in names] for a in names]


def write_pair_pictures(
    names: Sequence[str], pairs: Sequence[PairFigures], out: Path
) -> list[Path]:
    """OUT/kappa.png, OUT/pairs.png and the same as SVG; nothing where no pair has a kappa."""
    if not any(one.kappa is not None for one in pairs):
        return []
    values, rows = kappa_table(names, pairs), [one.cells() for one in pairs]
    written = []
    for suffix in FORMATS:
        written.append(heat_map(out / f"kappa{suffix}", names, values))
        written.append(table(out / f"pairs{suffix}", HEADINGS, rows, title="Error overlap"))
    return written


def _value(figure: Any) -> float | None:
    value = figure.get("value") if isinstance(figure, dict) else figure
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


def _interval(figure: Any) -> tuple[float, float] | None:
    if not isinstance(figure, dict):
        return None
    low, high = _value(figure.get("low")), _value(figure.get("high"))
    return None if low is None or high is None else (low, high)
