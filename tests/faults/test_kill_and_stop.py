"""Runs that are killed or stopped go on to the same bytes. CORL_KILLS sets how many kills."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.cohorts import RECIPE, SMALL, final_weights, metrics

STEPS = 40
COMMAND = [sys.executable, "-m", "corl.cli"]
TRAIN = [
    *SMALL,
    f"steps={STEPS}",
    "checkpoint.every=3",
    "checkpoint.keep=1",
    "launch=processes",
]


def start(*arguments, environment=None):
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process, *, timeout=180):
    output, _ = process.communicate(timeout=timeout)
    return output


def wait_for_lines(run, count, process, *, timeout=120):
    deadline = time.monotonic() + timeout
    path = Path(run) / "metrics.jsonl"
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def agents_alive(run):
    """Processes that still work in the run's directory."""
    found = subprocess.run(["pgrep", "-f", str(run)], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    run = tmp_path_factory.mktemp("whole") / "run"
    process = start("train", RECIPE, "--out", run, *TRAIN)
    assert "done: 40 steps" in finish(process)
    return run


@pytest.mark.parametrize("kill", range(int(os.environ.get("CORL_KILLS", "1"))))
def test_a_run_killed_at_a_random_moment_resumes_to_the_same_bytes(uninterrupted, tmp_path, kill):
    run = tmp_path / "run"
    moment = random.Random()
    process = start("train", RECIPE, "--out", run, *TRAIN)
    wait_for_lines(run, moment.randrange(1, 2 * STEPS - 10), process)
    time.sleep(moment.random() * 0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    # The agents notice that their launcher is gone; until then they must not be resumed over.
    deadline = time.monotonic() + 20
    while agents_alive(run) and time.monotonic() < deadline:
        time.sleep(0.1)
    # On a fast machine they may have come to the end before that.
    resumed = finish(start("resume", run))
    assert "done: 40 steps" in resumed or "is finished: all 40 steps are done" in resumed
    assert final_weights(run) == final_weights(uninterrupted)
    assert metrics(run) == metrics(uninterrupted)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_stopped_run_saves_one_step_for_all_and_goes_on(uninterrupted, tmp_path, number):
    run = tmp_path / "run"
    process = start("train", RECIPE, "--out", run, *TRAIN, "checkpoint.every=0")
    wait_for_lines(run, 8, process)
    os.killpg(process.pid, number)
    output = finish(process)
    assert process.returncode == 0
    assert "corl resume" in output
    steps = {
        name: [path.name for path in (run / "agents" / name).glob("step-*")]
        for name in ("qwen3", "gpt_neox")
    }
    assert steps["qwen3"] == steps["gpt_neox"] and len(steps["qwen3"]) == 1
    assert "done: 40 steps" in finish(start("resume", run))
    assert final_weights(run) == final_weights(uninterrupted)


@pytest.mark.slow
def test_a_killed_agent_ends_the_run_and_leaves_it_resumable(uninterrupted, tmp_path):
    run = tmp_path / "run"
    process = start("train", RECIPE, "--out", run, *TRAIN)
    wait_for_lines(run, 10, process)
    children = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    victim = max(map(int, children))
    os.kill(victim, signal.SIGKILL)
    killed_at = time.monotonic()
    output = finish(process)
    assert time.monotonic() - killed_at < 10
    assert process.returncode == 1
    assert "was killed by signal 9" in output and "corl resume" in output
    assert "done: 40 steps" in finish(start("resume", run))
    assert final_weights(run) == final_weights(uninterrupted)


@pytest.mark.slow
def test_an_agent_that_dies_before_it_reads_its_task_ends_the_run(tmp_path):
    """Thousands of rows, and a process that cannot even start Python's imports."""
    rows = (RECIPE.parent.parent / "src/corl/quickstart/prompts/train.jsonl").read_text()
    (tmp_path / "prompts.jsonl").write_text(rows)
    start_up = tmp_path / "path" / "sitecustomize.py"
    start_up.parent.mkdir()
    start_up.write_text("import os, sys\nif '--multiprocessing-fork' in sys.argv: os._exit(9)\n")
    process = subprocess.Popen(
        [*COMMAND, "train", RECIPE, "--out", tmp_path / "run", *TRAIN, "prompts.limit=2000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(start_up.parent)},
    )
    output = finish(process, timeout=90)
    assert process.returncode == 1
    assert "ended with code 9" in output
