"""Mistakes that a first reader of the README made, and what each is told."""

import pytest

from corl.config import load_recipe
from corl.diversity.pairing import Edge
from corl.errors import RecipeError
from e2e.cohorts import RECIPE


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("steps=true", "`steps` is True; it takes a number"),
        ("batch.prompts=no", "`prompts` is False; it takes a number"),
        ("optimizer.learning_rate=yes", "`learning_rate` is True; it takes a number"),
        ("agents.qwen.model=x", "no entry 'qwen' of 2; there are qwen3, gpt_neox"),
        ("agents.7.model=x", "no entry '7' of 2; there are qwen3, gpt_neox"),
        ("steps", "not of the form key=value, without spaces"),
    ],
)
def test_an_override_that_cannot_be_meant(override, says):
    with pytest.raises(RecipeError, match=says):
        load_recipe(RECIPE, [override])


@pytest.mark.parametrize(
    ("content", "says"),
    [("- one\n- two\n", "holds a list where keys belong"), ("", "holds nothing where keys belong")],
)
def test_a_recipe_without_keys(content, says, tmp_path):
    (tmp_path / "recipe.yaml").write_text(content)
    with pytest.raises(RecipeError, match=says):
        load_recipe(tmp_path / "recipe.yaml")


def test_flags_stay_flags():
    assert load_recipe(RECIPE, ["votes.lenient=true"]).votes.lenient is True


def test_two_models_that_are_never_right_are_not_said_to_share_mistakes():
    edge = Edge("left", "right", signal=0.0, teacher_accuracy=0.0, pupil_accuracy=0.0)
    assert "nothing can be said of them" in edge.warning
