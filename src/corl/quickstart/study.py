"""The demonstration: Co-RL on the shipped pair, measured before and after on held-out problems.

It calls what `corl train` calls, once per seed. Seeds vary the noise of
sampling and the order of prompts over the same shipped weights.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from corl.config import PromptsConfig, Recipe, load_recipe
from corl.data.prompts import PromptRow, load_prompts
from corl.errors import CheckpointError
from corl.evaluation.accuracy import Accuracy, measure_accuracy
from corl.evaluation.intervals import seed_interval
from corl.launch import start_run
from corl.policy import load_policy
from corl.quickstart.pretrain import pretrain_all
from corl.run.files import write_atomically
from corl.show import live_progress

_PACKAGE = Path(str(files("corl.quickstart")))
_METRICS = ("avg_at_8", "greedy", "maj_at_8", "pass_at_8")

Row = dict[str, Any]


def run_quickstart(
    seeds: Sequence[int], out: Path, *, console: Console, pretrain: bool = False
) -> list[Row]:
    """Train the pair once per seed, print the table, write `OUT/results.json`.

    Raises CheckpointError where a run of the study was stopped before its end.
    """
    overrides = _pretrained(out, console) if pretrain else []
    recipe = load_recipe(_PACKAGE / "recipe.yaml", overrides)
    rows = held_out_rows()
    console.print(
        f"Co-RL on {len(recipe.agents)} small models of different families, {recipe.steps} steps, "
        f"{len(seeds)} seeds, {len(rows)} held-out problems",
        highlight=False,
    )
    before = {agent.name: _measure(agent.model, rows, recipe) for agent in recipe.agents}
    results = [_row("base", seeds[0], before, before)]
    for seed in seeds:
        run = out / f"peer-different_family-seed{seed}"
        shutil.rmtree(run, ignore_errors=True)
        outcome = start_run(
            recipe.model_copy(update={"seed": seed, "name": f"seed {seed}"}),
            run,
            progress=live_progress(console),
        )
        if not outcome.is_finished:
            raise CheckpointError(f"the quickstart was stopped; its unfinished run is {run}")
        after = {name: _measure(outcome.run.final(name), rows, recipe) for name in before}
        results.append(_row("peer", seed, before, after))
        write_atomically(out / "results.json", json.dumps({"rows": results}, indent=1))
    _print_table(console, results)
    console.print(f"figures: {out / 'results.json'}", highlight=False, soft_wrap=True)
    return results


def held_out_rows() -> tuple[PromptRow, ...]:
    """The labelled problems that no model was trained on."""
    return load_prompts(PromptsConfig(file=str(_PACKAGE / "prompts" / "heldout.jsonl"))).rows


def _pretrained(out: Path, console: Console) -> list[str]:
    """Make the models again; return the overrides that use them."""
    directories = pretrain_all(out / "models", progress=_pretraining_progress(console))
    by_name = {directory.name: directory.resolve() for directory in directories}
    recipe = load_recipe(_PACKAGE / "recipe.yaml")
    return [f"agents.{agent.name}.model={by_name[agent.name]}" for agent in recipe.agents]


def _pretraining_progress(console: Console) -> Any:
    def show(name: str, done: int, steps: int, loss: float) -> None:
        if done % 50 == 0 or done == steps:
            console.print(f"pretraining {name}: step {done}/{steps}, loss {loss:.3f}")

    return show


def _measure(model: str | Path, rows: Sequence[PromptRow], recipe: Recipe) -> Accuracy:
    policy = load_policy(model, device="cpu")
    return measure_accuracy(policy, rows, max_tokens=recipe.sampling.max_tokens)


def _row(method: str, seed: int, before: dict[str, Accuracy], after: dict[str, Accuracy]) -> Row:
    return {
        "method": method,
        "setting": "different_family",
        "seed": seed,
        "agents": [
            {"name": name, "before": before[name].to_json(), "after": after[name].to_json()}
            for name in before
        ],
    }


def _print_table(console: Console, results: Sequence[Row]) -> None:
    trained = [row for row in results if row["method"] != "base"]
    table = Table(title="accuracy on held-out problems, %", box=None, pad_edge=False)
    for title in ("agent", "metric", "before", "after", "gain", "95 % interval", "seeds"):
        table.add_column(title, justify="left" if title in ("agent", "metric") else "right")
    for index, agent in enumerate(trained[0]["agents"]):
        for metric in _METRICS:
            before = agent["before"][metric]
            after = [row["agents"][index]["after"][metric] for row in trained]
            gains = [value - before for value in after]
            interval = seed_interval(gains)
            table.add_row(
                agent["name"],
                metric.replace("_at_", "@"),
                f"{100 * before:.1f}",
                f"{100 * fmean(after):.1f}",
                f"{100 * fmean(gains):+.1f}",
                "-"
                if interval is None
                else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}",
                " ".join(f"{100 * gain:+.1f}" for gain in gains),
            )
    console.print(table)


def _shown(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}"
