"""When a lost cohort is restarted, and when that ends."""

import json

import pytest

from corl.config import parse_recipe
from corl.config.restarts import RestartsConfig
from corl.errors import (
    AgentFailed,
    AgentLost,
    CheckpointError,
    ExchangeError,
    ExchangeLost,
    ExchangeTimeout,
    ModelError,
    NonFiniteLossError,
    RecipeError,
)
from corl.launch.placement import pick_launcher
from corl.launch.restarts import Restarts, check_restarts, may_pass
from corl.run.directory import RunDirectory

LOST = AgentLost("agent 'left' was killed by signal 9", "; its log. `corl resume RUN` goes on")


def restarts(tmp_path, **keys):
    return Restarts(RestartsConfig(pause_s=0, **keys), RunDirectory(tmp_path))


def one(restarts, *, reached, from_step=0):
    restarts.require_one_more(LOST, reached=reached)
    restarts.note(LOST, reached=reached, from_step=from_step)


def test_without_a_limit_the_loss_itself_ends_the_run(tmp_path):
    with pytest.raises(AgentLost) as caught:
        restarts(tmp_path).require_one_more(LOST, reached=5)
    assert caught.value is LOST
    assert not (tmp_path / "restarts.jsonl").exists()


def test_the_limit_ends_a_run_that_makes_progress(tmp_path):
    made = restarts(tmp_path, limit=3)
    for reached in (10, 20, 30):
        one(made, reached=reached)
    with pytest.raises(AgentFailed, match=r"restarted 3 times.*restarts\.limit") as caught:
        made.require_one_more(LOST, reached=40)
    assert not isinstance(caught.value, AgentLost)
    assert "signal 9" in str(caught.value) and "corl resume" in str(caught.value)


def test_a_crash_that_repeats_itself_ends_before_the_limit(tmp_path):
    made = restarts(tmp_path, limit=100, fruitless=2)
    one(made, reached=7)
    one(made, reached=6)
    with pytest.raises(AgentFailed, match="2 restarts in a row came no further than step 7"):
        made.require_one_more(LOST, reached=7)


def test_one_step_further_is_progress(tmp_path):
    made = restarts(tmp_path, limit=100, fruitless=1)
    for reached in (1, 2, 3, 4):
        one(made, reached=reached)
    with pytest.raises(AgentFailed, match="1 restarts in a row came no further than step 4"):
        made.require_one_more(LOST, reached=4)


def test_every_restart_is_journalled_and_shown(tmp_path, capsys):
    made = restarts(tmp_path, limit=5)
    one(made, reached=7, from_step=6)
    one(made, reached=2)
    lines = [json.loads(line) for line in (tmp_path / "restarts.jsonl").read_text().splitlines()]
    assert [(line["restart"], line["reached_step"], line["from_step"]) for line in lines] == [
        (1, 7, 6),
        (2, 2, 0),
    ]
    assert "'left' was killed by signal 9" in lines[0]["reason"] and lines[0]["time"]
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == (
        "restart 1 of at most 5: agent 'left' was killed by signal 9; the cohort was at step 7 "
        "and goes back to step 6"
    )
    assert shown[1].endswith("goes back to its beginning, for want of a checkpoint")


@pytest.mark.parametrize(
    "error",
    [
        ExchangeTimeout("late"),
        ExchangeLost("gone"),
        OSError("stale file handle"),
        ConnectionResetError(),
        MemoryError(),
    ],
)
def test_what_the_machine_does_to_an_agent_may_pass(error):
    assert may_pass(error)


@pytest.mark.parametrize(
    "error",
    [
        RecipeError("bad"),
        ModelError("no such model"),
        CheckpointError("unreadable"),
        ExchangeError("another run"),
        NonFiniteLossError("NaN"),
        ValueError("bug"),
        KeyError("bug"),
        RuntimeError("shapes"),
    ],
)
def test_what_the_same_seed_meets_again_does_not(error):
    assert not may_pass(error)


def recipe(**keys):
    agents = [{"name": name, "model": "Owner/m"} for name in ("left", "right")]
    return parse_recipe({"agents": agents, "prompts": "/p.jsonl", **keys})


def test_agents_that_share_a_process_cannot_be_restarted():
    made = recipe(launch="in_process", restarts={"limit": 2})
    with pytest.raises(RecipeError, match="set launch: processes or ray"):
        check_restarts(made, launcher="in_process")
    assert check_restarts(recipe(), launcher="in_process") == []


def test_restarts_without_checkpoints_are_worth_a_warning():
    assert check_restarts(
        recipe(restarts={"limit": 2}, checkpoint={"every": 0}), launcher="processes"
    ) == ["checkpoint.every is 0: every restart begins at step 1 again"]
    assert check_restarts(recipe(restarts={"limit": 2}), launcher="processes") == []


def test_auto_takes_processes_where_restarts_are_wanted():
    devices = {"left": "cpu", "right": "cpu"}
    assert pick_launcher(recipe(restarts={"limit": 1}), cores=1, devices=devices) == "processes"
    assert pick_launcher(recipe(), cores=1, devices=devices) == "in_process"
