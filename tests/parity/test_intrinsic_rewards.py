"""Intuitor's and RENT's rewards, gathered while sampling, against float64 from the logits."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from corl.answers import Answer
from corl.config import SupervisionConfig
from corl.policy import load_policy
from corl.rollout.noise import Noise
from corl.rollout.sampling import SamplingParameters
from corl.rollout.transformers_engine import TransformersEngine
from corl.supervision import Evidence, load_supervision

MODELS = Path(__file__).parents[2] / "src" / "corl" / "quickstart" / "models"
PROMPTS = ("7+5-8*3m6+4=", "6-5*6*3m3*9=", "3m9*3-3*7+9=")


@pytest.fixture(scope="module", params=["qwen3", "gpt_neox", "llama"])
def sampled(request):
    """A rollout of a shipped model, and its statistics from a float64 copy of it."""
    policy = load_policy(MODELS / request.param, device="cpu", dtype="float32")
    prompts = [policy.tokenizer.encode(text) for text in PROMPTS]
    rollout = TransformersEngine(policy).sample(
        prompts,
        completions=4,
        sampling=SamplingParameters(max_tokens=16, temperature=0.7),
        noise=Noise(0, "a"),
        step=1,
    )
    model = load_policy(MODELS / request.param, device="cpu", dtype="float32").model.double()
    direct = [
        [statistics(model, prompt, ids, temperature=0.7) for ids in group]
        for prompt, group in zip(prompts, rollout.token_ids, strict=True)
    ]
    return rollout, torch.tensor(direct, dtype=torch.float64)


@torch.no_grad()
def statistics(model, prompt, ids, *, temperature):
    """Mean entropy, and mean KL of the uniform distribution to p_t, of one completion."""
    logits_tv = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1] / temperature
    assert logits_tv.dtype == torch.float64
    p_tv = logits_tv.softmax(-1)
    entropy = -(p_tv * p_tv.log()).sum(-1).mean().item()
    u = torch.full_like(p_tv, 1 / p_tv.shape[-1])
    certainty = (u * (u.log() - logits_tv.log_softmax(-1))).sum(-1).mean().item()
    return entropy, certainty


def rewards(method, rollout, **options):
    found = load_supervision(SupervisionConfig(method=method, options=options)).reward(
        Evidence(
            answers=[[Answer(text="4", key="number@1:4"), None, None, None] for _ in PROMPTS],
            own_votes=[None] * len(PROMPTS),
            entropy=rollout.entropy.tolist(),
            self_certainty=rollout.self_certainty.tolist(),
        ),
        [],
    )
    return torch.tensor(found.rewards, dtype=torch.float64)


def test_intuitors_reward_is_the_mean_divergence_of_the_uniform_distribution(sampled):
    rollout, direct = sampled
    torch.testing.assert_close(
        rewards("self_certainty", rollout), direct[..., 1], atol=2e-5, rtol=1e-5
    )
    assert direct[..., 1].min() > 0.1


def test_rents_reward_is_minus_the_mean_entropy_or_the_floor(sampled):
    rollout, direct = sampled
    torch.testing.assert_close(rewards("entropy", rollout), -direct[..., 0], atol=2e-5, rtol=1e-5)
    floored = rewards("entropy", rollout, format_floor=-7.0)
    assert (floored[:, 1:] == -7.0).all()
    torch.testing.assert_close(floored[:, 0], -direct[:, 0, 0], atol=2e-5, rtol=1e-5)


def test_the_first_completions_keep_their_own_figures(sampled):
    rollout, _ = sampled
    first = rollout.first(2)
    assert first.token_ids == [group[:2] for group in rollout.token_ids]
    assert torch.equal(first.entropy, rollout.entropy[:, :2])
    assert torch.equal(first.self_certainty, rollout.self_certainty[:, :2])
    assert (first.num_completions, first.num_nonfinite) == (2, 0)
    assert rollout.first(4) is rollout
    broken = [[torch.tensor([float("nan"), 0.0]), torch.tensor([-1.0])] for _ in PROMPTS]
    assert replace(rollout, logps=broken, token_ids=[[[1, 2], [3]]] * 3).first(1).num_nonfinite == 3
