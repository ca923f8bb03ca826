"""Two models on the same problems: the difference, paired by problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from corl.evaluation.paired import paired_comparison
from corl.evaluation.suite.scores import Score


def compare_models(scores: Mapping[str, Sequence[Score]]) -> list[dict[str, Any]]:
    """One entry a pair of models and benchmark that both answered: `a` minus `b`.

    Both sides are the benchmark's reported figure, problem by problem.
    """
    entries = []
    for (name_a, ours), (name_b, theirs) in combinations(scores.items(), 2):
        by_name = {one.benchmark: one for one in theirs}
        for one in ours:
            other = by_name.get(one.benchmark)
            if other is None or other.ids != one.ids:
                continue
            compared = paired_comparison(one.main.values, other.main.values)
            interval = compared.interval
            entries.append(
                {
                    "benchmark": one.benchmark,
                    "a": name_a,
                    "b": name_b,
                    "metric": [one.headline, other.headline],
                    "difference": round(compared.difference, 6),
                    "interval": None if interval is None else [round(x, 6) for x in interval],
                    "p_value": None if compared.p_value is None else round(compared.p_value, 6),
                    "problems": compared.n,
                }
            )
    return entries
