"""What graded samples depend on, as plain JSON: `settings.json` beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from corl.answers import POLICY_VERSION
from corl.evaluation.benchmarks import Benchmark, Item
from corl.evaluation.samples import Sample

FORMAT = 1
"""Version of the files that an evaluation writes."""


def graded_by(benchmark: Benchmark, items: Sequence[Item]) -> dict[str, Any]:
    """The benchmark's part: its rows as they are asked and graded."""
    digest = hashlib.sha256()
    for item in items:
        row = [item.id, item.prompt, item.plain, item.answer, item.choices, dict(item.extra)]
        digest.update(json.dumps(row, default=str).encode())
    return {
        "format": FORMAT,
        "benchmark": benchmark.name,
        "grader": [benchmark.grader, benchmark.answer.model_dump(mode="json")],
        "plain_stop": list(benchmark.plain_stop),
        "rows": len(items),
        "items": digest.hexdigest(),
        "answer_rules": POLICY_VERSION,
    }


def digest_of(groups: Sequence[Sequence[Sample]]) -> str:
    """SHA-256 of completions, [P][K]."""
    content = json.dumps([[one.to_json() for one in group] for group in groups])
    return hashlib.sha256(content.encode()).hexdigest()
