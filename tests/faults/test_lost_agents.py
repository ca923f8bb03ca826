"""A cohort under `processes` that loses an agent goes on by itself to the same bytes.

CORL_KILLS sets how many runs lose one at a random moment.
"""

import json
import os
import random
import shutil
import signal
import time

import pytest
from safetensors.torch import load_file, save_file

from corl.config import load_recipe
from e2e.cohorts import RECIPE, final_weights, metrics
from faults.test_kill_and_stop import STEPS, TRAIN, finish, start, wait_for_lines

RESTART = ["restarts.limit=3", "restarts.pause_s=0.1"]


def agent_pid(run, name):
    """The process that trains the agent, as its lock names it."""
    return int((run / "agents" / name / ".lock").read_text().split()[1])


def restarts(run):
    return [json.loads(line) for line in (run / "restarts.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    run = tmp_path_factory.mktemp("whole") / "run"
    assert f"done: {STEPS} steps." in finish(start("train", RECIPE, "--out", run, *TRAIN))
    return run


@pytest.mark.parametrize("kill", range(int(os.environ.get("CORL_KILLS", "1"))))
def test_a_cohort_that_loses_an_agent_goes_on_by_itself(uninterrupted, tmp_path, kill):
    run = tmp_path / "run"
    moment = random.Random()
    process = start("train", RECIPE, "--out", run, *TRAIN, *RESTART)
    wait_for_lines(run, moment.randrange(1, 2 * STEPS - 10), process)
    time.sleep(moment.random() * 0.2)
    victim = moment.choice(["qwen3", "gpt_neox"])
    os.kill(agent_pid(run, victim), signal.SIGKILL)
    output = finish(process)
    assert "done: 40 steps after 1 restart(s)." in output, output
    assert f"restart 1 of at most 3: agent '{victim}' was killed by signal 9" in output
    (restart,) = restarts(run)
    assert restart["from_step"] % 3 == 0 and restart["from_step"] <= restart["reached_step"]
    assert final_weights(run) == final_weights(uninterrupted)
    assert metrics(run) == metrics(uninterrupted)
    for name in ("qwen3", "gpt_neox"):
        journal = (run / "agents" / name / "journal.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in journal] == list(range(1, STEPS + 1))


def test_a_silent_agent_is_named_and_replaced(uninterrupted, tmp_path):
    """Stopped, not dead: only its peer's wait can tell."""
    run = tmp_path / "run"
    process = start("train", RECIPE, "--out", run, *TRAIN, *RESTART, "exchange.timeout_s=15")
    wait_for_lines(run, 10, process)
    os.kill(agent_pid(run, "gpt_neox"), signal.SIGSTOP)
    output = finish(process)
    assert "done: 40 steps after 1 restart(s)." in output, output
    assert "agent 'qwen3' waited 15 s at step" in output
    assert "for the ballot of 'gpt_neox'" in output
    assert final_weights(run) == final_weights(uninterrupted)


@pytest.mark.slow
def test_an_agent_that_always_dies_at_one_step_ends_the_run(tmp_path):
    """Killed by itself at step 5, as a system short of memory would."""
    run, path = tmp_path / "run", tmp_path / "path" / "sitecustomize.py"
    path.parent.mkdir()
    path.write_text(DIES_AT_FIVE)
    python_path = os.pathsep.join([str(path.parent), os.environ.get("PYTHONPATH", "")])
    loop = ["restarts.limit=9", "restarts.fruitless=2", "restarts.pause_s=0"]
    process = start(
        *("train", RECIPE, "--out", run, *TRAIN, *loop), environment={"PYTHONPATH": python_path}
    )
    output = finish(process)
    assert process.returncode == 1
    assert "2 restarts in a row came no further than step 4" in output
    assert "corl resume" in output and "Traceback" not in output
    assert [line["from_step"] for line in restarts(run)] == [3, 3]
    assert "done: 40 steps." in finish(start("resume", run))


@pytest.mark.slow
def test_an_error_of_the_runs_own_is_not_retried(tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(load_recipe(RECIPE).agents[1].model, broken)
    weights = load_file(broken / "model.safetensors")
    weights[next(name for name in weights if "final_layer_norm" in name)].fill_(float("nan"))
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    run = tmp_path / "run"
    process = start("train", RECIPE, "--out", run, *TRAIN, *RESTART, f"agents.1.model={broken}")
    output = finish(process)
    assert process.returncode == 1
    assert "agent 'gpt_neox' failed:" in output and "NaN" in output
    assert "restart" not in output and not (run / "restarts.jsonl").exists()


DIES_AT_FIVE = """
import os, sys
if "--multiprocessing-fork" in sys.argv:
    import corl.agent
    sample = corl.agent.Agent.sample
    def dying(self, step, rows):
        if step == 5 and self.name == "qwen3":
            os.kill(os.getpid(), 9)
        return sample(self, step, rows)
    corl.agent.Agent.sample = dying
"""
