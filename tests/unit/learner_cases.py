"""A batch with mixed, flat and unlabelled groups, learners on it, and a slow gradient."""

import torch
from tiny_policies import VOCABULARY

from corl.config import GrpoConfig, OptimizerConfig
from corl.policy.learn_batch import LearnBatch
from corl.policy.learner import Learner

NAN = float("nan")
P, K = 4, 3
LOSSES = ["grpo", "bnpo", "dr_grpo", "dapo"]
# Two mixed groups, one flat, one without a label.
REWARDS = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [NAN, 5.0, 0.0]])
LABELLED = torch.tensor([True, True, True, False])


def make_batch(*, rewards=REWARDS, labelled=LABELLED, engine=None, truncated=None, seed=5):
    g = torch.Generator().manual_seed(seed)

    def tokens(low, high):
        length = int(torch.randint(low, high, (1,), generator=g))
        return torch.randint(3, VOCABULARY, (length,), generator=g).tolist()

    prompts = [tokens(1, 7) for _ in range(P)]
    completions = [[tokens(1, 9) for _ in range(K)] for _ in range(P)]
    if engine is not None:
        engine = [[engine(tokens) for tokens in group] for group in completions]
    return LearnBatch(
        prompt_ids=prompts,
        token_ids=completions,
        rewards_pk=rewards,
        labelled_p=labelled,
        truncated=truncated,
        engine_logps=engine,
    )


def make_learner(policy, *, reference=None, temperature=0.9, optimizer=None, **grpo):
    settings = {"learning_rate": 1e-2, "grad_clip": 1e9, **(optimizer or {})}
    return Learner(
        policy,
        OptimizerConfig(**settings),
        GrpoConfig(**grpo),
        total_steps=10,
        temperature=temperature,
        max_tokens=12,
        reference=reference,
        name="ada",
    )


def spy_on_gradients(learner):
    """Gradients of the next update, seen just before the optimiser steps."""
    seen = []
    step = learner._optimizer.step

    def spy():
        params = learner._model.parameters()
        seen.append(
            torch.cat(
                [
                    torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten()
                    for p in params
                ]
            )
        )
        step()

    learner._optimizer.step = spy
    return seen


def spy_on_rows(policy):
    """Rows that enter the transformer from now on, in line or not; the caller cuts padding off."""
    seen = []

    def look(_module, _args, kwargs):
        ids, layout = kwargs["input_ids"], kwargs.get("row_layout")
        if layout is not None:
            ids = ids[0][layout.token_of].view(layout.num_rows, layout.width)
        seen.extend(ids.tolist())

    policy.model.base_model.register_forward_pre_hook(look, with_kwargs=True)
    return seen


def slow_gradient(
    policy, batch, advantages_pk, *, loss, temperature, kl=0.0, reference=None, kept=None
):
    """Every completion by itself through the model's own logits; averages over everything."""
    lengths = [[len(t) for t in group] for group in batch.token_ids]
    if kept is not None:
        lengths = [
            [n * k for n, k in zip(*rows, strict=True)] for rows in zip(lengths, kept, strict=True)
        ]
    total = sum(map(sum, lengths))
    objective = torch.zeros(())
    for p, group in enumerate(batch.token_ids):
        for k, tokens in enumerate(group):
            if lengths[p][k] == 0:
                continue
            prompt = batch.prompt_ids[p]
            ids = torch.tensor([prompt + tokens])

            def score(model, ids=ids, prompt=prompt, tokens=tokens):
                logits = model(ids).logits[0, len(prompt) - 1 : -1] / temperature
                rows = torch.arange(len(tokens))
                return torch.log_softmax(logits, -1)[rows, torch.tensor(tokens)]

            logps = score(policy.model)
            terms = -torch.exp(logps - logps.detach()) * advantages_pk[p, k]
            if kl:
                with torch.no_grad():
                    ref = score(reference)
                k3 = torch.exp(ref - logps) - (ref - logps) - 1
                terms = terms + kl * k3 * torch.exp(logps - logps.detach())
            weight = {
                "grpo": 1 / (P * K * len(tokens)),
                "bnpo": 1 / total,
                "dapo": 1 / total,
                "dr_grpo": 1 / (P * K * 12),
            }[loss]
            objective = objective + weight * terms.sum()
    grads = torch.autograd.grad(objective, list(policy.model.parameters()))
    return objective.item(), torch.cat([g.flatten() for g in grads])


def assert_close(one, other, tolerance=1e-5):
    assert other.norm() > 0
    assert (one - other).norm() <= tolerance * other.norm()
