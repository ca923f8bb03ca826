"""Adapters on a base in 4 or 8 bits, as far as bitsandbytes runs on a CPU: all but its speed."""

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from corl.config import LoraConfig
from corl.policy import load_policy
from corl.policy.scoring import CompletionScorer
from corl.rollout.noise import Noise
from corl.rollout.sampling import SamplingParameters
from corl.rollout.transformers_engine import TransformersEngine
from e2e.cohorts import final_weights, metrics, resume, train, unfinished
from e2e.test_eval import MODELS

pytest.importorskip("bitsandbytes", reason="needs corl[qlora]")

NAMES = ("qwen3", "gpt_neox")
LORA = [f"agents.{name}.lora={{rank: 4, alpha: 8, quantize: nf4}}" for name in NAMES]


@pytest.fixture(scope="module")
def four_steps(tmp_path_factory):
    out = tmp_path_factory.mktemp("four") / "run"
    assert train(out, "steps=4", "optimizer.learning_rate=3e-3", *LORA).is_finished
    return out


@pytest.mark.parametrize(("kind", "dtype"), [("nf4", torch.uint8), ("int8", torch.int8)])
def test_the_base_is_kept_in_few_bits_and_the_adapters_in_float32(kind, dtype):
    policy = load_policy(MODELS / "qwen3", lora=LoraConfig(rank=4, alpha=8, quantize=kind))
    named = dict(policy.model.named_parameters())
    kept = {parameter.dtype for name, parameter in named.items() if "proj.base_layer" in name}
    assert kept == {dtype}
    trained = {name: p for name, p in named.items() if p.requires_grad}
    assert trained and all("lora_" in name for name in trained)
    assert {parameter.dtype for parameter in trained.values()} == {torch.float32}


def test_sampler_and_learner_agree_on_a_base_in_4_bits():
    policy = load_policy(MODELS / "qwen3", lora=LoraConfig(rank=4, alpha=8, quantize="nf4"))
    engine = TransformersEngine(policy)
    engine.sync()
    rollout = engine.sample(
        [[5, 9, 12], [20, 6, 7, 3, 16]],
        completions=4,
        sampling=SamplingParameters(max_tokens=12),
        noise=Noise(seed=0, agent="a"),
        step=1,
    )
    prompts = [prompt for prompt in rollout.prompt_ids for _ in range(4)]
    tokens = [ids for group in rollout.token_ids for ids in group]
    scores = CompletionScorer(policy, temperature=1.0)(prompts, tokens, [4, 4])
    for row, expected in enumerate(logps for group in rollout.logps for logps in group):
        found = scores.logps_bt[row, : len(expected)].detach()
        torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=0)


def test_it_learns_and_resumes_to_the_same_bytes(four_steps, tmp_path):
    records = metrics(four_steps)
    for name in NAMES:
        ours = [one for one in records if one["agent"] == name]
        assert any(one["grad_norm"] > 0 for one in ours if one["groups_forwarded"])
    run = unfinished(four_steps, tmp_path / "run")
    assert resume(run).is_finished
    assert final_weights(run) == final_weights(four_steps)
    assert metrics(run) == metrics(four_steps)


def test_the_adapter_loads_by_peft_on_a_base_in_4_bits(four_steps):
    as_trained = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.float32,
    )
    base = AutoModelForCausalLM.from_pretrained(
        MODELS / "qwen3", dtype=torch.float32, quantization_config=as_trained
    )
    ids = torch.tensor([[5, 6, 7]])
    before = base(ids).logits
    adapted = PeftModel.from_pretrained(base, four_steps / "agents" / "qwen3" / "final")
    assert (adapted(ids).logits - before).abs().max() > 1e-4
