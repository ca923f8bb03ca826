"""Agents that train adapters, end to end: launchers, resume, merging, evaluation, refusals."""

import json

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

from corl.cli import app
from corl.config import load_recipe
from corl.errors import CorlError, RecipeError
from corl.launch.preflight import preflight
from e2e.cohorts import RECIPE, SMALL, final_weights, metrics, resume, train, unfinished
from e2e.test_eval import DATA, MODELS, SUMS

NAMES = ("qwen3", "gpt_neox")
LORA = [f"agents.{name}.lora={{rank: 4, alpha: 8}}" for name in NAMES]
LEARN = ["optimizer.learning_rate=3e-3", "grpo.kl=0.01"]


@pytest.fixture(scope="module")
def four_steps(tmp_path_factory):
    out = tmp_path_factory.mktemp("four") / "run"
    assert train(out, "steps=4", *LORA, *LEARN).is_finished
    return out


def test_adapters_learn_and_are_held_to_their_own_base(four_steps):
    records = metrics(four_steps)
    assert [one["step"] for one in records] == [1, 1, 2, 2, 3, 3, 4, 4]
    moved = [one for one in records if one["groups_forwarded"]]
    for name in NAMES:
        assert any(one["grad_norm"] > 0 for one in moved if one["agent"] == name)
    assert all(one["ratio_mean"] == pytest.approx(1.0, abs=1e-5) for one in moved)
    # Fresh adapters change nothing, so the policy begins at its reference and leaves it.
    assert all(abs(one["kl"]) < 1e-6 for one in moved if one["step"] == 1)
    assert any(one["kl"] > 1e-6 for one in moved if one["step"] == 4)


@pytest.mark.parametrize("name", NAMES)
def test_the_final_adapter_is_small_and_loads_by_peft_alone(four_steps, name):
    final = four_steps / "agents" / name / "final"
    assert not (final / "model.safetensors").exists()
    tensors = load_file(final / "adapter_model.safetensors")
    assert all(tensor.dtype == torch.float32 for tensor in tensors.values())
    assert any(tensor.any() for key, tensor in tensors.items() if "lora_B" in key)
    base = AutoModelForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32)
    ids = torch.tensor([[5, 6, 7]])
    before = base(ids).logits
    assert (PeftModel.from_pretrained(base, final)(ids).logits - before).abs().max() > 1e-4


def test_a_process_for_each_agent_gives_the_same_bytes(four_steps, tmp_path):
    assert train(tmp_path / "run", "steps=4", *LORA, *LEARN, launch="processes").is_finished
    assert metrics(tmp_path / "run") == metrics(four_steps)
    assert final_weights(tmp_path / "run") == final_weights(four_steps)


def test_a_resumed_run_ends_with_the_same_bytes(four_steps, tmp_path):
    run = unfinished(four_steps, tmp_path / "run")
    checkpoint = next((run / "agents" / "qwen3").glob("step-*"))
    weights = sorted(file.name for file in checkpoint.rglob("*.safetensors"))
    assert "adapter_model.safetensors" in weights and "model.safetensors" not in weights
    assert resume(run).is_finished
    assert final_weights(run) == final_weights(four_steps)
    assert metrics(run) == metrics(four_steps)


def test_merged_saving_gives_an_ordinary_checkpoint_equal_to_the_adapter(four_steps, tmp_path):
    merged = [f"agents.{name}.lora={{rank: 4, alpha: 8, save: merged}}" for name in NAMES]
    assert train(tmp_path / "run", "steps=4", *merged, *LEARN).is_finished
    ids = torch.tensor([[5, 6, 7, 8]])
    for name in NAMES:
        plain = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "agents" / name / "final")
        base = AutoModelForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32)
        adapted = PeftModel.from_pretrained(base, four_steps / "agents" / name / "final")
        torch.testing.assert_close(plain(ids).logits, adapted(ids).logits, atol=1e-5, rtol=0)


def test_an_adapter_is_evaluated_and_trained_on(four_steps, tmp_path):
    benchmark = tmp_path / "sums.yaml"
    benchmark.write_text(SUMS)
    final = four_steps / "agents" / "qwen3" / "final"
    done = CliRunner().invoke(
        app,
        ["eval", str(final), "--benchmarks", f"{benchmark}={DATA}", "--limit", "8",
         "--samples", "2", "--max-tokens", "16", "--out", str(tmp_path / "eval")],
    )  # fmt: skip
    assert done.exit_code == 0, (done.output, done.exception)
    on = train(tmp_path / "on", "steps=1", f"agents.qwen3.model={final}")
    assert on.is_finished
    assert (tmp_path / "on" / "agents" / "qwen3" / "final" / "adapter_config.json").exists()
    assert (tmp_path / "on" / "agents" / "gpt_neox" / "final" / "model.safetensors").exists()


def test_one_agent_may_train_adapters_beside_one_that_trains_all(tmp_path):
    assert train(tmp_path / "run", "steps=2", LORA[0]).is_finished
    final = tmp_path / "run" / "agents" / "qwen3" / "final"
    assert json.loads((final / "adapter_config.json").read_text())["r"] == 4


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["agents.qwen3.lora={targets: [c_attn]}"], r"lora.targets \['c_attn'\] fit no layer"),
        (["agents.qwen3.lora={rank: 0}"], "lora.rank"),
        (["agents.qwen3.lora={quantize: nf4}"], r"install corl\[qlora\]"),
        (["agents.qwen3.lora={}", "agents.qwen3.dtype=bfloat16"], "dtype mixed"),
        (["agents.qwen3.lora={}", "optimizer.kind=adamw_bf16"], "optimizer.kind adamw"),
        (["agents.qwen3.lora={}", "supervision=co_rewarding_2"], "keeps a teacher"),
    ],
)
def test_what_adapters_cannot_do_is_refused_before_a_weight_is_loaded(overrides, says, monkeypatch):
    if "quantize" in overrides[0]:
        monkeypatch.setattr("corl.policy.quantization.find_spec", lambda name: None)
    with pytest.raises(CorlError, match=says):
        preflight(load_recipe(RECIPE, [*SMALL, *overrides]))


def test_an_adapter_of_an_adapter_is_refused(four_steps):
    final = four_steps / "agents" / "qwen3" / "final"
    with pytest.raises(RecipeError, match="is an adapter already"):
        preflight(load_recipe(RECIPE, [*SMALL, f"agents.qwen3.model={final}", LORA[0]]))


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["supervision=co_rewarding_2"], "keeps a teacher"),
        (["agents.qwen3.dtype=bfloat16", "agents.gpt_neox.dtype=bfloat16",
          "optimizer.kind=adamw_bf16"], "dtype mixed"),
    ],
)  # fmt: skip
def test_a_trained_adapter_is_held_to_the_same_rules(four_steps, overrides, says):
    final = four_steps / "agents" / "qwen3" / "final"
    with pytest.raises(RecipeError, match=says):
        preflight(load_recipe(RECIPE, [*SMALL, f"agents.qwen3.model={final}", *overrides]))


def test_the_memory_estimate_falls(four_steps):
    def need(*overrides):
        checked = preflight(load_recipe(RECIPE, [*SMALL, *overrides]))
        return next(check.memory for check in checked.agents if check.name == "qwen3")

    whole, adapted = need(), need(LORA[0])
    assert adapted.gradients + adapted.optimizer < (whole.gradients + whole.optimizer) / 2
    assert adapted.total < whole.total
    trained_on = need(f"agents.qwen3.model={four_steps / 'agents' / 'qwen3' / 'final'}")
    assert trained_on == adapted
