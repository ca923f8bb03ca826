"""Training prompts held against benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from corl.answers import canonical
from corl.config import PromptsConfig
from corl.data.prompts import PromptRow, load_prompts
from corl.data.reading import read_label
from corl.evaluation.benchmarks import Item, choose, load_items
from corl.evaluation.contamination import SIMILARITY, Contamination, Problem, overlap


def contamination_of(
    prompts: PromptsConfig, benchmarks: Sequence[str], *, similarity: float = SIMILARITY
) -> dict[str, Contamination]:
    """What a prompt file shares with each benchmark (NAME=FILE), by the benchmark's name.

    Raises RecipeError or PromptError for what cannot be read.
    """
    chosen = choose(list(benchmarks))
    items = {one.benchmark.name: load_items(one.benchmark, one.data) for one in chosen}
    rows = load_prompts(prompts).rows
    return {
        name: overlap(training_problems(rows), benchmark_problems(of_one), similarity=similarity)
        for name, of_one in items.items()
    }


def training_problems(rows: Iterable[PromptRow]) -> Iterator[Problem]:
    """Rows with the keys of their labels; programs have none."""
    for row in rows:
        answer = None if row.kind == "code" else read_label(row)
        yield Problem(row.id, row.text, None if answer is None else answer.key)


def benchmark_problems(items: Iterable[Item]) -> list[Problem]:
    """Items with the keys of their golds, as the data states the problem."""
    return [Problem(item.id, item.problem, _key(item)) for item in items]


def _key(item: Item) -> str | None:
    if item.answer is None or item.kind == "code":
        return None
    answer = canonical(item.answer, item.kind, choices=item.choices)
    return None if answer is None else answer.key
