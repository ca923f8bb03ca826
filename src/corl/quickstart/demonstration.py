"""The demonstration: Co-RL on a shipped pair, before and after, on held-out problems.

One in text, and its sibling in pictures, which trains the same pair by its own votes as well. Both
call what `corl train` calls. Seeds vary the noise of sampling and the order of prompts over the
same shipped weights.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from corl.config import PromptsConfig, Recipe, load_recipe
from corl.data.prompts import PromptRow, load_prompts
from corl.errors import CheckpointError
from corl.evaluation.accuracy import Accuracy, grade, label_keys
from corl.evaluation.completions import Asking
from corl.evaluation.intervals import seed_interval
from corl.launch import start_run
from corl.quickstart.settings import PACKAGE, Pretrain, make_models, pretrain_text, pretrain_vision
from corl.quickstart.task import prompts_path
from corl.quickstart.vision.prompts import prompts_path as picture_prompts_path
from corl.run.files import write_atomically
from corl.show import live_progress, print_table
from corl.study.files import alarms_of
from corl.study.measure import Measurer, Question
from corl.study.table import shown_interval

_METRICS = ("avg_at_8", "greedy", "maj_at_8", "pass_at_8")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A shipped pair, what it trains on, and what it is measured on."""

    recipe: Path
    held_out: PromptsConfig
    methods: tuple[str, ...]
    """Each trains the pair once per seed."""

    says: str
    pretrain: Pretrain
    """Makes one of the pair's models again."""


TEXT = Demonstration(
    recipe=PACKAGE / "recipe.yaml",
    held_out=PromptsConfig(file=str(prompts_path("heldout"))),
    methods=("peer",),
    says="small models of different families",
    pretrain=pretrain_text,
)
VISION = Demonstration(
    recipe=PACKAGE / "vision" / "recipe.yaml",
    held_out=PromptsConfig(file=str(picture_prompts_path("heldout")), images_field="image"),
    methods=("peer", "self_vote"),
    says="small vision-language models of different families",
    pretrain=pretrain_vision,
)


def run_quickstart(
    seeds: Sequence[int],
    out: Path,
    *,
    console: Console,
    demonstration: Demonstration = TEXT,
    pretrain: bool = False,
    steps: int | None = None,
) -> list[Row]:
    """Train the pair once per method and seed, print the table, write `OUT/results.json`.

    Raises CheckpointError where a run was stopped before its end.
    """
    recipe = load_recipe(demonstration.recipe, [] if steps is None else [f"steps={steps}"])
    if pretrain:
        recipe = _made_again(recipe, demonstration, out / "models", console)
    rows = held_out_rows(demonstration)
    console.print(
        f"Co-RL on {len(recipe.agents)} {demonstration.says}, {recipe.steps} steps, "
        f"{len(seeds)} seeds, {len(rows)} held-out problems",
        highlight=False,
    )
    before = _measure(recipe, {agent.name: agent.model for agent in recipe.agents}, rows)
    results = [_row("base", seeds[0], before, before, run=None)]
    for method in demonstration.methods:
        for seed in seeds:
            run = out / f"{method}-different_family-seed{seed}"
            after = _trained(recipe, method, seed, run, before, rows, console)
            results.append(_row(method, seed, before, after, run=run))
            write_atomically(out / "results.json", json.dumps({"rows": results}, indent=1))
    print_table(console, _table(results))
    console.print(f"figures: {out / 'results.json'}", highlight=False, soft_wrap=True)
    return results


def held_out_rows(demonstration: Demonstration = TEXT) -> tuple[PromptRow, ...]:
    """The labelled problems that no model was trained on."""
    return load_prompts(demonstration.held_out).rows


def make_with_progress(
    demonstration: Demonstration, names: Sequence[str], models: Path, console: Console
) -> None:
    """Pretrain models of that kind by name into `models`, a line every hundred steps."""
    if names:
        models.mkdir(parents=True, exist_ok=True)
        make_models(
            names, models, pretrain=demonstration.pretrain, progress=_pretraining_progress(console)
        )


def _made_again(
    recipe: Recipe, demonstration: Demonstration, models: Path, console: Console
) -> Recipe:
    """The recipe on models that are pretrained first."""
    make_with_progress(demonstration, [agent.name for agent in recipe.agents], models, console)
    agents = [
        agent.model_copy(update={"model": str(models.resolve() / agent.name)})
        for agent in recipe.agents
    ]
    return recipe.model_copy(update={"agents": tuple(agents)})


def _trained(
    recipe: Recipe,
    method: str,
    seed: int,
    run: Path,
    before: Mapping[str, Accuracy],
    rows: Sequence[PromptRow],
    console: Console,
) -> dict[str, Accuracy]:
    shutil.rmtree(run, ignore_errors=True)
    supervision = recipe.supervision.model_copy(update={"method": method})
    outcome = start_run(
        recipe.model_copy(
            update={"seed": seed, "name": f"{method}, seed {seed}", "supervision": supervision}
        ),
        run,
        progress=live_progress(console),
    )
    if not outcome.is_finished:
        raise CheckpointError(f"the quickstart was stopped; its unfinished run is {run}")
    return _measure(recipe, {name: outcome.run.final(name) for name in before}, rows)


def _pretraining_progress(console: Console) -> Callable[[str, int, int, float], None]:
    def show(name: str, done: int, steps: int, loss: float) -> None:
        if done % 100 == 0 or done == steps:
            console.print(f"pretraining {name}: step {done}/{steps}, loss {loss:.3f}")

    return show


def _measure(
    recipe: Recipe, models: Mapping[str, str | Path], rows: Sequence[PromptRow]
) -> dict[str, Accuracy]:
    """Accuracy of each agent; in this process, for two workers would load torch for seconds."""
    questions = [
        Question(model=str(models[agent.name]), asking=Asking.of(recipe, agent), device="cpu")
        for agent in recipe.agents
    ]
    with Measurer(workers=1) as measurer:
        sheets = measurer.sheets(questions, rows)
    true_keys = label_keys(rows)
    return {
        agent.name: grade(sheet, true_keys)
        for agent, sheet in zip(recipe.agents, sheets, strict=True)
    }


def _row(
    method: str,
    seed: int,
    before: Mapping[str, Accuracy],
    after: Mapping[str, Accuracy],
    *,
    run: Path | None,
) -> Row:
    return {
        "method": method,
        "setting": "different_family",
        "seed": seed,
        "run": None if run is None else run.name,
        "status": "done",
        "error": None,
        "agents": [
            {"name": name, "before": before[name].to_json(), "after": after[name].to_json()}
            for name in before
        ],
        "alarms": [] if run is None else alarms_of(run),
    }


def _table(results: Sequence[Row]) -> Table:
    methods = list(dict.fromkeys(row["method"] for row in results if row["method"] != "base"))
    names = ("method",) if len(methods) > 1 else ()
    table = Table(title="accuracy on held-out problems, %", box=None, pad_edge=False)
    for title in (*names, "agent", "metric"):
        table.add_column(title)
    for title in ("before", "after", "gain", "95 % interval", "seeds"):
        table.add_column(title, justify="right")
    for method in methods:
        _add_method(table, method, [row for row in results if row["method"] == method], names)
    return table


def _add_method(table: Table, method: str, trained: list[Row], names: tuple[str, ...]) -> None:
    for index, agent in enumerate(trained[0]["agents"]):
        for metric in _METRICS:
            before = agent["before"][metric]
            after = [row["agents"][index]["after"][metric] for row in trained]
            gains = [value - before for value in after]
            table.add_row(
                *(method for _ in names),
                agent["name"],
                metric.replace("_at_", "@"),
                f"{100 * before:.1f}",
                f"{100 * fmean(after):.1f}",
                f"{100 * fmean(gains):+.1f}",
                shown_interval(seed_interval(gains)),
                " ".join(f"{100 * gain:+.1f}" for gain in gains),
            )
