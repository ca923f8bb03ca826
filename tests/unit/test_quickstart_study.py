"""The demonstration's bookkeeping: which models are measured, on what, and what is written."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from corl.data.prompts import load_prompts
from corl.errors import CheckpointError
from corl.evaluation.accuracy import Accuracy
from corl.quickstart import demonstration
from corl.run.directory import RunDirectory

NAMES = ["qwen3", "gpt_neox"]


def share(model):
    """A score that tells agents, seeds, and before from after."""
    trained = 0.5 if model.endswith("final") else 0.25
    return trained + 0.125 * ("qwen3" in model) + 0.0625 * ("seed1" in model)


@pytest.fixture
def runs(monkeypatch):
    """Runs that train nothing; a policy stands for its path and scores by what the path says."""
    started = []

    def start(recipe, out, *, progress):
        started.append((recipe, Path(out)))
        return SimpleNamespace(run=RunDirectory(out), is_finished=True)

    def measure(recipe, models, rows):
        return {name: Accuracy(*[share(str(model))] * 4) for name, model in models.items()}

    monkeypatch.setattr(demonstration, "start_run", start)
    monkeypatch.setattr(demonstration, "_measure", measure)
    return started


def results(out, seeds):
    demonstration.run_quickstart(seeds, out, console=Console(quiet=True))
    return json.loads((out / "results.json").read_text())["rows"]


def shares(row, when):
    assert [agent["name"] for agent in row["agents"]] == NAMES
    return [agent[when]["greedy"] for agent in row["agents"]]


def test_the_base_row_comes_first_and_each_seed_has_a_row(tmp_path, runs):
    rows = results(tmp_path, [0, 1])
    assert [(row["method"], row["seed"]) for row in rows] == [("base", 0), ("peer", 0), ("peer", 1)]
    assert {row["setting"] for row in rows} == {"different_family"}


def test_before_is_the_shipped_model_and_after_the_run_of_its_seed(tmp_path, runs):
    base, first, second = results(tmp_path, [0, 1])
    assert shares(base, "before") == shares(base, "after") == [0.375, 0.25]
    assert shares(first, "before") == shares(second, "before") == [0.375, 0.25]
    assert shares(first, "after") == [0.625, 0.5]
    assert shares(second, "after") == [0.6875, 0.5625]


def test_every_seed_trains_with_itself_in_a_folder_of_its_own(tmp_path, runs):
    results(tmp_path, [0, 1])
    assert [recipe.seed for recipe, _ in runs] == [0, 1]
    assert len({out for _, out in runs}) == 2


def test_problems_are_held_out_of_the_recipes_prompts(tmp_path, runs):
    results(tmp_path, [0])
    trained = {row.text for row in load_prompts(runs[0][0].prompts).rows}
    held_out = demonstration.held_out_rows()
    assert held_out and not trained & {row.text for row in held_out}
    assert all(row.label for row in held_out)


def test_a_run_that_was_stopped_is_no_result(tmp_path, runs, monkeypatch):
    stopped = SimpleNamespace(is_finished=False)
    monkeypatch.setattr(demonstration, "start_run", lambda *args, **settings: stopped)
    with pytest.raises(CheckpointError, match="was stopped"):
        results(tmp_path, [0])
    assert not (tmp_path / "results.json").exists()


def test_the_vision_pair_is_trained_by_its_own_votes_too(tmp_path, runs):
    demonstration.run_quickstart(
        [0, 1], tmp_path, console=Console(quiet=True), demonstration=demonstration.VISION
    )
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert [(row["method"], row["seed"]) for row in rows] == [
        ("base", 0), ("peer", 0), ("peer", 1), ("self_vote", 0), ("self_vote", 1),
    ]  # fmt: skip
    assert [recipe.supervision.method for recipe, _ in runs] == ["peer"] * 2 + ["self_vote"] * 2
    assert len({out for _, out in runs}) == 4


def test_the_held_out_pictures_show_chains_that_are_not_trained_on(tmp_path, runs):
    vision = demonstration.VISION
    demonstration.run_quickstart([0], tmp_path, console=Console(quiet=True), demonstration=vision)
    trained = {row.images[0].identity for row in load_prompts(runs[0][0].prompts).rows}
    held_out = demonstration.held_out_rows(vision)
    assert len(held_out) == 512 and all(row.label and row.images for row in held_out)
    assert not trained & {row.images[0].identity for row in held_out}
