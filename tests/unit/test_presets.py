"""Presets: where they lie, what wins over them, and that they are spent on loading."""

import pytest

from corl.config import load_preset, load_recipe, parse_recipe, preset_names
from corl.errors import RecipeError
from corl.supervision import METHODS, load_supervision

AGENTS = {"agents": [{"name": "a", "model": "./m"}], "prompts": "p.jsonl"}


@pytest.fixture
def recipe_file(tmp_path):
    def write(text):
        path = tmp_path / "recipe.yaml"
        path.write_text("agents: [{name: a, model: ./m}]\nprompts: p.jsonl\n" + text)
        return path

    return write


def test_every_method_of_a_paper_has_its_authors_and_the_papers_settings():
    names = preset_names()
    for method in ("ttrl", "intuitor", "rent", "co_rewarding_1", "co_rewarding_2"):
        assert {f"{method}_authors", f"{method}_paper"} <= set(names)
    assert {"corl_paper_text", "corl_paper_vision", "gt_reward_paper"} <= set(names)


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_names_its_method_and_holds_no_models_or_prompts(name):
    recipe = parse_recipe({"preset": name, **AGENTS})
    assert recipe.supervision.method in METHODS
    load_supervision(recipe.supervision)
    assert set(load_preset(name)) <= {
        "supervision", "epochs", "batch", "sampling", "grpo", "optimizer",
    }  # fmt: skip


def test_the_authors_settings_that_method_md_states():
    def of(name):
        return parse_recipe({"preset": name, **AGENTS})

    ttrl = of("ttrl_authors")
    assert ttrl.supervision.options == {"votes": 64}
    assert (ttrl.batch.completions, ttrl.optimizer.learning_rate) == (32, 5e-7)
    assert ttrl.grpo.kl > 0
    intuitor = of("intuitor_authors")
    assert (intuitor.optimizer.learning_rate, intuitor.grpo.kl) == (3e-6, 0.005)
    assert (intuitor.batch.completions, intuitor.epochs) == (7, 1)
    rent = of("rent_authors")
    assert (rent.grpo.kl, rent.supervision.options) == (0.001, {"format_floor": -7.0})
    assert of("co_rewarding_1_authors").grpo.kl == 0.005
    second = of("co_rewarding_2_authors")
    assert (second.grpo.kl, second.supervision.options) == (
        0.001,
        {"alpha_start": 0.01, "alpha_end": 1e-5},
    )


@pytest.mark.parametrize("name", [name for name in preset_names() if name.endswith("_paper")])
def test_the_paper_ran_every_method_in_one_configuration(name):
    recipe = parse_recipe({"preset": name, **AGENTS})
    ours = parse_recipe({"preset": "corl_paper_text", **AGENTS})
    assert recipe.model_copy(update={"supervision": ours.supervision}) == ours
    assert recipe.grpo.kl == 0 and recipe.supervision.options == {}


def test_the_file_wins_over_the_preset_and_an_override_over_both(recipe_file):
    path = recipe_file("preset: ttrl_authors\nbatch: {completions: 4}\n")
    recipe = load_recipe(path)
    assert recipe.batch.completions == 4
    assert recipe.optimizer.learning_rate == 5e-7
    assert recipe.optimizer.grad_clip == 1.0
    changed = load_recipe(path, ["optimizer.learning_rate=1e-4", "supervision.options.votes=8"])
    assert (changed.optimizer.learning_rate, changed.batch.completions) == (1e-4, 4)
    assert changed.supervision.options == {"votes": 8}


def test_an_override_may_name_the_preset_which_still_lies_under_the_file(recipe_file):
    path = recipe_file("preset: ttrl_authors\nbatch: {completions: 4}\n")
    recipe = load_recipe(path, ["grpo.kl=0.5", "preset=rent_authors"])
    assert recipe.supervision.method == "entropy"
    assert (recipe.grpo.kl, recipe.batch.completions) == (0.5, 4)
    assert load_recipe(path, ["preset=null"]).supervision.method == "peer"


def test_options_of_a_preset_do_not_show_through_under_another_method(recipe_file):
    recipe = load_recipe(recipe_file("preset: ttrl_authors\nsupervision: entropy\n"))
    assert (recipe.supervision.method, recipe.supervision.options) == ("entropy", {})
    same = load_recipe(recipe_file("preset: ttrl_authors\nsupervision: self_vote\n"))
    assert same.supervision.options == {"votes": 64}


def test_a_resolved_recipe_reads_back_equal_and_applies_no_preset_again(recipe_file, tmp_path):
    path = recipe_file("preset: ttrl_authors\n")
    recipe = load_recipe(path, ["supervision.options={}", "grpo.kl=0"])
    saved = tmp_path / "saved.yaml"
    saved.write_text(recipe.to_yaml())
    assert "preset" not in saved.read_text()
    assert load_recipe(saved) == recipe
    assert load_recipe(saved).supervision.options == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "preset: ttrl_author\n",
            "preset 'ttrl_author' is not known; did you mean 'ttrl_authors'?",
        ),
        ("preset: ../presets/rent_paper\n", "did you mean 'rent_paper'?"),
        ("preset: 3\n", "known: co_rewarding_1_authors"),
        ("pre_set: rent_paper\n", "unknown key `pre_set`; did you mean `preset`?"),
    ],
)
def test_an_unknown_preset_is_one_line_with_the_nearest(recipe_file, text, says):
    with pytest.raises(RecipeError) as caught:
        load_recipe(recipe_file(text))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rewritten_prompts_take_the_short_form_and_the_agents_own_come_first(recipe_file, tmp_path):
    recipe = load_recipe(recipe_file("rewritten: r.jsonl\n"))
    assert recipe.rewritten_of(recipe.agents[0]).file == str(tmp_path / "r.jsonl")
    own = load_recipe(recipe_file("rewritten: r.jsonl\n"), ["agents.a.rewritten=/own.jsonl"])
    assert own.rewritten_of(own.agents[0]).file == "/own.jsonl"
