"""A run goes back to the newest checkpoint of all, once nothing of before writes into it."""

import subprocess
import sys
import time

import pytest

from corl.errors import CheckpointError
from corl.run.directory import RunDirectory
from corl.run.journal import Journal, read_records
from corl.run.rewind import is_complete, rewind

HOLD = """
import sys, time
from corl.run.directory import RunDirectory
with RunDirectory(sys.argv[1]).agent_locked("b"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def run(tmp_path):
    """Agent a is at step 6 and has its final model, agent b is at step 4."""
    run = RunDirectory(tmp_path / "run")
    for name, steps in (("a", (2, 4, 6)), ("b", (2, 4))):
        run.agent(name).mkdir(parents=True)
        for step in steps:
            run.checkpoint(name, step).mkdir()
        for step in range(1, steps[-1] + 1):
            Journal(run.journal(name)).append({"step": step, "agent": name})
    run.final("a").mkdir()
    return run


def holder(run, seconds):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run.root), str(seconds)], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    return process


def test_it_goes_back_to_the_newest_step_of_all(run):
    assert not is_complete(run, ["a", "b"])
    assert rewind(run, ["a", "b"]) == 4
    assert not run.checkpoint("a", 6).exists() and run.checkpoint("a", 4).exists()
    assert not run.final("a").exists()
    for name in ("a", "b"):
        assert [line["step"] for line in read_records(run.journal(name))] == [1, 2, 3, 4]


def test_it_waits_until_an_earlier_process_is_gone(run):
    process = holder(run, 1.5)
    begun = time.monotonic()
    assert rewind(run, ["a", "b"]) == 4
    assert process.poll() is not None or time.monotonic() - begun > 0.5
    process.wait()


def test_nothing_is_cut_while_an_earlier_process_lives(run):
    process = holder(run, 60)
    try:
        with pytest.raises(CheckpointError, match=rf"agent 'b' still holds .*{process.pid}"):
            rewind(run, ["a", "b"], wait_s=0.3)
        assert run.checkpoint("a", 6).exists() and run.final("a").exists()
    finally:
        process.kill()
        process.wait()
    assert rewind(run, ["a", "b"]) == 4
