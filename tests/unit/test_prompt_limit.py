"""`limit` and the number of steps that a recipe comes to."""

import json

import pytest

from corl.config import PromptsConfig, load_recipe
from corl.data.prompts import load_prompts
from corl.launch.preflight import preflight
from e2e.cohorts import RECIPE


def test_a_limit_takes_the_first_rows(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in "abc"))
    loaded = load_prompts(PromptsConfig(file=str(path), limit=2))
    assert [row.text for row in loaded.rows] == ["a", "b"]


def test_rows_behind_the_limit_are_not_even_read(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"prompt": "a"}\nnot json\n')
    assert len(load_prompts(PromptsConfig(file=str(path), limit=1)).rows) == 1


@pytest.mark.parametrize(
    ("overrides", "steps"),
    [
        (["steps=null", "epochs=1"], 5),
        (["steps=null", "epochs=2"], 10),
        (["steps=null", "epochs=0.5"], 3),
        (["steps=7", "epochs=2"], 7),
    ],
)
def test_epochs_give_the_steps_unless_steps_are_named(overrides, steps):
    small = ["prompts.limit=20", "batch.prompts=4", *overrides]
    assert preflight(load_recipe(RECIPE, small)).steps == steps
