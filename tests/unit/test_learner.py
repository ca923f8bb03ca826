"""The learner: what is forwarded, what is averaged over, and what its gradient is."""

import math

import pytest
import torch
from learner_cases import (
    LABELLED,
    LOSSES,
    NAN,
    REWARDS,
    K,
    P,
    assert_close,
    make_batch,
    make_learner,
    slow_gradient,
    spy_on_gradients,
    spy_on_rows,
)
from tiny_policies import VOCABULARY, frozen_reference, same_bytes, tiny_policy, weights_of

from corl.config import GrpoConfig
from corl.grpo import group_advantages, reinforce_pp_advantages
from corl.policy.learn_batch import LearnBatch, plan_update


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_dropping_silent_groups_leaves_loss_and_gradient_of_the_full_batch(loss, scale):
    policy, batch = tiny_policy(), make_batch()
    advantages = group_advantages(REWARDS, scale=scale, labelled_p=LABELLED)
    want_loss, want = slow_gradient(policy, batch, advantages, loss=loss, temperature=0.9)
    learner = make_learner(policy, loss=loss, scale=scale)
    seen = spy_on_gradients(learner)
    metrics = learner.update(batch)
    assert_close(seen[0], want)
    assert metrics["loss"] == pytest.approx(want_loss, abs=1e-6)
    assert metrics["grad_norm"] == pytest.approx(want.norm().item(), rel=1e-4)


def test_silent_groups_are_never_forwarded():
    policy, batch = tiny_policy(), make_batch()
    learner = make_learner(policy)
    seen = spy_on_rows(policy)
    metrics = learner.update(batch)
    wanted = [batch.prompt_ids[p] + tokens for p in (0, 2) for tokens in batch.token_ids[p]]
    assert len(seen) == len(wanted) == 6
    for row in wanted:  # nothing is predicted from the last token
        assert any(other[: len(row) - 1] == row[:-1] for other in seen)
    assert metrics["tokens_forwarded"] == sum(map(len, wanted))
    assert metrics["groups_flat"] == 1
    assert metrics["groups_unlabelled"] == 1
    assert metrics["groups_forwarded"] == 2


# The KL gradient to an unrelated model is large; float32 sums differ by more of the rest.
@pytest.mark.parametrize("kl, tolerance", [(0.0, 1e-6), (0.2, 5e-6)])
@pytest.mark.parametrize("loss", LOSSES)
def test_small_micro_batches_give_the_gradient_of_one_large_one(loss, kl, tolerance):
    results = []
    for budget in (1, 20, 10_000):
        policy = tiny_policy()
        reference = frozen_reference(tiny_policy(seed=1), temperature=0.9)
        learner = make_learner(
            policy,
            loss=loss,
            kl=kl,
            reference=reference,
            optimizer={"tokens_per_microbatch": budget},
        )
        seen = spy_on_gradients(learner)
        metrics = learner.update(make_batch(engine=lambda tokens: torch.full((len(tokens),), -3.0)))
        results.append((seen[0], metrics))
    for grads, metrics in results[:2]:
        assert_close(grads, results[2][0], tolerance)
        assert metrics == pytest.approx(results[2][1], rel=1e-4, abs=1e-6)


def test_leaving_flat_groups_out_of_the_averages_scales_the_gradient():
    batch = make_batch()
    lengths = torch.tensor([[len(t) for t in group] for group in batch.token_ids])
    for loss, factor in (
        ("grpo", 2.0),
        ("dr_grpo", 2.0),
        ("bnpo", lengths.sum() / lengths[[0, 2]].sum()),
    ):
        grads = []
        for skip in (False, True):
            learner = make_learner(tiny_policy(), loss=loss, skip_flat_in_denominators=skip)
            seen = spy_on_gradients(learner)
            learner.update(batch)
            grads.append(seen[0])
        assert_close(grads[1], grads[0] * factor)


def test_kl_flows_for_flat_and_unlabelled_groups_as_well():
    policy, batch = tiny_policy(), make_batch()
    start = tiny_policy(seed=1)
    advantages = group_advantages(REWARDS, labelled_p=LABELLED)
    want_loss, want = slow_gradient(
        policy, batch, advantages, loss="bnpo", temperature=0.9, kl=0.3, reference=start.model
    )
    reference = frozen_reference(start, temperature=0.9)
    learner = make_learner(policy, kl=0.3, reference=reference)
    seen, rows = spy_on_gradients(learner), spy_on_rows(policy)
    metrics = learner.update(batch)
    assert_close(seen[0], want)
    assert metrics["loss"] == pytest.approx(want_loss, rel=2e-6)
    assert len(rows) == P * K
    assert metrics["kl"] > 0


def test_kl_alone_learns_from_a_batch_of_flat_groups():
    policy = tiny_policy()
    learner = make_learner(
        policy, kl=0.3, reference=frozen_reference(tiny_policy(seed=1), temperature=0.9)
    )
    before = weights_of(policy)
    metrics = learner.update(make_batch(rewards=torch.zeros(P, K), labelled=None))
    assert not same_bytes(before, weights_of(policy))
    assert metrics["loss"] == pytest.approx(0.3 * metrics["kl"], rel=1e-5)


def test_kl_to_ones_own_start_is_zero_at_the_start():
    policy = tiny_policy()
    learner = make_learner(policy, kl=0.3, reference=frozen_reference(policy, temperature=0.9))
    assert learner.update(make_batch())["kl"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    "rewards, labelled",
    [
        (torch.full((P, K), 0.1), None),
        (torch.rand(P, K), torch.zeros(P, dtype=torch.bool)),
    ],
)
def test_nothing_to_learn_leaves_every_byte_and_moves_the_schedule(rewards, labelled):
    policy = tiny_policy()
    learner = make_learner(policy, optimizer={"weight_decay": 0.5})
    # With moments from an earlier update, a step on zero gradients would move the weights.
    learner.update(make_batch())
    before, rows = weights_of(policy), spy_on_rows(policy)
    state = learner.state_dict()["optimizer"]["state"]
    moments = {k: v["exp_avg"].clone() for k, v in state.items()}
    rate = learner.learning_rate
    metrics = learner.update(make_batch(rewards=rewards, labelled=labelled))
    assert same_bytes(before, weights_of(policy))
    after = learner.state_dict()["optimizer"]["state"]
    assert all(torch.equal(moments[k], v["exp_avg"]) for k, v in after.items())
    assert rows == []
    assert metrics["learning_rate"] == rate
    assert learner.learning_rate < rate
    assert (metrics["loss"], metrics["grad_norm"], metrics["tokens_forwarded"]) == (0.0, 0.0, 0)
    assert learner.step == 2


def test_rewards_of_an_unlabelled_group_do_not_matter():
    results = []
    for value in (0.0, 7.0, NAN):
        policy = tiny_policy()
        rewards = REWARDS.clone()
        rewards[3] = torch.tensor([value, 1.0, 2.0])
        make_learner(policy, scale="batch").update(make_batch(rewards=rewards))
        results.append(weights_of(policy))
    assert same_bytes(results[0], results[1])
    assert same_bytes(results[0], results[2])


@pytest.mark.parametrize("loss", LOSSES)
def test_masked_truncated_completions_leave_the_tokens_and_stay_in_the_sequences(loss):
    truncated = [[False, True, False], [False] * 3, [True, False, False], [False] * 3]
    policy, batch = tiny_policy(), make_batch(truncated=truncated)
    advantages = group_advantages(REWARDS, labelled_p=LABELLED)
    kept = [[not cut for cut in group] for group in truncated]
    want_loss, want = slow_gradient(
        policy, batch, advantages, loss=loss, temperature=0.9, kept=kept
    )
    learner = make_learner(policy, loss=loss, mask_truncated=True)
    seen, rows = spy_on_gradients(learner), spy_on_rows(policy)
    metrics = learner.update(batch)
    assert_close(seen[0], want)
    assert metrics["loss"] == pytest.approx(want_loss, abs=1e-6)
    assert len(rows) == 4


def test_truncated_completions_are_learned_from_by_default():
    policy = tiny_policy()
    learner = make_learner(policy)
    rows = spy_on_rows(policy)
    learner.update(make_batch(truncated=[[True] * K] * P))
    assert len(rows) == 6


def test_reinforce_pp_forwards_unanimous_groups_since_they_teach():
    policy, batch = tiny_policy(), make_batch()
    advantages = reinforce_pp_advantages(REWARDS, labelled_p=LABELLED)
    assert advantages[1].ne(0).all()
    want_loss, want = slow_gradient(policy, batch, advantages, loss="bnpo", temperature=0.9)
    learner = make_learner(policy, estimator="reinforce_pp")
    seen = spy_on_gradients(learner)
    metrics = learner.update(batch)
    assert_close(seen[0], want)
    assert metrics["groups_forwarded"] == 3
    assert metrics["loss"] == pytest.approx(want_loss, abs=1e-6)


def test_the_temperature_divides_the_logits():
    policy, batch = tiny_policy(), make_batch()
    advantages = group_advantages(REWARDS, labelled_p=LABELLED)
    _, want = slow_gradient(policy, batch, advantages, loss="bnpo", temperature=1.7)
    learner = make_learner(policy, temperature=1.7)
    seen = spy_on_gradients(learner)
    learner.update(batch)
    assert_close(seen[0], want)


def test_an_engine_that_agrees_changes_nothing_and_nan_tokens_are_neutral_and_counted():
    """Engine numbers: none, the learner's own with NaN holes, and twice as likely as true."""
    plain = make_learner(tiny_policy())
    plain_grads = spy_on_gradients(plain)
    plain.update(make_batch())

    policy = tiny_policy()
    learner = make_learner(policy)
    batch = make_batch()
    own = [
        [learner._score([prompt], [tokens]).logps_bt[0].detach() for tokens in group]
        for prompt, group in zip(batch.prompt_ids, batch.token_ids, strict=True)
    ]
    holes = 0
    for p, group in enumerate(own):
        for logps in group:
            logps[0] = NAN
            holes += p in (0, 2)
    seen = spy_on_gradients(learner)
    metrics = learner.update(
        LearnBatch(
            prompt_ids=batch.prompt_ids,
            token_ids=batch.token_ids,
            rewards_pk=REWARDS,
            labelled_p=LABELLED,
            engine_logps=own,
        )
    )
    assert_close(seen[0], plain_grads[0], 1e-5)
    assert metrics["mismatch_nan_tokens"] == holes == 6
    for key in ("mismatch_mean", "mismatch_min", "mismatch_max"):
        assert metrics[key] == pytest.approx(1.0, abs=1e-5)


def test_an_engine_of_another_opinion_reweights_tokens_up_to_the_cap():
    grads = []
    for engine, cap in ((None, 3.0), (lambda t: torch.full((len(t),), -1e3), 2.5)):
        learner = make_learner(tiny_policy(), ratio_cap=cap)
        seen = spy_on_gradients(learner)
        learner.update(make_batch(engine=engine))
        grads.append(seen[0])
    assert_close(grads[1], 2.5 * grads[0])


def test_all_nan_engine_numbers_leave_no_mismatch_statistics():
    learner = make_learner(tiny_policy())
    metrics = learner.update(make_batch(engine=lambda t: torch.full((len(t),), NAN)))
    assert metrics["mismatch_nan_tokens"] > 6
    assert "mismatch_mean" not in metrics


def test_several_updates_measure_their_ratio_against_the_first():
    policy, batch = tiny_policy(), make_batch()
    learner = make_learner(policy, updates=3, optimizer={"learning_rate": 0.05})
    seen = spy_on_gradients(learner)
    metrics = learner.update(batch)
    assert len(seen) == 3
    assert learner.step == 1
    assert metrics["ratio_max"] > 1.2
    assert metrics["ratio_min"] < 0.8
    assert 0 < metrics["clip_share"] < 1

    # The same by hand for the second update: old log-probabilities from the start.
    twin = tiny_policy()
    one = make_learner(twin, optimizer={"learning_rate": 0.05})
    plan = plan_update(batch, GrpoConfig())
    rows = [(r.prompt_ids, r.token_ids) for r in plan.rows]
    old = [one._score([p], [t]).logps_bt.detach() for p, t in rows]
    one.update(batch)
    objective = 0
    for row, (prompt, tokens), before in zip(plan.rows, rows, old, strict=True):
        ratio = torch.exp(one._score([prompt], [tokens]).logps_bt - before)
        a = row.advantage
        clipped = ratio.clamp(0.8, 1.2)
        objective = objective - row.weight * torch.minimum(ratio * a, clipped * a).sum()
    grads = torch.autograd.grad(objective, list(twin.model.parameters()))
    assert_close(seen[1], torch.cat([g.flatten() for g in grads]), 1e-4)


def test_one_update_is_on_policy():
    metrics = make_learner(tiny_policy()).update(make_batch())
    assert metrics["ratio_min"] == metrics["ratio_max"] == 1.0
    assert metrics["clip_share"] == 0.0
    assert 0 < metrics["token_entropy"] < math.log(VOCABULARY)


def test_the_gradient_is_clipped_but_reported_unclipped():
    learner = make_learner(tiny_policy(), optimizer={"grad_clip": 1e-3})
    seen = spy_on_gradients(learner)
    metrics = learner.update(make_batch())
    assert seen[0].norm().item() == pytest.approx(1e-3, rel=1e-4)
    assert metrics["grad_norm"] > 1e-2


def test_the_rate_of_the_schedule_is_the_one_that_is_used():
    policy = tiny_policy()
    learner = make_learner(policy, optimizer={"warmup_share": 0.5, "betas": (0.0, 0.0)})
    before = weights_of(policy)
    metrics = learner.update(make_batch())
    assert metrics["learning_rate"] == pytest.approx(1e-2 / 5)
    # AdamW without memory moves every weight with a gradient by the rate itself.
    moved = max((before[k] - v).abs().max().item() for k, v in weights_of(policy).items())
    assert moved == pytest.approx(1e-2 / 5, rel=1e-3)
