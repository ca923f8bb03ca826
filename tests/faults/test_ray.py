"""Agents on the nodes of a real Ray cluster: same results, and what is lost comes back.

CORL_KILLS sets how many runs lose something at a random moment (slow).
"""

import os
import random
import re
import signal
import time

import pytest

from e2e.cohorts import RECIPE, SMALL, final_weights, metrics, train
from faults.test_kill_and_stop import STEPS, TRAIN, finish, start, wait_for_lines
from faults.test_lost_agents import agent_pid, restarts

pytest.importorskip("ray", reason="needs corl[ray]")

from faults.ray_cluster import ON_RAY, TwoNodes, ballot_box  # noqa: E402

RAY = [*TRAIN, *ON_RAY, "exchange.timeout_s=60"]
RESTART = ["restarts.limit=5", "restarts.pause_s=0.1"]
LONGEST = 400


@pytest.fixture(scope="module")
def nodes():
    nodes = TwoNodes()
    yield nodes
    nodes.shutdown()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The same run in one process."""
    run = tmp_path_factory.mktemp("whole") / "run"
    # The saving of pages and checkpoints does not reach weights or metrics.
    assert train(run, f"steps={STEPS}").is_finished
    return run


def on(nodes, *arguments):
    return start(*arguments, environment=nodes.environment)


def lose(nodes, run, victim):
    """Kill a part of the cohort; a lost node is replaced, as a cluster's manager would."""
    if victim == "worker":
        os.kill(ballot_box(), signal.SIGKILL)
    elif victim == "agent":
        os.kill(agent_pid(run, random.choice(["qwen3", "gpt_neox"])), signal.SIGKILL)
    else:
        nodes.kill_second(is_whole=victim == "node")
        nodes.add_second()


def wait_for_restart(run, count, process):
    """Also ends with the run: what is lost in the pause before a restart is covered by it."""
    deadline = time.monotonic() + LONGEST
    while not (run / "restarts.jsonl").exists() or len(restarts(run)) < count:
        if process.poll() == 0 and count > 1:
            return
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_three_losses_and_the_same_bytes_as_in_one_process(nodes, uninterrupted, tmp_path):
    """An agent on each node; the ballot box, an agent and a whole node die at random moments."""
    run = tmp_path / "run"
    process = on(nodes, "train", RECIPE, "--out", run, *RAY, *RESTART)
    victims = random.sample(["worker", "agent", "node"], 3)
    for count, victim in enumerate(victims):
        done = restarts(run)[-1]["from_step"] if count else 0
        wait_for_lines(run, 2 * done + random.randrange(2, 20), process, timeout=LONGEST)
        lose(nodes, run, victim)
        wait_for_restart(run, count + 1, process)
        if process.poll() is not None:
            break
    output = finish(process, timeout=LONGEST)
    assert f"done: 40 steps after {len(restarts(run))} restart(s)." in output, output
    assert 1 <= len(restarts(run)) <= len(victims)
    assert all(one["from_step"] % 3 == 0 for one in restarts(run))
    assert metrics(run) == metrics(uninterrupted)
    assert final_weights(run) == final_weights(uninterrupted)


def test_what_the_cluster_cannot_hold_is_refused_at_once(nodes):
    for wanted, says in (
        ("{CPU: 3}", r"agent 'qwen3' asks for 3 CPU, but no node of .* has more than 1 CPU"),
        ("{tape: 1}", r"agent 'qwen3' asks for 1 tape, but no node of .* has more than 0 tape"),
        ("{second: 1}", r"the agents ask for 2 second together \(qwen3 1 second, gpt_neox 1"),
    ):
        command = ["check", RECIPE, *SMALL, *ON_RAY, f"agents.qwen3.resources={wanted}"]
        process = on(nodes, *command)
        output = finish(process)
        assert process.returncode == 1
        assert re.search(says, output), output


@pytest.mark.slow
def test_a_stop_ends_all_agents_at_one_step_and_resume_goes_on(nodes, uninterrupted, tmp_path):
    run = tmp_path / "run"
    process = on(nodes, "train", RECIPE, "--out", run, *RAY, "checkpoint.every=0")
    wait_for_lines(run, 8, process, timeout=LONGEST)
    process.send_signal(signal.SIGTERM)
    output = finish(process, timeout=LONGEST)
    assert process.returncode == 0 and "corl resume" in output
    saved = {path.name for path in run.glob("agents/*/step-*")}
    assert len(saved) == 1 and len(list(run.glob("agents/*/step-*"))) == 2
    assert "done: 40 steps." in finish(on(nodes, "resume", run), timeout=LONGEST)
    assert final_weights(run) == final_weights(uninterrupted)


@pytest.mark.slow
def test_without_restarts_a_lost_node_is_named_and_the_checkpoint_serves(
    nodes, uninterrupted, tmp_path
):
    run = tmp_path / "run"
    process = on(nodes, "train", RECIPE, "--out", run, *RAY)
    wait_for_lines(run, 10, process, timeout=LONGEST)
    lose(nodes, run, "node")
    output = finish(process, timeout=LONGEST)
    assert process.returncode == 1
    assert "agent 'gpt_neox' on" in output and "was lost: its node died" in output, output
    assert "corl resume" in output and "from the checkpoint of step" in output
    assert "done: 40 steps." in finish(on(nodes, "resume", run), timeout=LONGEST)
    assert final_weights(run) == final_weights(uninterrupted)


@pytest.mark.slow
def test_a_silent_agent_is_named_within_the_time_out(nodes, tmp_path):
    run = tmp_path / "run"
    process = on(nodes, "train", RECIPE, "--out", run, *RAY, "exchange.timeout_s=30")
    wait_for_lines(run, 10, process, timeout=LONGEST)
    pid = agent_pid(run, "gpt_neox")
    os.kill(pid, signal.SIGSTOP)
    stopped_at = time.monotonic()
    output = finish(process, timeout=LONGEST)
    assert time.monotonic() - stopped_at < 50
    assert process.returncode == 1
    assert "agent 'qwen3' waited 30 s at step" in output and "ballot of 'gpt_neox'" in output


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(int(os.environ.get("CORL_KILLS", "1"))))
def test_what_is_lost_at_a_random_moment_comes_back(nodes, uninterrupted, tmp_path, kill):
    run = tmp_path / "run"
    moment = random.Random()
    victim = moment.choice(["worker", "agent", "node", "raylet"])
    process = on(nodes, "train", RECIPE, "--out", run, *RAY, *RESTART)
    wait_for_lines(run, moment.randrange(1, 2 * STEPS - 16), process, timeout=LONGEST)
    time.sleep(moment.random() * 0.2)
    lose(nodes, run, victim)
    output = finish(process, timeout=LONGEST)
    assert "done: 40 steps after 1 restart(s)." in output, (victim, output)
    print(victim, restarts(run)[0]["reason"])
    assert metrics(run) == metrics(uninterrupted)
    assert final_weights(run) == final_weights(uninterrupted)
