"""The demonstration: Co-RL on the shipped pair, and the study of all methods on the small families.

Both call what `corl train` calls. Seeds vary the noise of sampling and the order of prompts over
the same shipped weights.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from corl.config import PromptsConfig, Recipe, load_recipe
from corl.data.prompts import PromptRow, load_prompts
from corl.errors import CheckpointError
from corl.evaluation.accuracy import Accuracy, grade, label_keys
from corl.evaluation.completions import Asking
from corl.evaluation.intervals import seed_interval
from corl.launch import start_run
from corl.quickstart.settings import PACKAGE, make_models, models_to_make, quickstart_study
from corl.quickstart.task import prompts_path
from corl.quickstart.variants import SHIPPED
from corl.run.files import write_atomically
from corl.show import live_progress, print_table
from corl.study.files import alarms_of
from corl.study.measure import Measurer, Question
from corl.study.run import StudyOutcome, run_study
from corl.study.table import shown_interval

if TYPE_CHECKING:
    from collections.abc import Callable

_METRICS = ("avg_at_8", "greedy", "maj_at_8", "pass_at_8")

Row = dict[str, Any]


def run_quickstart(
    seeds: Sequence[int],
    out: Path,
    *,
    console: Console,
    pretrain: bool = False,
    steps: int | None = None,
) -> list[Row]:
    """Train the pair once per seed, print the table, write `OUT/results.json`.

    Raises CheckpointError where a run of the study was stopped before its end.
    """
    if pretrain:
        _make(SHIPPED, out / "models", console)
    overrides = [] if steps is None else [f"steps={steps}"]
    recipe = load_recipe(PACKAGE / "recipe.yaml", overrides)
    if pretrain:
        models = (out / "models").resolve()
        overrides += [f"agents.{agent.name}.model={models / agent.name}" for agent in recipe.agents]
        recipe = load_recipe(PACKAGE / "recipe.yaml", overrides)
    rows = held_out_rows()
    console.print(
        f"Co-RL on {len(recipe.agents)} small models of different families, {recipe.steps} steps, "
        f"{len(seeds)} seeds, {len(rows)} held-out problems",
        highlight=False,
    )
    before = _measure(recipe, {agent.name: agent.model for agent in recipe.agents}, rows)
    results = [_row("base", seeds[0], before, before, run=None)]
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
        after = _measure(recipe, {name: outcome.run.final(name) for name in before}, rows)
        results.append(_row("peer", seed, before, after, run=run))
        write_atomically(out / "results.json", json.dumps({"rows": results}, indent=1))
    print_table(console, _table(results))
    console.print(f"figures: {out / 'results.json'}", highlight=False, soft_wrap=True)
    return results


def run_quickstart_study(
    seeds: Sequence[int],
    out: Path,
    *,
    console: Console,
    pretrain: bool = False,
    is_all: bool = False,
    steps: int | None = None,
) -> StudyOutcome:
    """Run every method on the small families; what is done already is not run again.

    pretrain: make the shipped models again too. is_all: the long study, whose other models are
    pretrained first where OUT/models does not hold them yet.
    """
    models = out / "models"
    study = quickstart_study(
        seeds=seeds,
        models=models,
        is_all=is_all,
        pretrained=SHIPPED if pretrain else (),
        steps=steps,
    )
    num_pairs = len(list(study.pairs()))
    console.print(
        f"{study.name}: {num_pairs} pairs of method and setting, {len(seeds)} seeds. "
        "Seeds vary sampling and the order of prompts; the untrained weights are the same.",
        highlight=False,
        soft_wrap=True,
    )
    _make(models_to_make(study, models), models, console)
    return run_study(study, out, console=console)


def held_out_rows() -> tuple[PromptRow, ...]:
    """The labelled problems that no model was trained on."""
    return load_prompts(PromptsConfig(file=str(prompts_path("heldout")))).rows


def _make(names: Sequence[str], models: Path, console: Console) -> None:
    if names:
        models.mkdir(parents=True, exist_ok=True)
        make_models(names, models, progress=_pretraining_progress(console))


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
    trained = [row for row in results if row["method"] != "base"]
    table = Table(title="accuracy on held-out problems, %", box=None, pad_edge=False)
    for title in ("agent", "metric", "before", "after", "gain", "95 % interval", "seeds"):
        table.add_column(title, justify="left" if title in ("agent", "metric") else "right")
    for index, agent in enumerate(trained[0]["agents"]):
        for metric in _METRICS:
            before = agent["before"][metric]
            after = [row["agents"][index]["after"][metric] for row in trained]
            gains = [value - before for value in after]
            table.add_row(
                agent["name"],
                metric.replace("_at_", "@"),
                f"{100 * before:.1f}",
                f"{100 * fmean(after):.1f}",
                f"{100 * fmean(gains):+.1f}",
                shown_interval(seed_interval(gains)),
                " ".join(f"{100 * gain:+.1f}" for gain in gains),
            )
    return table
