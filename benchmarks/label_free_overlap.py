"""How near the label-free estimate of kappa comes to the labelled figure, over quickstart pairs.

    python benchmarks/label_free_overlap.py [MODEL_DIR ...] [--out DIR] [--samples 8]

Every pair of the four shipped models (and of further checkpoints of the same task, if named), and
each model with itself, on the 512 held-out problems at temperature 1. Completions are kept in
--out, so a second run only computes. About 8 s a model on one core.
"""

import argparse
import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.stats import spearmanr

from corl.config import PromptsConfig
from corl.config.loading import resolve_source
from corl.data.prompts import load_prompts
from corl.data.reading import read_label
from corl.diversity.answer_table import Answers
from corl.diversity.comparison import compare
from corl.diversity.label_free import FEWEST_ANSWERS, estimated_kappa, pool_of
from corl.diversity.overlap import kappa_of
from corl.diversity.probe import run_probe
from corl.diversity.probe_settings import ProbeSettings
from corl.diversity.sources import find_sources

SHIPPED = [
    f"corl:quickstart/models/{name}" for name in ("qwen3", "gpt_neox", "llama", "qwen3_twin")
]
PROBLEMS = PromptsConfig(file="corl:quickstart/prompts/heldout.jsonl")
POOLS = 30


def passes_of(out, models, samples):
    """[N][2] answers: each model's two passes."""
    settings = ProbeSettings(
        samples=samples, seeds=2, temperature=1.0, max_tokens=16, batch_rows=1024
    )
    run_probe(models, PROBLEMS, settings, out, console=Console())
    folders = [out / "completions" / source.name for source in find_sources(models)]
    first, second = (
        run_probe(
            [str(folder / take) for folder in folders], PROBLEMS, ProbeSettings(),
            out / "passes", console=Console(),
        ).probe.models
        for take in ("", "seed-1")
    )  # fmt: skip
    rows = load_prompts(
        PROBLEMS.model_copy(update={"file": resolve_source(PROBLEMS.file, Path.cwd())})
    ).rows
    named = [
        [Answers(source.name, source.model, one.keys) for one in pair]
        for source, *pair in zip(find_sources(models), first, second, strict=True)
    ]
    return named, rows


def cut(passes, samples):
    """The first samples of every problem only."""
    return [
        [Answers(one.name, one.model, tuple(keys[:samples] for keys in one.keys)) for one in pair]
        for pair in passes
    ]


def figures(passes, rows):
    """One row a pair: kappa, its estimate, agreement beyond chance, minority agreement, and P(same
    answer | both wrong)."""
    pairs = compare(passes, rows).pairs
    return pairs, np.array(
        [
            [
                pair.overlap.kappa,
                np.nan
                if pair.label_free.kappa_estimate is None
                else pair.label_free.kappa_estimate,
                pair.label_free.beyond_chance,
                np.nan
                if pair.label_free.minority_agreement is None
                else pair.label_free.minority_agreement,
                pair.overlap.same_wrong_answer / (1 - pair.overlap.at_least_one_right),
            ]
            for pair in pairs
        ]
    )


def shown(passes, rows):
    pairs, table = figures(passes, rows)
    print(
        "| pair | kappa [95 %] | estimate | agreement beyond chance | same answer, both wrong | "
        "minority agreement |\n|---|---|---|---|---|---|"
    )
    for pair, row in zip(pairs, table, strict=True):
        low, high = pair.overlap.kappa_interval
        other = pair.b.name if pair.seeds == (0, 0) else "itself"
        print(
            f"| `{pair.a.name}`, {other if other == 'itself' else f'`{other}`'} | {row[0]:.2f} "
            f"[{low:.2f}, {high:.2f}] | {row[1]:.2f} | {row[2]:.2f} | {row[4]:.2f} | {row[3]:.2f} |"
        )
    summary(table, f"{len(pairs)} pairs")


def summary(table, title):
    error = table[:, 1] - table[:, 0]
    ranks = [spearmanr(table[:, 0], table[:, column])[0] for column in (1, 2, 3)]
    print(
        f"\n{title}: estimate off by {np.abs(error).mean():.3f} on average, "
        f"{np.abs(error).max():.3f} at most, bias {error.mean():+.3f}; "
        f"rank correlation with kappa: estimate {ranks[0]:.2f}, "
        f"agreement {ranks[1]:.2f}, minority agreement {ranks[2]:.2f}; minority agreement off "
        f"from the labelled share by {np.abs(table[:, 3] - table[:, 4]).mean():.3f}\n"
    )


def by_size(passes, rows):
    """Errors by number of models and samples, over random pools of the models."""
    labels = [read_label(row).key for row in rows]
    chosen = random.Random(0)
    print("| models | samples | mean error | largest | bias |\n|---|---|---|---|---|")
    for num_models in (2, 3, 4, 6, 9):
        pools = list(combinations(passes, num_models))
        pools = chosen.sample(pools, min(POOLS, len(pools)))
        for samples in (1, 4, 8) if pools else ():
            errors = np.concatenate([errors_of(cut(pool, samples), labels) for pool in pools])
            print(
                f"| {num_models} | {samples} | {np.abs(errors).mean():.3f} | "
                f"{np.abs(errors).max():.3f} | {errors.mean():+.3f} |",
                flush=True,
            )


def errors_of(passes, labels):
    """Estimate minus labelled kappa for all pairs of a pool, first passes only."""
    models = [first for first, _ in passes]
    pool = replace(pool_of([one.tallies() for one in models]), answers_per_problem=FEWEST_ANSWERS)
    right = [np.mean(one.right(labels), axis=1) for one in models]
    errors = []
    for a, b in combinations(range(len(models)), 2):
        table = [right[a] @ right[b], right[a] @ (1 - right[b]), (1 - right[a]) @ right[b]]
        truth = kappa_of(np.array([*table, len(labels) - sum(table)]))
        estimate, _ = estimated_kappa(models[a].tallies(), models[b].tallies(), pool)
        errors.append(estimate - truth)
    return np.array(errors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", help="further checkpoints of the quickstart's task")
    parser.add_argument("--out", type=Path, default=Path("runs/label_free"))
    parser.add_argument("--samples", type=int, default=8)
    given = parser.parse_args()
    passes, rows = passes_of(given.out, [*SHIPPED, *given.models], given.samples)
    shown(passes[: len(SHIPPED)], rows)
    summary(figures(cut(passes[: len(SHIPPED)], 1), rows)[1], "the same with one sample")
    if given.models:
        shown(passes, rows)
    by_size(passes, rows)


if __name__ == "__main__":
    main()
