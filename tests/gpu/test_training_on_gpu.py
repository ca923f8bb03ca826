"""The same cohort on a GPU: fp32 weights, bf16 compute, a bf16 copy that samples."""

import pytest
import torch

from e2e.cohorts import final_weights, metrics, train

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
]


def test_a_cohort_trains_in_bf16_and_sampler_and_learner_stay_close(tmp_path):
    train(tmp_path / "run", "steps=4")
    for record in metrics(tmp_path / "run"):
        assert record["nonfinite_tokens"] == 0
        if record["groups_forwarded"]:
            assert record["mismatch_mean"] == pytest.approx(1, abs=0.05)


def test_fp32_on_a_gpu_samples_what_the_learner_computes(tmp_path):
    train(tmp_path / "run", "steps=2", "agents.0.dtype=float32", "agents.1.dtype=float32")
    for record in metrics(tmp_path / "run"):
        if record["groups_forwarded"]:
            assert record["mismatch_mean"] == pytest.approx(1, abs=1e-3)


def test_two_gpus_take_an_agent_each(tmp_path):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    train(tmp_path / "run", "steps=2", launch="processes")
    assert len(final_weights(tmp_path / "run")) == 2
