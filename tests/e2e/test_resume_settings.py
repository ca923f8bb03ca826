"""A resumed run is the run that was started: its facts, its reference, and an early stop."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from corl.config import load_recipe
from corl.errors import CheckpointError
from corl.launch import start_run
from corl.run.progress import Progress
from e2e.cohorts import RECIPE, final_weights, metrics, resume, train

TINY = ("batch.prompts=2", "batch.completions=2", "checkpoint.every=1", "prompts.limit=32")
NAMES = ("qwen3", "gpt_neox")


def cut_back(run, *, facts=None):
    """As after a crash at the last step; `facts` change what the run remembers of its start."""
    for name in NAMES:
        shutil.rmtree(run / "agents" / name / "final")
    file = run / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **(facts or {})}))


@pytest.fixture
def two_steps(tmp_path):
    train(tmp_path / "run", *TINY, "steps=2")
    return tmp_path / "run"


def test_threads_are_those_of_the_start(two_steps, monkeypatch):
    cut_back(two_steps, facts={"threads": dict.fromkeys(NAMES, 3)})
    asked = set()
    monkeypatch.setattr(torch, "set_num_threads", asked.add)
    resume(two_steps)
    assert asked == {3}


def test_an_agent_computes_with_its_own_threads(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    train(tmp_path / "run", *TINY, "steps=1", "agents.0.threads=2", "agents.1.threads=3")
    # Both are built, both sample, both learn.
    assert asked == [2, 3] * 3


def test_steps_are_those_of_the_start(two_steps):
    cut_back(two_steps, facts={"steps": 3})
    assert resume(two_steps).is_finished
    assert [record["step"] for record in metrics(two_steps)] == [1, 1, 2, 2, 3, 3]


def test_the_launcher_is_that_of_the_start(two_steps, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the other launcher was taken")

    cut_back(two_steps)
    recipe = two_steps / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("launch: in_process", "launch: processes"))
    monkeypatch.setattr("corl.launch.start.run_in_processes", refuse)
    assert resume(two_steps).is_finished


def test_a_crash_between_two_final_models_is_resumed(two_steps):
    before = final_weights(two_steps)
    shutil.rmtree(two_steps / "agents" / "gpt_neox" / "final")
    assert resume(two_steps).is_finished
    assert final_weights(two_steps) == before


def test_the_reference_stays_the_starting_policy(tmp_path):
    """Held to the resumed policy instead, the divergence would begin again at 0."""
    run = tmp_path / "run"
    train(run, *TINY, "steps=3", "supervision=entropy", "grpo.kl=1.0")
    weights, lines = final_weights(run), metrics(run)
    cut_back(run)
    assert resume(run).is_finished
    assert metrics(run) == lines
    assert final_weights(run) == weights


class Impatient(Progress):
    """A display that asks for a stop at the first record."""

    def show(self, record):
        super().show(record)
        if record["step"] == 1 and record["agent"] == NAMES[0]:
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_stop_in_one_process_saves_the_step_for_all_and_goes_on(two_steps, tmp_path):
    run = tmp_path / "stopped"
    recipe = load_recipe(RECIPE, [*TINY, "steps=2", "launch=in_process", "checkpoint.every=0"])
    quiet = Console(quiet=True)
    outcome = start_run(
        recipe,
        run,
        progress=lambda recipe, done, steps: Impatient(recipe, done, steps, console=quiet),
    )
    assert (outcome.last_step, outcome.is_finished) == (1, False)
    assert all((run / "agents" / name / "step-1").is_dir() for name in NAMES)
    assert not any((run / "agents" / name / "final").exists() for name in NAMES)
    assert resume(run).is_finished
    assert final_weights(run) == final_weights(two_steps)
    assert metrics(run) == metrics(two_steps)


def test_a_run_does_not_go_on_with_other_prompts(tmp_path):
    lines = Path(load_recipe(RECIPE).prompts.file).read_text().splitlines(keepends=True)[:16]
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(lines))
    train(tmp_path / "run", "steps=2", f"prompts={prompts}")
    for name in ("qwen3", "gpt_neox"):
        shutil.rmtree(tmp_path / "run" / "agents" / name / "final")
    prompts.write_text("".join(lines[::-1]))
    with pytest.raises(CheckpointError, match="was changed"):
        resume(tmp_path / "run")


def test_a_mixed_run_resumes_to_the_same_bytes_from_float32_weights(tmp_path):
    run = tmp_path / "run"
    mixed = ("agents.0.dtype=mixed", "agents.1.dtype=mixed")
    train(run, *TINY, *mixed, "prompts.limit=64", "batch.prompts=8", "steps=3")
    whole, records = final_weights(run), metrics(run)
    cut_back(run)
    assert resume(run).is_finished
    assert final_weights(run) == whole
    assert metrics(run) == records
    weights = load_file(run / "agents" / "qwen3" / "final" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    # Sampler and learner compute in the same bfloat16 copy.
    learned = [record for record in records if "mismatch_mean" in record]
    assert learned and all(abs(record["mismatch_mean"] - 1) < 0.02 for record in learned)
