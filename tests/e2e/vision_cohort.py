"""A cohort of two vision-language families on prompts with pictures, as small as can be."""

import json
from pathlib import Path

from rich.console import Console

from corl.config import load_recipe
from corl.launch import resume_run, start_run
from corl.show import live_progress
from tiny_vision import build_vision_checkpoint, picture

PICTURES = ([], [(40, 30)], [(20, 50), (64, 64)], [(33, 17)], [(48, 48)], [(16, 40), (30, 30)])

_progress = live_progress(Console(quiet=True))


def write_prompts(folder: Path, *, field="images") -> Path:
    """Six rows with none, one or two pictures beside them."""
    rows = []
    for number, sizes in enumerate(PICTURES):
        names = []
        for place, size in enumerate(sizes):
            names.append(f"pictures/{number}-{place}.png")
            (folder / "pictures").mkdir(parents=True, exist_ok=True)
            picture(*size, seed=10 * number + place).save(folder / names[-1])
        rows.append({"id": f"r{number}", "prompt": f"count {number}", field: names, "answer": "3"})
    path = folder / "prompts.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def write_recipe(folder: Path, families=("llava", "qwen2_5_vl"), **changes) -> Path:
    """Checkpoints, prompts and the recipe that names them."""
    write_prompts(folder)
    agents = []
    for seed, family in enumerate(families):
        build_vision_checkpoint(folder / "models" / family, family, seed=seed, scale=16.0)
        agents.append({"name": family, "model": f"models/{family}"})
    recipe = {
        "agents": agents,
        "prompts": {"file": "prompts.jsonl", "images_field": "images", "kind": "math"},
        "batch": {"prompts": 3, "completions": 6},
        "sampling": {"max_tokens": 12},
        "votes": {"lenient": True, "ties": "hashed"},
        "optimizer": {"learning_rate": 1e-3},
        "checkpoint": {"every": 2},
        "steps": 4,
        "launch": "in_process",
        **changes,
    }
    path = folder / "recipe.yaml"
    path.write_text(json.dumps(recipe))
    return path


def train(recipe: Path, out: Path, *overrides: str):
    """Train it."""
    return start_run(load_recipe(recipe, list(overrides)), out, progress=_progress)


def resume(out: Path):
    """Continue it."""
    return resume_run(out, progress=_progress)
