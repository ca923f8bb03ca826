"""What is written, when a run is asked to end, and what a rollback leaves."""

import json
from pathlib import Path

import pytest

from corl.config import load_recipe
from corl.run.directory import RunDirectory
from corl.run.health.monitor import HealthMonitor

RECIPE = Path(__file__).parents[2] / "recipes" / "quickstart.yaml"
NAMES = ("qwen3", "gpt_neox")
ALARM_STEP = 12
"""Lengths fall to nothing at step 10: by step 12 they are most of a window of 4."""


def monitor(root, policy="warn"):
    root.mkdir(exist_ok=True)
    recipe = load_recipe(
        RECIPE, [f"health.policy={policy}", "health.warmup=3", "health.window=4", "steps=20"]
    )
    return HealthMonitor(recipe, RunDirectory(root))


def records(first=1, last=20, *, collapses=("gpt_neox",)):
    return [
        {"step": step, "agent": name, "length_mean": 1.0 if step >= 10 and name in collapses else 9}
        for step in range(first, last + 1)
        for name in NAMES
    ]


def lines(root):
    return [json.loads(line) for line in (root / "health.jsonl").read_text().splitlines()]


def make_checkpoints(root, *steps, final=False):
    for name in NAMES:
        for folder in [f"step-{step}" for step in steps] + ["final"] * final:
            (root / "agents" / name / folder).mkdir(parents=True)


def folders(root, name):
    return sorted(path.name for path in (root / "agents" / name).iterdir())


def test_a_line_is_what_the_contract_says(tmp_path):
    monitor(tmp_path / "run").observe(records())
    (line,) = lines(tmp_path / "run")
    assert line == {
        "step": ALARM_STEP,
        "agent": "gpt_neox",
        "detector": "length_deflation",
        "level": "alarm",
        "message": (
            "agent gpt_neox: mean length fell to 11 % of its start by step 12: "
            "completions are cut down to next to nothing"
        ),
        "value": 0.1111,
        "threshold": 0.5,
    }


def test_a_healthy_run_has_no_file(tmp_path):
    assert not monitor(tmp_path / "run").observe(records(collapses=()))
    assert not (tmp_path / "run" / "health.jsonl").exists()


def test_the_file_is_the_same_however_records_arrive(tmp_path):
    monitor(tmp_path / "whole").observe(records(collapses=NAMES))
    piecewise = monitor(tmp_path / "pieces")
    for record in records(collapses=NAMES):
        piecewise.observe([record])
    piecewise.observe([])
    assert lines(tmp_path / "pieces") == lines(tmp_path / "whole")


def test_a_resume_writes_the_file_again_from_what_is_left(tmp_path):
    monitor(tmp_path / "run").observe(records(collapses=NAMES))
    before = lines(tmp_path / "run")
    resumed = monitor(tmp_path / "run")
    assert not (tmp_path / "run" / "health.jsonl").exists()
    resumed.replay(records(last=11, collapses=NAMES))
    resumed.observe(records(first=12, collapses=NAMES))
    assert lines(tmp_path / "run") == before


@pytest.mark.parametrize(
    ("policy", "ends"), [("warn", False), ("stop", True), ("rollback", True), ("off", False)]
)
def test_only_stop_and_rollback_end_a_run(tmp_path, policy, ends):
    health = monitor(tmp_path / "run", policy)
    assert not health.observe(records(last=ALARM_STEP - 1))
    assert health.observe(records(first=ALARM_STEP, last=ALARM_STEP)) is ends
    assert health.observe([]) is ends
    assert (tmp_path / "run" / "health.jsonl").exists() is (policy != "off")


def test_what_was_found_before_a_resume_ends_nothing(tmp_path, capsys):
    health = monitor(tmp_path / "run", "stop")
    health.replay(records(last=15))
    assert not health.observe(records(first=16))
    assert health.settle(20, total_steps=20) == 20
    assert capsys.readouterr().err == ""
    assert len(lines(tmp_path / "run")) == 1


def test_alarms_are_shown_and_information_is_not(tmp_path, capsys):
    agreeing = [{**record, "peer_agreement": 1.0} for record in records()]
    monitor(tmp_path / "run").observe(agreeing)
    assert len(lines(tmp_path / "run")) == 3
    shown = capsys.readouterr().err.splitlines()
    assert shown == ["health alarm: " + lines(tmp_path / "run")[-1]["message"]]


def test_a_stop_keeps_everything_and_says_what_to_change(tmp_path, capsys):
    root = tmp_path / "run"
    health = monitor(root, "stop")
    make_checkpoints(root, 5, 10, 13)
    health.observe(records(last=13))
    assert health.settle(13, total_steps=20) == 13
    assert folders(root, "qwen3") == ["step-10", "step-13", "step-5"]
    said = capsys.readouterr().err
    assert str(root / "recipe.yaml") in said and "learning_rate" in said


def test_a_rollback_drops_what_lies_behind_the_window_of_its_alarm(tmp_path, capsys):
    """Alarm at 12, window 4: step 8 is the last that no judged figure comes from."""
    root = tmp_path / "run"
    health = monitor(root, "rollback")
    make_checkpoints(root, 4, 8, 9, 13)
    health.observe(records(last=13))
    assert health.settle(13, total_steps=20) == 8
    for name in NAMES:
        assert folders(root, name) == ["step-4", "step-8"]
    assert "rolled back to step 8" in capsys.readouterr().err


def test_a_rollback_takes_a_finished_run_back_too(tmp_path):
    root = tmp_path / "run"
    health = monitor(root, "rollback")
    make_checkpoints(root, 6, 12, final=True)
    health.observe(records())
    assert health.settle(20, total_steps=20) == 6
    assert folders(root, "gpt_neox") == ["step-6"]


def test_a_rollback_needs_a_checkpoint_of_every_agent(tmp_path, capsys):
    root = tmp_path / "run"
    health = monitor(root, "rollback")
    make_checkpoints(root, 9)
    (root / "agents" / "qwen3" / "step-7").mkdir()
    health.observe(records(last=13))
    assert health.settle(13, total_steps=20) == 0
    assert folders(root, "qwen3") == folders(root, "gpt_neox") == []
    assert "the beginning: no checkpoint from before was kept" in capsys.readouterr().err


def test_a_share_of_nonfinite_tokens_counts_all_sampled_ones(tmp_path):
    """16 prompts x 8 completions x 10 tokens: 26 are above 1 %, 12 are not."""
    figures = {"length_mean": 10.0, "groups_flat": 10, "groups_unlabelled": 2}
    figures["groups_forwarded"] = 4
    for count, speaks in ((26, True), (12, False)):
        root = tmp_path / str(count)
        monitor(root).observe(
            [
                {
                    "step": step,
                    "agent": name,
                    "nonfinite_tokens": count,
                    **figures,
                }
                for step in range(1, 10)
                for name in NAMES
            ]
        )
        assert (root / "health.jsonl").exists() is speaks
