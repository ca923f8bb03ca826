"""Which checkpoints count, which are dropped, and which a lagging agent still needs."""

import pytest

from corl.run.checkpoint import cohort_steps, cut_after, prune
from corl.run.directory import RunDirectory


@pytest.fixture
def run(tmp_path):
    """Agent a has saved steps 1 to 4, agent b only 1 and 2."""
    run = RunDirectory(tmp_path)
    for name, steps in (("a", (1, 2, 3, 4)), ("b", (1, 2))):
        for step in steps:
            run.checkpoint(name, step).mkdir(parents=True)
    return run


def kept(run, name):
    return sorted(path.name for path in run.agent(name).iterdir())


def test_a_step_counts_once_every_agent_has_it(run):
    assert cohort_steps(run, ["a", "b"]) == [1, 2]


def test_an_agent_ahead_keeps_the_step_that_the_cohort_would_resume_from(run):
    prune(run, "a", ["a", "b"], keep=1)
    assert kept(run, "a") == ["step-2", "step-3", "step-4"]


def test_no_more_whole_steps_are_kept_than_asked_for(run):
    prune(run, "b", ["a", "b"], keep=1)
    assert kept(run, "b") == ["step-2"]


def test_nothing_is_dropped_before_enough_steps_are_whole(run):
    prune(run, "a", ["a", "b"], keep=3)
    assert kept(run, "a") == ["step-1", "step-2", "step-3", "step-4"]


def test_resuming_drops_later_steps_and_half_written_folders(run):
    (run.agent("a") / ".step-5.partial").mkdir()
    (run.agent("a") / "pages").mkdir()
    cut_after(run, "a", 2)
    assert kept(run, "a") == ["pages", "step-1", "step-2"]
