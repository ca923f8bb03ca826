"""Recipes: precedence, paths, overrides, and errors that name the nearest right key."""

import subprocess
import sys

import pytest

from corl.config import load_recipe, parse_recipe
from corl.errors import RecipeError

RECIPE = """
agents:
  - {name: left, model: ./left}
  - {name: right, model: Owner/right, prompts: rewritten.jsonl, learning_rate: 1e-5}
prompts: {file: prompts.jsonl, suffix: " Box it."}
supervision: peer
sampling: {temperature: 0.7, max_tokens: 9}
"""


@pytest.fixture
def recipe_file(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


def refusal(recipe_file, *overrides):
    with pytest.raises(RecipeError) as caught:
        load_recipe(recipe_file, overrides)
    return str(caught.value)


def test_paths_of_a_file_are_relative_to_the_file(recipe_file, tmp_path):
    recipe = load_recipe(recipe_file)
    assert recipe.agents[0].model == str(tmp_path / "left")
    assert recipe.prompts.file == str(tmp_path / "prompts.jsonl")
    assert recipe.agents[1].prompts.file == str(tmp_path / "rewritten.jsonl")


def test_hub_ids_stay_as_they_are(recipe_file):
    assert load_recipe(recipe_file).agents[1].model == "Owner/right"


def test_paths_of_an_override_are_relative_to_the_working_directory(
    recipe_file, tmp_path, monkeypatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    recipe = load_recipe(recipe_file, ["agents.0.model=./m", "prompts=p.jsonl"])
    assert recipe.agents[0].model == str(elsewhere / "m")
    assert recipe.prompts.file == str(elsewhere / "p.jsonl")


def test_an_override_changes_its_key_and_leaves_the_neighbours(recipe_file):
    recipe = load_recipe(recipe_file, ["prompts=p.jsonl", "steps=20", "agents.right.chat=never"])
    assert recipe.prompts.suffix == " Box it."
    assert recipe.steps == 20
    assert (recipe.agents[0].chat, recipe.agents[1].chat) == ("auto", "never")


def test_yaml_numbers_without_a_dot_are_numbers(recipe_file):
    assert (
        load_recipe(recipe_file, ["optimizer.learning_rate=3e-4"]).optimizer.learning_rate == 3e-4
    )


def test_an_agent_overrides_only_what_it_names(recipe_file):
    recipe = load_recipe(recipe_file, ["agents.right.sampling.max_tokens=3"])
    left, right = recipe.agents
    assert recipe.sampling_of(left).max_tokens == 9
    assert recipe.sampling_of(right).max_tokens == 3
    assert recipe.sampling_of(right).temperature == 0.7
    assert recipe.optimizer_of(left).learning_rate == 3e-6
    assert recipe.optimizer_of(right).learning_rate == 1e-5


def test_a_resolved_recipe_reads_back_equal(recipe_file, tmp_path):
    recipe = load_recipe(recipe_file, ["supervision.ring=[right,left]"])
    saved = tmp_path / "deeper" / "recipe.yaml"
    saved.parent.mkdir()
    saved.write_text(recipe.to_yaml())
    assert load_recipe(saved) == recipe


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("stepz=3", "unknown key `stepz`; did you mean `steps`?"),
        ("agents.0.modle=x", "unknown key `agents.0.modle`; did you mean `model`?"),
        ("grpo.clip_lo=1", "did you mean `clip_low`?"),
        ("steps=-1", "`steps` is -1"),
        ("agents.1.name=left", "two agents are named 'left'"),
        ("agents.0.name=../up", "letters, digits"),
        ("supervision.ring=[left]", "does not name each of ['left', 'right'] once"),
        ("sampling.top_p=0.9", "training needs top_p 1"),
        ("agents.5.name=x", "no entry '5' of 2"),
        ("steps", "not of the form key=value"),
        ("steps.deep=1", "unknown key `steps.deep`"),
        ("supervision.method.deep=1", "which has no keys"),
    ],
)
def test_a_wrong_override_is_one_line_that_names_it(recipe_file, override, says):
    if override == "steps.deep=1":
        says = "steps"
    message = refusal(recipe_file, override)
    assert says in message
    assert "\n" not in message


def test_every_problem_gets_a_line(recipe_file):
    assert len(refusal(recipe_file, "stepz=3", "seed=-1").splitlines()) == 2


def test_an_agent_without_prompts_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="agent 'a' has no prompts"):
        parse_recipe({"agents": [{"name": "a", "model": "./m"}]})


@pytest.mark.parametrize("text", ["", "[1, 2]", "agents: [unclosed"])
def test_a_file_that_is_no_recipe_is_refused(tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError, match=r"bad\.yaml"):
        load_recipe(path)


def test_a_missing_recipe_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="does not exist"):
        load_recipe(tmp_path / "none.yaml")


def test_recipes_and_help_need_no_torch():
    code = (
        "import sys; import corl.cli, corl.config, corl.answers, corl.supervision, "
        "corl.exchange; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
