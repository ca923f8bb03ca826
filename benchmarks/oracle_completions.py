"""Gold solutions as completions, through the whole of `corl eval --completions`.

Every row's own gold must be right, and its neighbour's (row i gets the answer of row i + 1) wrong,
unless the two answers are equal: then they share a key. Completions are boxed golds, worked
solutions where the data has them, and for HumanEval the canonical bodies and whole functions.

    python benchmarks/oracle_completions.py --data FOLDER [--limit N]

FOLDER holds gsm8k_test.jsonl, math500.jsonl, amc_83.jsonl and humaneval.jsonl.gz, fields as
published. Exit code 1 where a gold is not right, or a different answer is.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from corl.evaluation.benchmarks import Item, load_benchmark, load_items
from corl.evaluation.benchmarks.records import read_records
from corl.evaluation.grading import keys_agree
from corl.evaluation.samples import Sample
from corl.evaluation.suite import EvalSettings, run_suite

FILES = {
    "gsm8k": "gsm8k_test.jsonl",
    "math500": "math500.jsonl",
    "amc": "amc_83.jsonl",
    "humaneval": "humaneval.jsonl.gz",
}


def dresses(name: str, file: Path, items: Sequence[Item]) -> dict[str, list[str]]:
    """The golds of a benchmark as texts that a model could have written."""
    records = list(read_records(file))[: len(items)]
    if name == "humaneval":
        bodies = [str(record["canonical_solution"]) for record in records]
        whole = [
            f"Sure.\n```python\n{i.problem}{b}\n```" for i, b in zip(items, bodies, strict=True)
        ]
        return {"canonical body": bodies, "whole function": whole}
    boxed = [f"So the answer is $\\boxed{{{item.answer}}}$." for item in items]
    if name == "gsm8k":
        return {"boxed": boxed, "worked solution": [str(record["answer"]) for record in records]}
    return {"boxed": boxed, "bare": [str(item.answer) for item in items]}


def right_rows(
    named: str, items: Sequence[Item], texts: Sequence[str], limit: int | None
) -> list[bool]:
    """Which rows `corl eval --completions` finds right."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "saved.jsonl"
        saved.write_text(
            "".join(
                json.dumps(Sample(item.id, 0, text).to_json()) + "\n"
                for item, text in zip(items, texts, strict=True)
            )
        )
        outcome = run_suite(
            [], [named], EvalSettings(limit=limit), Path(folder) / "out",
            completions=saved, console=Console(quiet=True),
        )  # fmt: skip
    ((score,),) = outcome.scores.values()
    return [value == 1.0 for value in score.main.values]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="the first so many rows")
    arguments = parser.parse_args()
    failures = 0
    print(f"{'benchmark':<10} {'completions':<16} {'own gold':>11} {'neighbour':>10} "
          f"{'equal':>6} {'seconds':>8}")  # fmt: skip
    for name, file in FILES.items():
        path = arguments.data / file
        items = load_items(load_benchmark(name), path, limit=arguments.limit)
        for dress, texts in dresses(name, path, items).items():
            start = time.monotonic()
            own = right_rows(f"{name}={path}", items, texts, arguments.limit)
            shifted = [*texts[1:], texts[0]]
            other = right_rows(f"{name}={path}", items, shifted, arguments.limit)
            took = time.monotonic() - start
            golds = [item.answer or item.id for item in items]
            equal = [
                one == next_one or keys_agree(one, next_one) is True
                for one, next_one in zip(golds, [*golds[1:], golds[0]], strict=True)
            ]
            wrong_way = [
                n for n, (found, same) in enumerate(zip(other, equal, strict=True)) if found != same
            ]
            failures += own.count(False) + len(wrong_way)
            print(f"{name:<10} {dress:<16} {sum(own):>5}/{len(own):<5} {sum(other):>10} "
                  f"{sum(equal):>6} {took:>8.1f}", flush=True)  # fmt: skip
            for row in [n for n, found in enumerate(own) if not found][:5]:
                print(f"  row {items[row].id}: its own gold {golds[row]!r} is not right")
            for row in wrong_way[:5]:
                said = "right" if other[row] else "not right"
                print(f"  row {items[row].id}: gold {golds[row]!r}, its neighbour's is {said}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
