"""Study files: shorthands, cells, precedence of overrides, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from corl.errors import RecipeError
from corl.quickstart.settings import models_to_make, quickstart_study
from corl.study import load_study, parse_study
from corl.study.cells import cells_of, recipe_of
from corl.study.config import StudyError, flat_overrides

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "recipes" / "quickstart_study.yaml"
TREE = {
    "recipe": "corl:quickstart/recipe.yaml",
    "methods": ["peer", "self_vote"],
    "settings": ["one", "two"],
    "seeds": [0, 1],
    "evaluate": {"prompts": "corl:quickstart/prompts/heldout.jsonl"},
}


def study(**changes):
    return parse_study({**TREE, **changes}, base=ROOT)


def test_cells_are_methods_by_settings_by_seeds_and_seeds_come_last():
    names = [cell.name for cell in cells_of(study())]
    assert names[:4] == [
        "peer-one-seed0",
        "peer-two-seed0",
        "self_vote-one-seed0",
        "self_vote-two-seed0",
    ]
    assert len(names) == 8


def test_cells_are_chosen_by_patterns():
    chosen = study(cells={"include": ["peer/*", "*/two"], "exclude": ["peer/two"]})
    assert [(m.name, s.name) for m, s in chosen.pairs()] == [("peer", "one"), ("self_vote", "two")]


def test_mappings_merge_into_the_recipe_and_lists_replace():
    overrides = {"grpo": {"kl": 0.5}, "optimizer.betas": [0.9, 0.99], "votes": {}}
    assert flat_overrides(overrides) == ["grpo.kl=0.5", "optimizer.betas=[0.9, 0.99]", "votes={}"]


def test_the_method_wins_over_the_setting_and_the_setting_over_the_study():
    made = study(
        methods=[{"name": "peer", "overrides": {"batch": {"prompts": 3}}}],
        settings=[{"name": "one", "overrides": {"batch": {"prompts": 5, "completions": 6}}}],
        overrides={"batch": {"prompts": 7, "completions": 7}, "steps": 9},
    )
    recipe = recipe_of(made, cells_of(made)[1])
    assert (recipe.batch.prompts, recipe.batch.completions, recipe.steps) == (3, 6, 9)
    assert (recipe.seed, recipe.supervision.method) == (1, "peer")
    assert recipe.optimizer.learning_rate == 3e-4  # the base recipe's


def test_two_rows_of_one_method_need_two_names_and_name_their_method():
    entropy = {"name": "entropy_floor", "supervision": "entropy"}
    made = study(methods=[{**entropy, "overrides": {"supervision.options.format_floor": -7}}])
    recipe = recipe_of(made, cells_of(made)[0])
    assert recipe.supervision.method == "entropy"
    assert recipe.supervision.options == {"format_floor": -7}


def test_options_of_the_base_recipe_stay_with_its_method(tmp_path):
    base = tmp_path / "base.yaml"
    text = (ROOT / "recipes" / "quickstart.yaml").read_text()
    base.write_text(
        text.replace(
            "supervision: peer", "supervision: {method: entropy, options: {format_floor: -7}}"
        )
    )
    made = study(recipe=str(base), methods=["entropy", "peer"])
    of_entropy, _, of_peer, _ = (recipe_of(made, cell).supervision for cell in cells_of(made)[:4])
    assert of_entropy.options == {"format_floor": -7}
    assert (of_peer.method, of_peer.options) == ("peer", {})


def test_along_the_way_every_checkpoint_is_kept():
    made = study(evaluate={**TREE["evaluate"], "every": 20})
    checkpoint = recipe_of(made, cells_of(made)[0]).checkpoint
    assert checkpoint.every == 20 and checkpoint.keep > 1000


def test_paths_are_relative_to_the_study_file_and_it_reads_back_equal(tmp_path):
    (tmp_path / "study.yaml").write_text(
        "recipe: base.yaml\n"
        "methods: [peer]\n"
        "settings:\n"
        "  - {name: own, overrides: {agents.1.prompts: other.jsonl, agents.0.model: ./left}}\n"
        "evaluate: {prompts: heldout.jsonl}\n"
    )
    loaded = load_study(tmp_path / "study.yaml")
    assert loaded.name == "study"
    assert loaded.recipe == str(tmp_path / "base.yaml")
    assert loaded.settings[0].overrides == {
        "agents.1.prompts": str(tmp_path / "other.jsonl"),
        "agents.0.model": str(tmp_path / "left"),
    }
    assert loaded.evaluate.prompts.file == str(tmp_path / "heldout.jsonl")
    again = tmp_path / "again.yaml"
    again.write_text(loaded.to_yaml())
    assert load_study(again) == loaded


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"metods": []}, "did you mean `methods`?"),
        ({"evaluate": {"promts": "x.jsonl"}}, "did you mean `prompts`?"),
        ({"methods": [{"name": "peer", "overides": {}}]}, "did you mean `overrides`?"),
        ({"methods": ["peer", "peer"]}, "'peer' is listed twice"),
        ({"methods": ["base"]}, "kept for the untrained models"),
        ({"methods": ["a-b"]}, "a dash separates"),
        ({"cells": {"include": ["peer"]}}, "must be METHOD/SETTING"),
        ({"cells": {"include": ["no/such"]}}, "no pair of method and setting"),
        ({"seeds": [1, 1]}, "'1' is listed twice"),
        ({"evaluate": {}}, "`evaluate.prompts` is missing"),
    ],
)
def test_what_a_study_cannot_mean_is_refused(changes, says):
    with pytest.raises(StudyError, match="study: ") as refused:
        study(**changes)
    assert says in str(refused.value)
    assert isinstance(refused.value, RecipeError)


@pytest.mark.parametrize("content", ["", "methods: [", "- 1"])
def test_a_broken_file_is_named(tmp_path, content):
    path = tmp_path / "broken.yaml"
    path.write_text(content)
    with pytest.raises(StudyError, match="broken.yaml"):
        load_study(path)


def test_the_shipped_study_is_the_quickstarts(tmp_path):
    from_file = load_study(SHIPPED)
    ours = quickstart_study(seeds=[0, 1, 2], models=tmp_path)
    assert list(from_file.pairs())[0][0].name == "ground_truth"
    for theirs, mine in zip(cells_of(from_file), cells_of(ours), strict=True):
        assert recipe_of(from_file, theirs) == recipe_of(ours, mine)
    assert from_file.evaluate == ours.evaluate
    assert models_to_make(ours, tmp_path) == []


def test_the_long_study_names_the_models_that_it_needs(tmp_path):
    made = quickstart_study(seeds=[0], models=tmp_path, is_all=True, steps=4)
    assert models_to_make(made, tmp_path) == [
        "gpt_neox_shared",
        "gpt_neox_unplanted",
        "llama_weak",
        "qwen3_shared",
        "qwen3_unplanted",
        "qwen3_wide",
    ]
    pairs = {f"{method.name}/{setting.name}" for method, setting in made.pairs()}
    assert {"peer/ring_of_three", "peer/weak_teacher", "co_rewarding_1/different_family"} <= pairs
    assert "peer/different_family_rewritten" in pairs
    rewritten = next(s for s in made.settings if s.name == "different_family_rewritten")
    prompts = [agent.get("prompts", "") for agent in rewritten.overrides["agents"]]
    assert [Path(path).name for path in prompts] == ["", "train_reordered.jsonl"]


def test_reading_a_study_loads_no_torch():
    code = "import sys, corl.study, corl.quickstart.settings; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
