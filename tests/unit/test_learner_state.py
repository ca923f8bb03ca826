"""The learner's state, its determinism, and what it refuses."""

import io

import pytest
import torch
from learner_cases import (
    LABELLED,
    NAN,
    REWARDS,
    K,
    P,
    assert_close,
    make_batch,
    make_learner,
    spy_on_gradients,
)
from tiny_policies import same_bytes, tiny_policy, weights_of

from corl.config import GrpoConfig, OptimizerConfig
from corl.errors import CheckpointError, NonFiniteLossError, RecipeError
from corl.policy.learn_batch import LearnBatch, plan_update
from corl.policy.learner import Learner


@pytest.mark.parametrize("kind", ["adamw", "adamw_bf16"])
def test_a_restored_learner_continues_bit_for_bit(kind):
    def fresh():
        policy = tiny_policy()
        if kind == "adamw_bf16":
            policy.model.to(torch.bfloat16)
            policy.compute_dtype = torch.bfloat16
        return policy, make_learner(policy, optimizer={"kind": kind, "weight_decay": 0.1})

    batches = [make_batch(seed=s) for s in range(4)]
    policy, learner = fresh()
    for batch in batches[:2]:
        learner.update(batch)
    file = io.BytesIO()
    torch.save({"weights": policy.model.state_dict(), "learner": learner.state_dict()}, file)
    rest = [learner.update(batch) for batch in batches[2:]]

    file.seek(0)
    saved = torch.load(file, weights_only=True)
    other_policy, other = fresh()
    other_policy.model.load_state_dict(saved["weights"])
    other.load_state_dict(saved["learner"])
    assert [other.update(batch) for batch in batches[2:]] == rest
    assert same_bytes(weights_of(policy), weights_of(other_policy))


def test_a_restored_step_matters():
    learner = make_learner(tiny_policy())
    for _ in range(3):
        learner.update(make_batch())
    other = make_learner(tiny_policy())
    other.load_state_dict(learner.state_dict())
    assert other.step == 3
    assert other.learning_rate == learner.learning_rate < 1e-2


def test_a_state_of_another_model_is_refused():
    state = make_learner(tiny_policy()).state_dict()
    with pytest.raises(CheckpointError, match="'ada'"):
        make_learner(tiny_policy("gpt_neox")).load_state_dict(state)


def test_the_same_batch_gives_the_same_bytes():
    results = []
    for _ in range(2):
        policy = tiny_policy()
        learner = make_learner(policy, optimizer={"tokens_per_microbatch": 30})
        for seed in range(3):
            learner.update(make_batch(seed=seed))
        results.append(weights_of(policy))
    assert same_bytes(*results)


def test_a_loss_that_is_no_number_names_agent_and_step_and_leaves_the_weights():
    policy = tiny_policy()
    learner = make_learner(policy)
    learner.update(make_batch())
    with torch.no_grad():
        policy.model.model.norm.weight[0] = NAN
    before = weights_of(policy)
    with pytest.raises(NonFiniteLossError, match=r"'ada', step 1: loss nan"):
        learner.update(make_batch())
    after = weights_of(policy)
    assert all(
        torch.equal(
            v,
            after[k],
        )
        for k, v in before.items()
        if v.isfinite().all()
    )
    assert all(p.grad is None for p in policy.model.parameters())


def test_a_reward_that_is_no_number_names_agent_and_step():
    with pytest.raises(NonFiniteLossError, match=r"'ada', step 0.*prompt 3, completion 0"):
        make_learner(tiny_policy()).update(make_batch(labelled=None))


@pytest.mark.parametrize("family", ["qwen3", "gpt_neox"])
def test_gradient_checkpointing_changes_memory_and_not_the_gradient(family):
    grads, calls = [], []
    for checkpointing in (False, True):
        policy = tiny_policy(family)
        learner = make_learner(policy, optimizer={"gradient_checkpointing": checkpointing})
        count = [0]

        def tick(*_, count=count):
            count[0] += 1

        policy.model.base_model.layers[0].mlp.register_forward_pre_hook(tick)
        seen = spy_on_gradients(learner)
        learner.update(make_batch())
        grads.append(seen[0])
        calls.append(count[0])
    assert_close(grads[1], grads[0], 1e-6)
    assert calls == [1, 2], "the layer runs again in the backward pass"


def test_dropout_stays_off():
    policy = tiny_policy("gpt_neox")
    for module in policy.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    policy.model.train()
    learner = make_learner(policy, optimizer={"gradient_checkpointing": True}, updates=2)
    seen = spy_on_gradients(learner)
    learner.update(make_batch())
    twin = make_learner(tiny_policy("gpt_neox"))
    twin_seen = spy_on_gradients(twin)
    twin.update(make_batch())
    assert_close(seen[0], twin_seen[0], 1e-6)


def test_settings_that_lack_something_are_refused():
    with pytest.raises(RecipeError, match="reference"):
        make_learner(tiny_policy(), kl=0.1)
    with pytest.raises(RecipeError, match="max_tokens"):
        Learner(
            tiny_policy(),
            OptimizerConfig(),
            GrpoConfig(loss="dr_grpo"),
            total_steps=1,
            temperature=1.0,
        )


@pytest.mark.parametrize(
    "change, message",
    [
        ({"rewards_pk": torch.zeros(P, K + 1)}, "rewards_pk"),
        ({"labelled_p": torch.ones(P + 1, dtype=torch.bool)}, "labelled_p"),
        ({"truncated": [[False] * K] * (P - 1)}, "truncated"),
        ({"engine_logps": [[torch.zeros(1)] * K] * P}, "engine_logps"),
        ({"token_ids": [[[3]] * K] * (P - 1) + [[[3]]]}, "token_ids"),
    ],
)
def test_a_batch_that_does_not_fit_together_is_refused(change, message):
    batch = make_batch()
    parts = {
        "prompt_ids": batch.prompt_ids,
        "token_ids": batch.token_ids,
        "rewards_pk": batch.rewards_pk,
    }
    with pytest.raises(RecipeError, match=message):
        LearnBatch(**{**parts, **change})


def test_empty_completions_count_as_sequences_without_tokens():
    batch = make_batch()
    tokens = [[list(t) for t in group] for group in batch.token_ids]
    tokens[0][1] = []
    plan = plan_update(
        LearnBatch(
            prompt_ids=batch.prompt_ids,
            token_ids=tokens,
            rewards_pk=REWARDS,
            labelled_p=LABELLED,
        ),
        GrpoConfig(loss="grpo"),
    )
    assert len(plan.rows) == 5
    first = plan.rows[0]
    assert first.weight == pytest.approx(1 / (P * K * len(first.token_ids)))
