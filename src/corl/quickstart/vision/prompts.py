"""Prompt files of pictures: chains of four steps, each picture inside its row as a data URL.

A row is {"id", "prompt", "image", "answer", "chain"}; `chain` is what the picture shows, for a
person who looks at the file, and no command reads it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from corl.quickstart.task import Problem, distinct_problems
from corl.quickstart.vision.families import SOLVE
from corl.quickstart.vision.glyphs import as_data_url, draw

NUM_STEPS = 4
TRAIN_ROWS = 2048
HELDOUT_ROWS = 512
PROMPT_SEED = 40


def write_prompt_files(directory: Path) -> None:
    """Write `train.jsonl` and `heldout.jsonl`; no chain is in both."""
    stream = distinct_problems(PROMPT_SEED, num_steps=NUM_STEPS)
    heldout = [next(stream) for _ in range(HELDOUT_ROWS)]
    train = [next(stream) for _ in range(TRAIN_ROWS)]
    directory.mkdir(parents=True, exist_ok=True)
    for name, problems in (("heldout", heldout), ("train", train)):
        _write_rows(directory / f"{name}.jsonl", name, problems)


def prompts_path(name: str) -> Path:
    """Where the shipped prompt file `name` (`train`, `heldout`) lies."""
    return Path(str(files("corl.quickstart.vision") / "prompts" / f"{name}.jsonl"))


def shipped_chains() -> set[str]:
    """Every chain of the shipped files, as `Problem.prompt`: none may be pretrained on."""
    return {
        f"{json.loads(line)['chain']}="
        for name in ("train", "heldout")
        for line in prompts_path(name).read_text(encoding="utf-8").splitlines()
    }


def _write_rows(path: Path, name: str, problems: Iterable[Problem]) -> None:
    rows = [
        json.dumps(
            {
                "id": f"{name}-{index:04d}",
                "prompt": SOLVE,
                "image": as_data_url(draw(problem.chain, random.Random(f"{name}-{index}"))),
                "answer": problem.answer,
                "chain": problem.chain,
            }
        )
        for index, problem in enumerate(problems)
    ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
