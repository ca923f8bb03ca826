"""Scores of completions against each model's own logits, one row at a time."""

import logging
from dataclasses import replace

import pytest
import torch
from tiny_policies import FAMILIES, VOCABULARY, tiny_policy
from torch import nn

from corl.errors import PromptError
from corl.policy.scoring import CompletionScorer

PROMPTS = [[3, 4, 5], [6], [7, 8, 9, 10, 11]]
COMPLETIONS = [[12, 2], [13, 14, 15, 0, 2], [16]]


def _own(model, prompt, tokens, temperature):
    """Log-probabilities and entropies from an unpadded forward of the model itself."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + tokens])).logits[0].double() / temperature
    all_tv = torch.log_softmax(logits, -1)[len(prompt) - 1 : -1]
    entropy = -(all_tv.exp() * all_tv).sum(-1)
    return all_tv[torch.arange(len(tokens)), torch.tensor(tokens)], entropy


def _check(policy, scorer, temperature, tolerance=1e-5):
    scores = scorer(PROMPTS, COMPLETIONS)
    assert scores.mask_bt.sum(dim=1).tolist() == [2, 5, 1]
    for b, (prompt, tokens) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        want, entropy = _own(policy.model, prompt, tokens, temperature)
        got = scores.logps_bt[b, : len(tokens)].double()
        torch.testing.assert_close(got, want, atol=tolerance, rtol=0)
        got = scores.entropy_bt[b, : len(tokens)].double()
        torch.testing.assert_close(got, entropy, atol=tolerance, rtol=0)
    assert scores.logps_bt[~scores.mask_bt].eq(0).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_the_models_own_logits(family):
    policy = tiny_policy(family)
    scorer = CompletionScorer(policy, temperature=0.7, chunk_tokens=3)
    assert scorer.path == "chunked"
    _check(policy, scorer, 0.7)


class _Doubled(nn.Module):
    """A transform of the logits that no configuration names."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args, **kwargs):
        out = self.inner(*args, **kwargs)
        out.logits = out.logits * 2 + 0.1 * torch.arange(VOCABULARY)
        return out


def _odd_policy():
    policy = tiny_policy("llama")
    forward = policy.model.forward
    doubled = _Doubled(lambda *a, **k: forward(*a, **k))
    policy.model.forward = lambda input_ids, **kwargs: doubled.forward(input_ids, **kwargs)
    return policy


def test_a_model_with_an_unknown_head_is_scored_through_its_own_forward(caplog):
    policy = _odd_policy()
    with caplog.at_level(logging.WARNING):
        scorer = CompletionScorer(policy, temperature=1.3)
    assert scorer.path == "model"
    assert "LlamaForCausalLM" in caplog.text
    _check(policy, scorer, 1.3)


def test_a_head_that_is_more_than_a_linear_layer_is_left_to_the_model():
    class Adapted(nn.Linear):
        """Stands for a head with an adapter, whose weight alone is not what it computes."""

    policy = tiny_policy("llama")
    policy.model.lm_head.__class__ = Adapted
    scorer = CompletionScorer(policy, temperature=1.0)
    assert scorer.path == "model"
    _check(policy, scorer, 1.0)


def test_both_paths_give_the_same_gradients(monkeypatch):
    grads = {}
    for path in ("chunked", "model"):
        policy = tiny_policy("qwen3")
        if path == "model":
            monkeypatch.setattr(CompletionScorer, "_probe", lambda self: None)
        scorer = CompletionScorer(policy, temperature=0.8)
        assert scorer.path == path
        scores = scorer(PROMPTS, COMPLETIONS)
        (scores.logps_bt * torch.arange(1.0, 6.0)).sum().backward()
        grads[path] = torch.cat([p.grad.flatten() for p in policy.model.parameters()])
    norm = grads["model"].norm()
    assert norm > 0
    assert (grads["chunked"] - grads["model"]).norm() < 1e-5 * norm


def test_the_probe_sees_a_soft_cap_that_small_logits_would_hide():
    policy = tiny_policy("gemma2", size=1e-3)
    # The model caps at 30; a configuration that no longer says so must be found out.
    policy.model.config.final_logit_softcapping = None
    forward = policy.model.forward

    def capped(input_ids, **kwargs):
        out = forward(input_ids, **kwargs)
        out.logits = 30 * torch.tanh(out.logits / 30)
        return out

    policy.model.forward = capped
    assert CompletionScorer(policy, temperature=1.0).path == "model"


def test_the_probe_leaves_modes_and_hooks_as_they_were():
    policy = tiny_policy("llama")
    policy.model.model.layers[1].training = True
    before = [module.training for module in policy.model.modules()]
    CompletionScorer(policy, temperature=1.0)
    assert [module.training for module in policy.model.modules()] == before
    assert not policy.model.get_output_embeddings()._forward_hooks


def test_an_empty_prompt_is_refused_and_an_empty_completion_has_no_score():
    scorer = CompletionScorer(tiny_policy("qwen3"), temperature=1.0)
    with pytest.raises(PromptError, match="row 1"):
        scorer([[3], []], [[4], [5]])
    scores = scorer([[3], [4]], [[], [5]])
    assert scores.mask_bt.tolist() == [[False], [True]]


def test_a_scorer_of_the_model_path_takes_empty_completions(monkeypatch):
    monkeypatch.setattr(CompletionScorer, "_probe", lambda self: None)
    scorer = CompletionScorer(tiny_policy("qwen3"), temperature=1.0)
    assert scorer([[3], [4]], [[], []]).logps_bt.shape == (2, 0)


def test_bfloat16_compute_keeps_float32_scores_and_gradients():
    policy = tiny_policy("qwen3")
    want = CompletionScorer(policy, temperature=1.0)(PROMPTS, COMPLETIONS).logps_bt
    policy = replace(policy, compute_dtype=torch.bfloat16)
    scorer = CompletionScorer(policy, temperature=1.0)
    assert scorer.path == "chunked"
    scores = scorer(PROMPTS, COMPLETIONS)
    assert scores.logps_bt.dtype == torch.float32
    assert 0 < (scores.logps_bt - want).abs().max() < 0.1
    scores.logps_bt.sum().backward()
    policy.computing.hand_gradients_over()
    exact = tiny_policy("qwen3")
    CompletionScorer(exact, temperature=1.0)(PROMPTS, COMPLETIONS).logps_bt.sum().backward()
    pairs = zip(policy.model.parameters(), exact.model.parameters(), strict=True)
    for rounded, parameter in pairs:
        assert rounded.grad.dtype == torch.float32
        assert (rounded.grad - parameter.grad).norm() < 0.05 * parameter.grad.norm()
