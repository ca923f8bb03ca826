"""What a step of two agents costs: Co-RL's cohort against two TRL trainers, on the same work.

    python benchmarks/vs_trl.py --smollm2 checkpoints/smollm2 --repeats 5
    python benchmarks/vs_trl.py --gpu                       # one GPU, under 8 minutes

Both sides stay loaded and take turns, step by step, on the same models, prompts, lengths, dtype,
threads and replayed rewards; an agent has a process of its own on both. A step is over when the
slower agent is. Medians, with the quartiles in brackets; the first step of each is dropped, but on
the GPU, where one step each is minutes. Below a row of fixed lengths stand Co-RL's shares of the
machine's peaks. TRL comes with corl[dev].
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from versus import scales
from versus.pair import SIDES, Pair
from versus.peaks import measure_peaks, shares
from versus.work import Work, mean_prompt_tokens

HEADER = (
    f"{'work':<20} {'TRL s/step':>22} {'Co-RL s/step':>22} {'ratio':>6}"
    f"   {'sampling tok/s':>15}   {'learning tok/s':>15}   {'peak MiB':>12}"
)


@dataclass(slots=True)
class Measured:
    """One side's steps of one row."""

    steps: list[float] = field(default_factory=list)
    """Seconds of the slower agent."""
    figures: list[dict[str, float]] = field(default_factory=list)
    """Of every agent and step."""
    memory: list[dict[str, float]] = field(default_factory=list)
    """Of every agent."""

    def rate(self, phase: str) -> float:
        """Completion tokens a second of one agent, over one phase."""
        return statistics.median(each["tokens"] / each[phase] for each in self.figures)

    @property
    def peak_mib(self) -> float:
        """Of one agent, both averaged."""
        return statistics.fmean(each["peak_bytes"] for each in self.memory) / 2**20


def main() -> None:
    options = _options()
    folder = options.work.resolve()
    results: list[dict[str, Any]] = []
    print(HEADER)
    for work in _rows(options, folder):
        repeats = options.large_repeats if work.trl_rows else options.repeats
        if options.gpu:
            repeats = 1
        warm_up = 0 if options.gpu else options.warm_up
        measured = measure(work, repeats=repeats, warm_up=warm_up)
        print(_line(work, measured), flush=True)
        if not (work.flat_share or work.is_ragged):
            print(_peaks(work, measured), flush=True)
        results.append(_as_json(work, measured))
        if options.out:
            options.out.write_text(json.dumps(results, indent=1))


def measure(work: Work, *, repeats: int, warm_up: int = 1) -> dict[str, Measured]:
    """Alternate the two sides for `repeats` steps each, after `warm_up` steps that do not count."""
    measured = {side: Measured() for side in SIDES}
    with Pair("corl", work) as ours, Pair("trl", work) as theirs:
        pairs = {"corl": ours, "trl": theirs}
        for repeat in range(warm_up + repeats):
            # Who goes first alternates as well.
            for side in sorted(pairs, reverse=bool(repeat % 2)):
                figures = pairs[side].step()
                if repeat >= warm_up:
                    measured[side].steps.append(max(each["step_s"] for each in figures))
                    measured[side].figures.extend(_with_learning(each) for each in figures)
        for side, pair in pairs.items():
            measured[side].memory = pair.memory()
    return measured


def _with_learning(figures: dict[str, float]) -> dict[str, float]:
    """TRL says what sampling took; the rest of its step, waiting included, is learning."""
    learn_s = figures.get("learn_s", figures["step_s"] - figures["sample_s"])
    return {**figures, "learn_s": learn_s}


def _rows(options: argparse.Namespace, folder: Path) -> Iterator[Work]:
    if options.gpu:
        yield from scales.gpu(folder, tokens=options.tokens)
        return
    rows = scales.small(folder)
    for dtype in ("float32", "mixed"):
        rows += scales.medium(folder, dtype=dtype)
    if options.smollm2:
        for dtype in ("mixed", "float32") if options.all else ("mixed",):
            rows += scales.large(folder, options.smollm2.resolve(), dtype=dtype)
    yield from (row for row in rows if re.search(options.only, row.name))


def _line(work: Work, measured: dict[str, Measured]) -> str:
    ours, theirs = measured["corl"], measured["trl"]
    ratio = statistics.median(theirs.steps) / statistics.median(ours.steps)
    return (
        f"{work.name:<20} {_spread(theirs.steps):>22} {_spread(ours.steps):>22} {ratio:>6.2f}"
        f"   {theirs.rate('sample_s'):>6.0f} > {ours.rate('sample_s'):>6.0f}"
        f"   {theirs.rate('learn_s'):>6.0f} > {ours.rate('learn_s'):>6.0f}"
        f"   {theirs.peak_mib:>4.0f} > {ours.peak_mib:>5.0f}"
    )


def _peaks(work: Work, measured: dict[str, Measured]) -> str:
    peaks = measure_peaks(work)
    of_median = {
        f"{phase}_s": statistics.median(each[f"{phase}_s"] for each in measured["corl"].figures)
        for phase in ("sample", "learn")
    }
    arithmetic, bandwidth = shares(work, peaks, prompt_tokens=mean_prompt_tokens(work), **of_median)
    return (
        f"{'':<20} learning does {arithmetic:.0%} of {peaks.operations_per_s / 1e9:,.0f} GFLOP/s, "
        f"sampling reads {bandwidth:.0%} of {peaks.bytes_per_s / 1e9:,.0f} GB/s"
    )


def _spread(seconds: list[float]) -> str:
    if len(seconds) < 2:
        return f"{seconds[0]:.3f}"
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return f"{middle:.3f} [{low:.3f} {high:.3f}]"


def _as_json(work: Work, measured: dict[str, Measured]) -> dict[str, Any]:
    return {
        "work": work.name,
        "rows": work.rows,
        "tokens": work.tokens,
        "threads": work.threads,
        **{
            side: {"steps": each.steps, "figures": each.figures, "memory": each.memory}
            for side, each in measured.items()
        },
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=Path("vs_trl"), help="folder for checkpoints")
    parser.add_argument("--smollm2", type=Path, help="SmolLM2-135M (scripts/smollm2_checkpoint.py)")
    parser.add_argument("--all", action="store_true", help="135M in float32 as well")
    parser.add_argument("--only", default="", help="rows whose name matches this pattern")
    parser.add_argument("--repeats", type=int, default=7, help="timed steps of each side")
    parser.add_argument("--large-repeats", type=int, default=2, help="the same from 135M on")
    parser.add_argument("--warm-up", type=int, default=1, help="steps before that")
    parser.add_argument("--gpu", action="store_true", help="the large pair on one GPU")
    parser.add_argument("--tokens", type=int, default=2048, help="completion length of --gpu")
    parser.add_argument("--out", type=Path, help="write every figure as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
