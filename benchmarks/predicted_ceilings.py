"""Do the ceilings that `corl basin` predicts foretell what training reaches? Held against a study.

Asks the untrained models of a quickstart study all held-out problems, 8 samples each, predicts
every agent of its peer and self-vote cells, and compares with what the cells reached. Works on
whatever cells are done.

    corl quickstart --all --out runs/quickstart_all
    python benchmarks/predicted_ceilings.py runs/quickstart_all --out predicted_ceilings.json
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from corl.config import load_recipe
from corl.data.reading import read_completion
from corl.diversity.basins import Prediction, predict_ring, predict_self
from corl.diversity.counts import Probed, probe_of
from corl.evaluation.accuracy import label_keys
from corl.evaluation.completions import Asking, complete
from corl.evaluation.intervals import seed_interval
from corl.quickstart.demonstration import held_out_rows
from corl.show import print_table

METHODS = ("peer", "self_vote")
SAMPLES = 8
# Beside no figure of training: these draws were used by no measurement of the study.
PROBE_SEED = 1000


@dataclass
class Outcome:
    """One agent of one setting: what was predicted, and what each seed reached."""

    method: str
    setting: str
    prediction: Prediction
    kappa: float
    teacher_accuracy: float
    before: float
    reached: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return fmean(self.reached)

    @property
    def gain(self) -> float:
        return self.mean - self.before


def done_cells(study: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Rows of `results.json` by method and setting."""
    rows = json.loads((study / "results.json").read_text(encoding="utf-8"))["rows"]
    cells = defaultdict(list)
    for row in rows:
        if row["method"] in METHODS and row["status"] == "done":
            cells[row["method"], row["setting"]].append(row)
    return dict(cells)


def probe(cells: dict[tuple[str, str], list[dict[str, Any]]], study: Path) -> Probed:
    """Every untrained model of the cells, asked as its recipe trained it."""
    agents: dict[str, tuple[str, Asking]] = {}
    for group in cells.values():
        recipe = load_recipe(study / "cells" / Path(group[0]["run"]).name / "recipe.yaml")
        for agent in recipe.agents:
            agents.setdefault(agent.name, (agent.model, Asking.of(recipe, agent)))
    return asked(agents, seed=PROBE_SEED)


def asked(agents: Mapping[str, tuple[str, Asking]], *, seed: int) -> Probed:
    """Models by name, each with 8 samples of every held-out problem and noise of its own."""
    from transformers.utils import logging as transformers_logging

    from corl.policy import load_policy

    transformers_logging.disable_progress_bar()
    rows = held_out_rows()
    keys = label_keys(rows)
    models = []
    for number, (name, (model, asking)) in enumerate(sorted(agents.items())):
        policy = load_policy(Path(model), device="cpu")
        drawn = complete(policy, rows, asking, completions=SAMPLES, seed=seed + number)
        problems = []
        for row, key, group in zip(rows, keys, drawn, strict=True):
            read = [read_completion(one.text, row, truncated=one.truncated) for one in group]
            counts = Counter(answer.key for answer in read if answer is not None)
            problems.append(
                {"id": row.id, "right": counts.get(key or "", 0), "samples": SAMPLES,
                 "answers": dict(counts), "label": key}
            )  # fmt: skip
        models.append({"name": name, "model": model, "problems": problems})
    return probe_of(models)


def outcomes(cells: dict[tuple[str, str], list[dict[str, Any]]], probed: Probed) -> list[Outcome]:
    """One a directed pairing; self-votes once a model and setting."""
    found = []
    for (method, setting), group in cells.items():
        names = [agent["name"] for agent in group[0]["agents"]]
        predictions = (
            predict_ring(probed, names)
            if method == "peer"
            else [predict_self(probed, name) for name in names]
        )
        for index, prediction in enumerate(predictions):
            found.append(
                Outcome(
                    method,
                    setting,
                    prediction,
                    kappa(probed, prediction.pupil, prediction.teacher),
                    probed.accuracy(prediction.teacher),
                    group[0]["agents"][index]["before"]["avg_at_8"],
                    [row["agents"][index]["after"]["avg_at_8"] for row in group],
                )
            )
    return found


def kappa(probed: Probed, pupil: str, teacher: str) -> float:
    """Cohen's kappa of right and wrong, by each model's first sample in expectation.

    Means over all pairs of samples: p_both = mean p_A p_B. A model with itself: distinct samples.
    """
    shares = [
        np.array([
            tally.counts.get(label, 0) / tally.samples
            for tally, label in zip(probed.model(name).tallies, probed.labels, strict=True)
        ])
        for name in (pupil, teacher)
    ]  # fmt: skip
    both = shares[0] * shares[1]
    if pupil == teacher:
        right = shares[0] * SAMPLES
        both = right * (right - 1) / (SAMPLES * (SAMPLES - 1))
    a, b = (float(one.mean()) for one in shares)
    agreement = 1 - a - b + 2 * float(both.mean())
    chance = a * b + (1 - a) * (1 - b)
    return (agreement - chance) / (1 - chance)


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Rank correlation, ties at their mean rank."""
    return float(np.corrcoef(_ranks(left), _ranks(right))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray[Any, Any]:
    array = np.asarray(values, dtype=float)
    return (array[:, None] > array).sum(1) + ((array[:, None] == array).sum(1) - 1) / 2


def show(console: Console, found: Sequence[Outcome]) -> None:
    table = Table(title="avg@8, %: predicted and reached", box=None, pad_edge=False)
    for title in ("method", "setting", "pupil", "teacher"):
        table.add_column(title)
    for title in ("kappa", "signal", "before", "predicted", "interval", "reached", "over seeds",
                  "miss", "seeds"):  # fmt: skip
        table.add_column(title, justify="right")
    for one in found:
        p, seeds = one.prediction, seed_interval(one.reached)
        table.add_row(
            one.method, one.setting, p.pupil, p.teacher, f"{one.kappa:.2f}",
            f"{100 * p.signal:.0f}", f"{100 * one.before:.1f}", f"{100 * p.ceiling:.1f}",
            f"{100 * p.interval[0]:.0f} to {100 * p.interval[1]:.0f}", f"{100 * one.mean:.1f}",
            "-" if seeds is None else f"{100 * seeds[0]:.1f} to {100 * seeds[1]:.1f}",
            f"{100 * (p.ceiling - one.mean):+.1f}", str(len(one.reached)),
        )  # fmt: skip
    print_table(console, table)


def correlations(found: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """Spearman's rho of each figure known before training with accuracy and gain after it."""
    figures = {
        "predicted ceiling": [one.prediction.ceiling for one in found],
        "predicted gain": [one.prediction.gain for one in found],
        "signal": [one.prediction.signal for one in found],
        "kappa": [one.kappa for one in found],
        "1 - kappa": [1 - one.kappa for one in found],
        "teacher's accuracy": [one.teacher_accuracy for one in found],
        "(1 - kappa) x teacher's": [(1 - one.kappa) * one.teacher_accuracy for one in found],
    }
    return {
        name: {
            "reached": round(spearman(values, [one.mean for one in found]), 3),
            "gain": round(spearman(values, [one.gain for one in found]), 3),
        }
        for name, values in figures.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    console = Console()
    cells = done_cells(arguments.study)
    found = outcomes(cells, probe(cells, arguments.study))
    show(console, found)
    peers = [one for one in found if one.method == "peer"]
    groups = {
        "peer and self-vote": found,
        "peer": peers,
        # One setting of collapse can carry a rank correlation by itself.
        "peer, without the weak teacher": [one for one in peers if one.setting != "weak_teacher"],
    }
    told = {title: correlations(group) for title, group in groups.items()}
    for title, figures in told.items():
        console.print(f"\nSpearman's rho, {title} ({len(groups[title])})", highlight=False)
        table = Table(box=None, pad_edge=False)
        for heading in ("known before", "reached", "gain"):
            table.add_column(heading, justify="left" if heading == "known before" else "right")
        for name, row in figures.items():
            table.add_row(name, f"{row['reached']:+.2f}", f"{row['gain']:+.2f}")
        print_table(console, table)
    errors = [abs(one.prediction.ceiling - one.mean) for one in found]
    console.print(f"mean absolute miss: {100 * fmean(errors):.1f} points", highlight=False)
    if arguments.out:
        rows = [
            {"method": one.method, "setting": one.setting, "pupil": one.prediction.pupil,
             "teacher": one.prediction.teacher, "kappa": one.kappa,
             "signal": one.prediction.signal, "before": one.before,
             "predicted": one.prediction.ceiling, "interval": one.prediction.interval,
             "reached": one.reached}
            for one in found
        ]  # fmt: skip
        arguments.out.write_text(json.dumps({"rows": rows, "spearman": told}, indent=1))


if __name__ == "__main__":
    main()
