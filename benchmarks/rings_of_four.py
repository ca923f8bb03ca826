"""Is the ring that `corl pair` picks a good one? Trains every ring of four models.

Four models, one of them undertrained, make six directed rings. Each is trained by the quickstart's
recipe for every seed, and all trained agents answer the held-out problems, 8 samples each.
`corl pair` sees the untrained models only. About 4 minutes a ring and seed on one quiet core; run
again, it continues.

    python benchmarks/rings_of_four.py --weak runs/quickstart_all/models/llama_weak \\
        --seeds 0 --out runs/rings
"""

from __future__ import annotations

import argparse
import json
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from corl.config import Recipe, load_recipe
from corl.diversity.counts import Probed
from corl.diversity.pairing import pair
from corl.evaluation.accuracy import grade, label_keys
from corl.evaluation.completions import Asking
from corl.evaluation.intervals import seed_interval
from corl.launch import resume_run, start_run
from corl.quickstart.demonstration import held_out_rows
from corl.quickstart.pretrain import shipped_model
from corl.quickstart.settings import PACKAGE
from corl.run.directory import RunDirectory
from corl.run.files import write_atomically
from corl.show import live_progress, print_table
from corl.study.measure import Measurer, Question
from predicted_ceilings import asked

STRONG = ("qwen3", "gpt_neox", "llama")
WEAK = "llama_weak"
PROBE_SEED = 2000


def rings() -> list[tuple[str, ...]]:
    """All six, each from the same first model; an agent is graded by the one before it."""
    return [(STRONG[0], *rest) for rest in permutations((*STRONG[1:], WEAK))]


def from_the_first(ring: tuple[str, ...]) -> tuple[str, ...]:
    """The same ring, named from the model that `rings` begin with."""
    start = ring.index(STRONG[0])
    return (*ring[start:], *ring[:start])


def recipe_of(ring: tuple[str, ...], models: dict[str, Path], seed: int, steps: int) -> Recipe:
    # The agents stand in one order, so that only the ring differs between the runs.
    agents = ", ".join(f"{{name: {name}, model: {path}}}" for name, path in models.items())
    return load_recipe(
        PACKAGE / "recipe.yaml",
        [
            f"agents=[{agents}]",
            f"supervision={{method: peer, ring: [{', '.join(ring)}]}}",
            f"seed={seed}",
            f"steps={steps}",
            f"name={'-'.join(ring)} seed {seed}",
        ],
    )


def probe(recipe: Recipe) -> Probed:
    """The untrained models, asked as the recipe trains them."""
    return asked(
        {agent.name: (agent.model, Asking.of(recipe, agent)) for agent in recipe.agents},
        seed=PROBE_SEED,
    )


def trained(recipe: Recipe, out: Path, console: Console) -> dict[str, float]:
    """avg@8 of every agent after training, on held-out problems."""
    figures = out / "accuracy.json"
    if figures.exists():
        return dict(json.loads(figures.read_text(encoding="utf-8")))
    run, progress = RunDirectory(out), live_progress(console)
    if not all(run.final(agent.name).exists() for agent in recipe.agents):
        is_begun = (out / "recipe.yaml").exists()
        outcome = (
            resume_run(out, progress=progress)
            if is_begun
            else start_run(recipe, out, progress=progress)
        )
        if not outcome.is_finished:
            raise SystemExit(f"stopped; run again to continue {out}")
    rows = held_out_rows()
    questions = [
        Question(model=str(run.final(agent.name)), asking=Asking.of(recipe, agent), device="cpu")
        for agent in recipe.agents
    ]
    with Measurer(workers=1) as measurer:
        sheets = measurer.sheets(questions, rows)
    reached = {
        agent.name: grade(sheet, label_keys(rows)).avg_at_8
        for agent, sheet in zip(recipe.agents, sheets, strict=True)
    }
    write_atomically(figures, json.dumps(reached, indent=1))
    return reached


def show(console: Console, found: list[dict[str, Any]]) -> None:
    table = Table(title="avg@8 after training, %", box=None, pad_edge=False)
    for title in (
        "ring (each grades the next)",
        "mean",
        "95 % over seeds",
        *STRONG,
        WEAK,
        "signal",
    ):
        table.add_column(title, justify="left" if title.startswith("ring") else "right")
    for one in sorted(found, key=lambda one: -one["mean"]):
        interval = seed_interval(one["seeds"])
        table.add_row(
            " -> ".join(one["ring"]),
            f"{100 * one['mean']:.1f}",
            "-" if interval is None else f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}",
            *(f"{100 * one['agents'][name]:.1f}" for name in (*STRONG, WEAK)),
            f"{100 * one['signal']:.1f}",
        )
    print_table(console, table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weak", type=Path, required=True, help="checkpoint of llama_weak")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--out", type=Path, default=Path("runs/rings"))
    arguments = parser.parse_args()
    console = Console()
    models = {name: shipped_model(name) for name in STRONG} | {WEAK: arguments.weak.resolve()}
    picked = pair(probe(recipe_of(rings()[0], models, 0, arguments.steps)))
    choice = from_the_first(picked.names)
    worth = {choice: picked.worth} | {
        from_the_first(names): value for names, value in picked.others
    }
    console.print(f"corl pair: {' -> '.join(choice)}", highlight=False)
    for warning in picked.warnings:
        console.print(f"warning: {warning}", highlight=False, markup=False, soft_wrap=True)
    found = []
    for ring in rings():
        by_seed = [
            trained(
                recipe_of(ring, models, seed, arguments.steps),
                arguments.out / f"{'-'.join(ring)}-seed{seed}",
                console,
            )
            for seed in arguments.seeds
        ]
        seeds = [fmean(reached.values()) for reached in by_seed]
        found.append(
            {
                "ring": ring,
                "mean": fmean(seeds),
                "seeds": seeds,
                "agents": {name: fmean(one[name] for one in by_seed) for name in models},
                "signal": worth[ring],
            }
        )
        write_atomically(arguments.out / "rings.json", json.dumps({"rings": found}, indent=1))
    show(console, found)
    ranked = [tuple(one["ring"]) for one in sorted(found, key=lambda one: -one["mean"])]
    console.print(
        f"the ring that corl pair picked came {ranked.index(choice) + 1} of {len(ranked)}",
        highlight=False,
    )


if __name__ == "__main__":
    main()
