"""Progress in a log file: what is left is told from steps, not from how long loading took."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from corl.config import load_recipe
from corl.run import progress

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def record(step, agent="gpt_neox"):
    spent = {"sample": 0.25, "read": 0.05, "wait": 0.1, "learn": 0.1}
    return {"step": step, "agent": agent, "reward_mean": 0.5, "time": spent}


def seconds_left(out):
    return [int(found) for found in re.findall(r"(\d+) s to go", out.getvalue())]


def test_loading_is_no_part_of_the_estimate(clock):
    out = io.StringIO()
    recipe = load_recipe(ROOT / "recipes" / "quickstart.yaml")
    with progress.Progress(recipe, 0, 100, console=Console(file=out, width=80)) as shown:
        clock[0] += 500  # models are loaded
        shown.show(record(1))
        assert seconds_left(out) == [50]  # 99 steps of half a second
        clock[0] += 40
        shown.show(record(21))
        assert seconds_left(out) == [50, 158]  # 79 steps of 2 seconds
        clock[0] += 1
        shown.show(record(22))  # too soon for another line
        clock[0] += 100
        shown.show(record(100))
        assert seconds_left(out) == [50, 158, 0]


def test_a_resumed_run_counts_from_where_it_goes_on(clock):
    out = io.StringIO()
    recipe = load_recipe(ROOT / "recipes" / "quickstart.yaml")
    with progress.Progress(recipe, 60, 100, console=Console(file=out, width=80)) as shown:
        clock[0] += 500
        shown.show(record(61))
        clock[0] += 20
        shown.show(record(71))
    assert seconds_left(out) == [20, 58]
