"""Small real runs: the shipped models on the shipped task, a few steps at a time."""

import json
import shutil
from pathlib import Path

from rich.console import Console

from corl.config import load_recipe
from corl.launch import resume_run, start_run
from corl.show import live_progress

RECIPE = Path(__file__).parents[2] / "recipes" / "quickstart.yaml"
SMALL = ("batch.prompts=4", "batch.completions=4", "checkpoint.every=2", "rollout.save_every=2")
THIRD = "agents=[{name: qwen3, model: 'corl:quickstart/models/qwen3'}, \
{name: gpt_neox, model: 'corl:quickstart/models/gpt_neox'}, \
{name: llama, model: 'corl:quickstart/models/llama'}]"

_progress = live_progress(Console(quiet=True))


def train(out, *overrides, launch="in_process"):
    """Train the quickstart's recipe with a small batch."""
    recipe = load_recipe(RECIPE, [*SMALL, f"launch={launch}", *overrides])
    return start_run(recipe, out, progress=_progress)


def resume(out):
    """Continue a run."""
    return resume_run(out, progress=_progress)


def unfinished(run, copy):
    """A copy of a run as if it had ended after its newest checkpoint."""
    shutil.copytree(run, copy)
    for final in Path(copy).glob("agents/*/final"):
        shutil.rmtree(final)
    return copy


def metrics(run, *, timeless=True):
    """The lines of `metrics.jsonl`, without what depends on the clock."""
    records = [json.loads(line) for line in (Path(run) / "metrics.jsonl").read_text().splitlines()]
    if timeless:
        for record in records:
            del record["time"]
    return records


def final_weights(run):
    """Bytes of every agent's final weights."""
    return {
        path.parent.parent.name: path.read_bytes()
        for path in sorted(Path(run).glob("agents/*/final/*.safetensors"))
    }
