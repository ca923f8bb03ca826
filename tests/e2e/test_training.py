"""A cohort trains end to end: what comes out, and what every launcher and resume leave equal."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from corl.config import load_recipe
from corl.errors import AgentFailed, CheckpointError, RecipeError
from corl.run.journal import read_records
from e2e.cohorts import RECIPE, THIRD, final_weights, metrics, resume, train


@pytest.fixture(scope="module")
def six_steps(tmp_path_factory):
    """An uninterrupted run of six steps in one process."""
    out = tmp_path_factory.mktemp("six") / "run"
    outcome = train(out, "steps=6")
    assert outcome.is_finished
    return out


def test_every_agent_has_a_line_for_every_step(six_steps):
    found = [(record["step"], record["agent"]) for record in metrics(six_steps)]
    assert found == [(step, name) for step in range(1, 7) for name in ("qwen3", "gpt_neox")]


def test_the_models_moved_and_load_with_plain_transformers(six_steps):
    for agent in load_recipe(RECIPE).agents:
        final = six_steps / "agents" / agent.name / "final"
        after = AutoModelForCausalLM.from_pretrained(final)
        before = AutoModelForCausalLM.from_pretrained(agent.model)
        assert AutoTokenizer.from_pretrained(final).encode("7+5=") == AutoTokenizer.from_pretrained(
            agent.model
        ).encode("7+5=")
        moved = [
            not torch.equal(old, new)
            for old, new in zip(before.parameters(), after.parameters(), strict=True)
        ]
        # Tokens that no prompt and no completion holds keep their rows; no tensor stays whole.
        assert all(moved)


def test_metrics_are_what_they_say(six_steps):
    for record in metrics(six_steps):
        assert 0 <= record["reward_mean"] <= 1
        assert 0 <= record["labelled_share"] <= 1
        assert record["length_mean"] <= record["length_max"] <= 16
        assert record["learning_rate"] == pytest.approx(3e-4)
        assert record["groups_forwarded"] + record["groups_flat"] + record[
            "groups_unlabelled"
        ] == pytest.approx(4)


def test_a_page_of_completions_can_be_opened(six_steps):
    page = (six_steps / "agents" / "qwen3" / "pages" / "step-000002.md").read_text()
    assert "Graded by gpt_neox" in page
    assert "\\boxed{" in page
    assert "Own vote:" in page


def test_the_run_says_what_it_ran_on(six_steps):
    environment = json.loads((six_steps / "environment.json").read_text())
    assert environment["versions"]["torch"]
    assert load_recipe(six_steps / "recipe.yaml").steps == 6


def test_old_checkpoints_are_pruned_and_none_is_half_written(tmp_path):
    train(tmp_path / "run", "steps=5", "checkpoint.every=1", "checkpoint.keep=2")
    kept = sorted(path.name for path in (tmp_path / "run" / "agents" / "qwen3").iterdir())
    assert kept == ["final", "journal.jsonl", "pages", "step-3", "step-4"]


def test_processes_give_the_same_metrics_and_weights(six_steps, tmp_path):
    train(tmp_path / "run", "steps=6", launch="processes")
    assert metrics(tmp_path / "run") == metrics(six_steps)
    assert final_weights(tmp_path / "run") == final_weights(six_steps)


def test_a_resumed_run_ends_with_the_same_bytes(six_steps, tmp_path):
    """What a crash between two steps leaves: no final model, one agent a checkpoint behind."""
    run = tmp_path / "run"
    shutil.copytree(six_steps, run)
    for name in ("qwen3", "gpt_neox"):
        shutil.rmtree(run / "agents" / name / "final")
    shutil.rmtree(run / "agents" / "gpt_neox" / "step-4")
    (run / "agents" / "qwen3" / ".step-6.partial").mkdir()
    with (run / "agents" / "qwen3" / "journal.jsonl").open("a") as stream:
        stream.write('{"step": 7, "half')
    assert resume(run).is_finished
    assert final_weights(run) == final_weights(six_steps)
    assert metrics(run) == metrics(six_steps)


def test_a_run_without_any_checkpoint_resumes_from_its_start(six_steps, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(six_steps, run)
    for name in ("qwen3", "gpt_neox"):
        for folder in ("final", "step-2", "step-4"):
            shutil.rmtree(run / "agents" / name / folder)
    assert resume(run).is_finished
    assert final_weights(run) == final_weights(six_steps)


def test_a_finished_run_is_neither_resumed_nor_overwritten(six_steps):
    before = (six_steps / "metrics.jsonl").stat().st_mtime_ns
    with pytest.raises(CheckpointError, match="is finished"):
        resume(six_steps)
    assert (six_steps / "metrics.jsonl").stat().st_mtime_ns == before
    with pytest.raises(CheckpointError, match="already holds a run"):
        train(six_steps)


def test_a_finished_run_whose_launcher_died_gets_its_last_lines(six_steps, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(six_steps, run)
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:-3]) + lines[-3][:20])
    with pytest.raises(CheckpointError, match="is finished"):
        resume(run)
    assert metrics(run) == metrics(six_steps)


def test_a_failing_agent_ends_the_run_with_its_own_error(tmp_path):
    """A checkpoint that holds NaN: nothing it samples is finite, and its agent says so."""
    broken = tmp_path / "broken"
    shutil.copytree(load_recipe(RECIPE).agents[1].model, broken)
    weights = load_file(broken / "model.safetensors")
    name = next(name for name in weights if "final_layer_norm" in name)
    weights[name].fill_(float("nan"))
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(AgentFailed, match=r"agent 'gpt_neox' failed: .*holds? NaN"):
        train(tmp_path / "run", "steps=20", f"agents.1.model={broken}", launch="processes")


def test_agents_draw_their_own_noise(tmp_path):
    """Two copies of one model must not vote as one: their completions differ."""
    train(tmp_path / "run", "steps=1", "agents.1.model=corl:quickstart/models/qwen3")
    left, right = metrics(tmp_path / "run")
    assert left["length_mean"] == right["length_mean"]
    assert left["entropy"] != right["entropy"]


def labelled_rows():
    """The first training rows, and the same with one another's labels."""
    lines = Path(load_recipe(RECIPE).prompts.file).read_text().splitlines()[:64]
    rows = [json.loads(line) for line in lines]
    swapped = zip(rows, rows[::-1], strict=True)
    return rows, [{**row, "answer": other["answer"]} for row, other in swapped]


@pytest.mark.parametrize("method", ["peer", "self_vote", "entropy"])
def test_labels_never_reach_a_label_free_run(tmp_path, method):
    """Weights are the same bytes with labels, without them, and with wrong ones."""
    rows, wrong = labelled_rows()
    bare = [{key: value for key, value in row.items() if key != "answer"} for row in rows]
    weights = []
    for name, variant in (("true", rows), ("wrong", wrong), ("bare", bare)):
        prompts = tmp_path / f"{name}.jsonl"
        prompts.write_text("".join(json.dumps(row) + "\n" for row in variant))
        train(tmp_path / name, "steps=2", f"prompts={prompts}", f"supervision={method}")
        weights.append(final_weights(tmp_path / name))
    assert weights[0] == weights[1] == weights[2]
    accuracy = [
        read_records(tmp_path / name / "metrics.jsonl")[0]["accuracy"]
        for name in ("true", "wrong", "bare")
    ]
    assert accuracy[0] > accuracy[1] and accuracy[2] is None


def test_ground_truth_does_read_labels(tmp_path):
    """The counterpart of the test above: here shuffled labels must change the weights."""
    rows, wrong = labelled_rows()
    weights = []
    for name, variant in (("true", rows), ("wrong", wrong)):
        prompts = tmp_path / f"{name}.jsonl"
        prompts.write_text("".join(json.dumps(row) + "\n" for row in variant))
        train(tmp_path / name, "steps=2", f"prompts={prompts}", "supervision=ground_truth")
        weights.append(final_weights(tmp_path / name))
    assert weights[0] != weights[1]


def test_a_ring_of_three_is_graded_by_the_agent_before(tmp_path):
    train(tmp_path / "run", "steps=1", THIRD)
    pages = {
        name: (tmp_path / "run" / "agents" / name / "pages" / "step-000001.md").read_text()
        for name in ("qwen3", "gpt_neox", "llama")
    }
    assert "Graded by llama." in pages["qwen3"]
    assert "Graded by qwen3." in pages["gpt_neox"]
    assert "Graded by gpt_neox." in pages["llama"]


def test_a_reversed_ring_is_another_run(tmp_path):
    train(tmp_path / "forward", "steps=2", THIRD)
    train(tmp_path / "back", "steps=2", THIRD, "supervision.ring=[llama,gpt_neox,qwen3]")
    assert final_weights(tmp_path / "forward") != final_weights(tmp_path / "back")


def test_kl_needs_and_gets_a_reference(tmp_path):
    train(tmp_path / "run", "steps=2", "grpo.kl=0.05", "grpo.updates=2")
    first, *_, last = metrics(tmp_path / "run")
    assert first["kl"] >= 0 and last["kl"] > 0


def test_tensorboard_gets_every_metric(tmp_path):
    pytest.importorskip("tensorboard")
    train(tmp_path / "run", "steps=1", "tracking.tensorboard=true")
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("agents.0.model=/nowhere/at/all", "/nowhere/at/all"),
        ("agents.1.name=qwen3", "two agents are named 'qwen3'"),
        ("supervision=nobody", "supervision method 'nobody'"),
        ("batch.prompts=100000", "fewer than the 100000 of one step"),
        ("prompts.field=question", "no field 'question'"),
        ("votes.ties=coin", "tie policy 'coin'"),
        ("rollout.max_rows=1000000000000", None),
    ],
)
def test_a_recipe_that_cannot_work_is_one_line_before_any_model_loads(
    tmp_path, monkeypatch, override, says
):
    def refuse(*args, **kwargs):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("corl.launch.assembly.load_policy", refuse)
    if says is None:
        with pytest.raises(AssertionError):
            train(tmp_path / "run", override)
        return
    with pytest.raises(RecipeError) as caught:
        train(tmp_path / "run", override)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run" / "run.json").exists()
