"""Agents that see, end to end: two families, resume, refusals before any weight, benchmarks."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from corl.cli import app
from corl.config import load_recipe
from corl.errors import CorlError, PromptError, RecipeError
from corl.launch.preflight import preflight
from corl.policy import load_policy
from corl.policy.vision.encode import encode_prompt
from corl.policy.vision.towers import vision_parameters
from e2e.cohorts import final_weights, metrics, unfinished
from e2e.vision_cohort import resume, train, write_prompts, write_recipe
from tiny_models import build_checkpoint

NAMES = ("llava", "qwen2_5_vl")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return write_recipe(tmp_path_factory.mktemp("cohort"))


@pytest.fixture(scope="module")
def four_steps(recipe, tmp_path_factory):
    out = tmp_path_factory.mktemp("four") / "run"
    assert train(recipe, out).is_finished
    return out


def test_two_families_teach_each_other(four_steps):
    records = metrics(four_steps)
    assert [(one["step"], one["agent"]) for one in records] == [
        (step, name) for step in range(1, 5) for name in NAMES
    ]
    for name in NAMES:
        ours = [one for one in records if one["agent"] == name]
        assert sum(one["groups_forwarded"] for one in ours) > 0
        for one in ours:
            if one["groups_forwarded"]:
                assert one["ratio_mean"] == pytest.approx(1.0, abs=1e-5)
                assert one["mismatch_mean"] == pytest.approx(1.0, abs=1e-4)


def test_language_moved_and_vision_stayed(four_steps, recipe):
    for agent in load_recipe(recipe).agents:
        before = load_policy(agent.model)
        after = load_policy(four_steps / "agents" / agent.name / "final")
        seeing = vision_parameters(before.model)
        old, new = before.model.state_dict(), after.model.state_dict()
        moved = {name for name in seeing if not torch.equal(old[name], new[name])}
        assert not moved
        assert any(not torch.equal(old[name], new[name]) for name in old)


def test_the_trained_agent_still_reads_pictures(four_steps, recipe):
    rows = preflight(load_recipe(recipe)).prompts["llava"].rows
    for name in NAMES:
        policy = load_policy(four_steps / "agents" / name / "final")
        encoded = encode_prompt(rows[2], tokenizer=policy.tokenizer, processor=policy.processor)
        assert encoded.vision is not None


def test_a_resumed_run_ends_with_the_same_bytes(four_steps, tmp_path):
    run = unfinished(four_steps, tmp_path / "run")
    assert resume(run).is_finished
    assert final_weights(run) == final_weights(four_steps)
    assert metrics(run) == metrics(four_steps)


def test_other_pictures_are_not_resumed_on(recipe, tmp_path):
    folder = tmp_path / "cohort"
    shutil.copytree(recipe.parent, folder)
    out = tmp_path / "run"
    train(folder / "recipe.yaml", out, "steps=3")
    for name in NAMES:
        shutil.rmtree(out / "agents" / name / "final")
    rows = (folder / "prompts.jsonl").read_text().replace("1-0.png", "4-0.png")
    (folder / "prompts.jsonl").write_text(rows)
    with pytest.raises(CorlError, match="was changed"):
        resume(out)


def test_the_vision_tower_trains_where_asked(recipe, tmp_path):
    overrides = ["agents.0.train_vision=true", "steps=2", "supervision=entropy"]
    train(recipe, tmp_path / "run", *overrides)
    for agent, trained in zip(load_recipe(recipe).agents, (True, False), strict=True):
        file = tmp_path / "run" / "agents" / agent.name / "final" / "model.safetensors"
        old, new = load_file(f"{agent.model}/model.safetensors"), load_file(file)
        moved = {name for name in old if not torch.equal(old[name], new[name])}
        assert any(name in moved for name in old if "vis" in name) == trained


def test_processes_give_the_same_weights(four_steps, recipe, tmp_path):
    train(recipe, tmp_path / "run", "launch=processes")
    assert final_weights(tmp_path / "run") == final_weights(four_steps)


def test_preflight_counts_the_tokens_of_images(recipe):
    checked = preflight(load_recipe(recipe))
    for agent in checked.agents:
        policy = load_policy(agent.model.source)
        lengths = [
            len(encode_prompt(row, tokenizer=policy.tokenizer, processor=policy.processor).ids)
            for row in agent.prompts.rows
        ]
        assert agent.longest_prompt == max(lengths)
        assert agent.model.sees_images


@pytest.fixture
def folder(recipe, tmp_path, monkeypatch):
    """A copy of the cohort in which nothing may be loaded."""
    target = tmp_path / "copy"
    shutil.copytree(recipe.parent, target)
    import transformers

    def refuse(*_, **__):
        raise AssertionError("weights were loaded")

    monkeypatch.setattr(transformers.PreTrainedModel, "from_pretrained", refuse)
    return target


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"prompts\.jsonl, row 4, image 1: there is no file"),
        (b"no image", r"prompts\.jsonl, row 4, image 1: .*3-0\.png is no PNG"),
        (b"\x89PNG\r\n\x1a\n", r"row 4, image 1"),
    ],
)
def test_bad_images_are_refused_before_any_weight(folder, content, said):
    file = folder / "pictures" / "3-0.png"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PromptError, match=said):
        preflight(load_recipe(folder / "recipe.yaml"))


def test_corl_check_names_the_bad_image(folder):
    (folder / "pictures" / "3-0.png").write_bytes(b"no image")
    with pytest.raises(PromptError, match="row 4, image 1"):
        run("check", folder / "recipe.yaml")


def test_a_text_agent_is_not_shown_pictures(folder, tmp_path):
    build_checkpoint(folder / "models" / "text")
    with pytest.raises(PromptError, match="agent 'llava' reads text alone"):
        preflight(load_recipe(folder / "recipe.yaml", [f"agents.0.model={folder}/models/text"]))


def test_a_text_agent_has_no_vision_to_train(folder):
    build_checkpoint(folder / "models" / "text")
    overrides = [
        f"agents.0.model={folder}/models/text",
        "agents.0.train_vision=true",
        "prompts.images_field=''",
    ]
    with pytest.raises(RecipeError, match="has no vision tower"):
        preflight(load_recipe(folder / "recipe.yaml", overrides))


def test_images_that_fill_the_context_are_refused(folder):
    config = folder / "models" / "llava" / "config.json"
    content = json.loads(config.read_text())
    content["text_config"]["max_position_embeddings"] = 30
    config.write_text(json.dumps(content))
    with pytest.raises(PromptError, match=r"1 image\(s\) included"):
        preflight(load_recipe(folder / "recipe.yaml"))


def test_a_benchmark_with_pictures_is_asked(recipe, tmp_path):
    pytest.importorskip("math_verify")
    write_prompts(tmp_path, field="image")
    rows = [json.loads(line) for line in (tmp_path / "prompts.jsonl").read_text().splitlines()]
    asked = [
        {"id": row["id"], "question": row["prompt"], "options": options, "answer": answer,
         "image": row["image"][0]}
        for row, (options, answer) in zip(
            rows[1:], [([], "3"), (["2", "3"], "B"), ([], "4"), ([], "5"), (["1", "9"], "A")],
            strict=True,
        )
    ]  # fmt: skip
    data = tmp_path / "mathvision.jsonl"
    data.write_text("\n".join(json.dumps(row) for row in asked))
    model = str(recipe.parent / "models" / "qwen2_5_vl")
    command = ["--benchmarks", f"mathvision={data}", "--max-tokens", "8", "--samples", "2"]
    run("eval", model, *command, "--out", tmp_path / "out")
    for samples in (tmp_path / "out").rglob("samples.jsonl"):
        lines = [json.loads(line) for line in samples.read_text().splitlines()]
        assert [line["id"] for line in lines if line["sample"] == 0] == [row["id"] for row in asked]
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    (found,) = results["models"].values()
    assert found["benchmarks"]["mathvision"]

    text = build_checkpoint(tmp_path / "text")
    with pytest.raises(PromptError, match="reads text alone"):
        run("eval", text, *command, "--out", tmp_path / "other")


def run(*words):
    """The `corl` command; its errors are raised."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output
