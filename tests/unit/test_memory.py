"""Memory by hand for a model of 1,000 parameters."""

import pytest

from corl.config import OptimizerConfig
from corl.policy import ModelFacts
from corl.policy.memory import memory_need

MODEL = ModelFacts(
    source="m",
    architecture="M",
    model_type="m",
    num_parameters=1000,
    context_length=64,
    vocab_size=10,
    num_layers=2,
    hidden_size=8,
    kv_width=4,
    has_chat_template=False,
)


def need(**changes):
    options = {
        "agent_dtype": "auto",
        "device": "cpu",
        "optimizer": OptimizerConfig(),
        "keeps_reference": False,
        "completions": 6,
        "max_rows": 4,
        "sequence_length": 10,
    }
    return memory_need(MODEL, **{**options, **changes})


def test_fp32_takes_sixteen_bytes_a_parameter():
    found = need()
    assert found.weights + found.gradients + found.optimizer == 16_000
    assert found.compute_copy == found.reference == 0


def test_a_gpu_adds_the_compute_copy():
    found = need(device="cuda:0")
    assert found.compute_copy == 2_000
    # The copy's gradients live beside the master's until they are added.
    assert found.gradients == 6_000
    mixed = need(agent_dtype="mixed")
    assert (mixed.compute_copy, mixed.gradients) == (2_000, 6_000)


def test_bf16_with_stochastic_rounding_takes_eight():
    found = need(agent_dtype="bfloat16", optimizer=OptimizerConfig(kind="adamw_bf16"))
    assert found.weights + found.gradients + found.optimizer == 8_000
    assert found.saved_by_bf16 == 0
    assert need().saved_by_bf16 == 8_000


def test_the_cache_holds_the_rows_decoded_at_once():
    # 2 (key and value) x 2 layers x 4 wide x 4 rows x 10 tokens x 4 bytes
    assert need().cache == 2560
    assert need(max_rows=100).cache == 2560 * 6 // 4


def test_activations_follow_the_batch_where_it_is_smaller_than_the_budget():
    whole = need().activations
    # 60 tokens x 8 x 2 layers x 16 x 4 bytes, and three fp32 copies of 60 x 10 logits
    assert whole == 60 * 8 * 2 * 16 * 4 + 3 * 4 * 60 * 10
    capped = need(optimizer=OptimizerConfig(tokens_per_microbatch=20))
    assert capped.activations == pytest.approx(whole / 3)


def test_a_reference_costs_its_compute_precision():
    assert need(keeps_reference=True).reference == 4_000
    assert need(keeps_reference=True, device="cuda:0").reference == 2_000
