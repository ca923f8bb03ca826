"""The policy loss against slow loops and numbers worked out by hand."""

import math

import pytest
import torch

from corl.errors import RecipeError
from corl.grpo import engine_mismatch, kl_k3, policy_loss, token_weights

LOSSES = ["grpo", "bnpo", "dr_grpo", "dapo"]
LENGTHS = torch.tensor([3, 1, 4, 0, 2])
MASK = torch.arange(4) < LENGTHS[:, None]


def _tensors(seed=0):
    g = torch.Generator().manual_seed(seed)
    shape = MASK.shape
    logps = (-2 * torch.rand(shape, generator=g, dtype=torch.float64)).requires_grad_()
    old = logps.detach() + 0.4 * torch.randn(shape, generator=g, dtype=torch.float64)
    ref = logps.detach() + 0.4 * torch.randn(shape, generator=g, dtype=torch.float64)
    weight = 0.5 + torch.rand(shape, generator=g, dtype=torch.float64)
    advantages = torch.randn(len(LENGTHS), generator=g, dtype=torch.float64)
    return logps, old, ref, weight, advantages


def _slow_loss(
    loss, logps, old, ref, weight, advantages, *, low, high, kl, max_tokens, unbiased_kl
):
    logps, rows, total = logps.detach(), [], 0
    for b, length in enumerate(LENGTHS.tolist()):
        row = 0.0
        for t in range(length):
            ratio = math.exp(logps[b, t] - old[b, t])
            clipped = min(max(ratio, 1 - low), 1 + high)
            a = advantages[b].item()
            term = -min(ratio * a, clipped * a) * weight[b, t].item()
            d = (ref[b, t] - logps[b, t]).item()
            row += term + kl * (math.exp(d) - d - 1) * (ratio if unbiased_kl else 1.0)
        rows.append(row)
        total += length
    if loss == "grpo":
        return sum(r / max(n, 1) for r, n in zip(rows, LENGTHS.tolist(), strict=True)) / len(rows)
    if loss == "dr_grpo":
        return sum(rows) / (len(rows) * max_tokens)
    return sum(rows) / total


@pytest.mark.parametrize("unbiased_kl", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_loss_equals_a_slow_loop(loss, unbiased_kl):
    logps, old, ref, weight, advantages = _tensors()
    settings = {"kl": 0.3, "max_tokens": 9, "unbiased_kl": unbiased_kl}
    got = policy_loss(
        logps,
        old,
        advantages,
        MASK,
        loss=loss,
        clip_low=0.1,
        clip_high=0.25,
        ref_logps_bt=ref,
        mismatch_weight_bt=weight,
        **settings,
    )
    want = _slow_loss(loss, logps, old, ref, weight, advantages, low=0.1, high=0.25, **settings)
    # Token weights are float32.
    assert got.loss.item() == pytest.approx(want, rel=1e-6)
    assert got.num_tokens == 10


def test_token_weights_by_hand():
    lengths = torch.tensor([3, 0, 1])
    assert token_weights(lengths, loss="grpo").tolist() == pytest.approx([1 / 9, 1 / 3, 1 / 3])
    assert token_weights(lengths, loss="bnpo").tolist() == pytest.approx([1 / 4] * 3)
    assert token_weights(lengths, loss="dapo").tolist() == pytest.approx([1 / 4] * 3)
    got = token_weights(lengths, loss="dr_grpo", max_tokens=10)
    assert got.tolist() == pytest.approx([1 / 30] * 3)


def test_token_weights_take_the_counts_of_the_whole_update():
    part = torch.tensor([2])
    counts = {"num_sequences": 5, "num_tokens": 20}
    assert token_weights(part, loss="grpo", **counts).item() == pytest.approx(1 / 10)
    assert token_weights(part, loss="bnpo", **counts).item() == pytest.approx(1 / 20)
    got = token_weights(part, loss="dr_grpo", max_tokens=8, **counts)
    assert got.item() == pytest.approx(1 / 40)


@pytest.mark.parametrize("loss", LOSSES)
def test_micro_batches_add_up_to_the_whole(loss):
    logps, old, ref, weight, advantages = _tensors()
    settings = {"ref_logps_bt": ref, "kl": 0.3, "mismatch_weight_bt": weight}
    whole = policy_loss(logps, old, advantages, MASK, loss=loss, max_tokens=9, **settings)
    (whole_grad,) = torch.autograd.grad(whole.loss, logps)
    weights = token_weights(
        LENGTHS, loss=loss, num_sequences=5, num_tokens=int(LENGTHS.sum()), max_tokens=9
    )
    parts = torch.zeros((), dtype=torch.float64)
    for rows in ([4, 0], [2], [1, 3]):
        parts = parts + (
            policy_loss(
                logps[rows],
                old[rows],
                advantages[rows],
                MASK[rows],
                ref_logps_bt=ref[rows],
                kl=0.3,
                mismatch_weight_bt=weight[rows],
                weights_b=weights[rows],
            ).loss
        )
    (parts_grad,) = torch.autograd.grad(parts, logps)
    torch.testing.assert_close(parts, whole.loss, rtol=1e-12, atol=0)
    torch.testing.assert_close(parts_grad, whole_grad, rtol=1e-12, atol=0)


def test_on_policy_gradient_is_advantage_times_weight():
    logps = torch.full((2, 2), -1.0, requires_grad=True)
    mask = torch.tensor([[True, True], [True, False]])
    out = policy_loss(logps, logps.detach(), torch.tensor([2.0, -1.0]), mask, loss="bnpo")
    out.loss.backward()
    torch.testing.assert_close(logps.grad, torch.tensor([[-2 / 3, -2 / 3], [1 / 3, 0.0]]))
    assert out.loss.item() == pytest.approx(-(2 + 2 - 1) / 3)


def test_the_clip_stops_only_what_goes_too_far_in_the_rewarded_direction():
    ratios = torch.tensor([[1.5], [1.5], [0.5], [0.5]])
    logps = ratios.log().requires_grad_()
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0])
    out = policy_loss(
        logps,
        torch.zeros(4, 1),
        advantages,
        torch.ones(4, 1).bool(),
        clip_low=0.2,
        clip_high=0.3,
        weights_b=torch.ones(4),
    )
    out.loss.backward()
    # held: ratio 1.5 with A > 0 (1.3), ratio 0.5 with A < 0 (0.8); the others run free
    assert out.loss.item() == pytest.approx(-1.3 + 1.5 - 0.5 + 0.8)
    torch.testing.assert_close(logps.grad, torch.tensor([[0.0], [1.5], [-0.5], [0.0]]))
    assert out.clip_share.item() == 0.5
    assert (out.ratio_min.item(), out.ratio_max.item()) == pytest.approx((0.5, 1.5))
    assert out.ratio_mean.item() == pytest.approx(1.0)


def test_a_ratio_inside_the_clip_is_not_counted_as_clipped():
    logps = torch.tensor([[1.29], [0.81]]).log()
    mask = torch.ones(2, 1).bool()
    out = policy_loss(
        logps, torch.zeros(2, 1), torch.tensor([1.0, -1.0]), mask, clip_low=0.2, clip_high=0.3
    )
    assert out.clip_share.item() == 0.0


def test_the_mismatch_weight_scales_the_policy_term_and_not_the_kl_term():
    logps = torch.full((1, 1), -1.0)
    ref = torch.full((1, 1), -2.0)
    out = policy_loss(
        logps,
        logps,
        torch.tensor([1.0]),
        torch.ones(1, 1).bool(),
        ref_logps_bt=ref,
        kl=0.5,
        mismatch_weight_bt=torch.full((1, 1), 3.0),
    )
    k3 = math.exp(-1) + 1 - 1
    assert out.loss.item() == pytest.approx(-3.0 + 0.5 * k3)
    assert out.kl_mean.item() == pytest.approx(k3)


def test_kl_is_reported_but_not_paid_at_weight_zero():
    logps = torch.full((1, 1), -1.0, requires_grad=True)
    mask = torch.ones(1, 1).bool()
    out = policy_loss(
        logps, logps.detach(), torch.zeros(1), mask, ref_logps_bt=torch.zeros(1, 1), kl=0.0
    )
    assert out.kl_mean.item() == pytest.approx(math.e - 2)
    assert out.loss.item() == 0.0


def test_kl_k3_is_zero_at_equality_and_positive_on_both_sides():
    got = kl_k3(torch.tensor([-1.0, -1.0, -1.0]), torch.tensor([-1.0, 0.0, -2.0]))
    assert got.tolist() == pytest.approx([0.0, math.e - 2, 1 / math.e], abs=1e-7)


@pytest.mark.parametrize("unbiased, slope", [(True, -0.5), (False, 1 - math.exp(0.5))])
def test_kl_gradient_pulls_towards_the_reference(unbiased, slope):
    logps = torch.tensor([[-1.0]], requires_grad=True)
    out = policy_loss(
        logps,
        logps.detach(),
        torch.zeros(1),
        torch.ones(1, 1).bool(),
        ref_logps_bt=torch.tensor([[-0.5]]),
        kl=2.0,
        unbiased_kl=unbiased,
    )
    out.loss.backward()
    assert out.loss.item() == pytest.approx(2.0 * (math.exp(0.5) - 1.5))
    assert logps.grad.item() == pytest.approx(2.0 * slope)


def test_nothing_behind_the_mask_is_read():
    logps, old, ref, weight, advantages = _tensors()
    settings = {"kl": 0.3, "loss": "grpo"}
    clean = policy_loss(
        logps, old, advantages, MASK, ref_logps_bt=ref, mismatch_weight_bt=weight, **settings
    )
    (clean_grad,) = torch.autograd.grad(clean.loss, logps)
    nan = float("nan")
    dirty_logps = logps.detach().masked_fill(~MASK, nan).requires_grad_()
    old, ref, weight = (t.masked_fill(~MASK, nan) for t in (old, ref, weight))
    dirty = policy_loss(
        dirty_logps, old, advantages, MASK, ref_logps_bt=ref, mismatch_weight_bt=weight, **settings
    )
    (dirty_grad,) = torch.autograd.grad(dirty.loss, dirty_logps)
    assert dirty.loss.item() == clean.loss.item()
    assert torch.equal(dirty_grad, clean_grad)
    assert dirty.kl_mean.item() == clean.kl_mean.item()
    assert dirty.ratio_max.item() == clean.ratio_max.item()


def test_old_reference_and_mismatch_are_constants():
    logps, old, ref, weight, advantages = _tensors()
    for tensor in (old, ref, weight):
        tensor.requires_grad_()
    out = policy_loss(
        logps, old, advantages, MASK, ref_logps_bt=ref, kl=0.1, mismatch_weight_bt=weight
    )
    out.loss.backward()
    assert logps.grad is not None
    assert (old.grad, ref.grad, weight.grad) == (None, None, None)


def test_an_all_masked_batch_has_loss_zero_and_ratio_one():
    logps = torch.zeros(2, 3, requires_grad=True)
    out = policy_loss(logps, logps.detach(), torch.ones(2), torch.zeros(2, 3).bool())
    out.loss.backward()
    assert out.loss.item() == 0.0
    assert logps.grad.eq(0).all()
    assert (out.ratio_min.item(), out.ratio_max.item(), out.clip_share.item()) == (1.0, 1.0, 0.0)


def test_settings_that_lack_something_are_refused():
    logps = torch.zeros(1, 1)
    mask = torch.ones(1, 1).bool()
    with pytest.raises(RecipeError, match="reference"):
        policy_loss(logps, logps, torch.zeros(1), mask, kl=0.1)
    with pytest.raises(RecipeError, match="max_tokens"):
        policy_loss(logps, logps, torch.zeros(1), mask, loss="dr_grpo")
    with pytest.raises(RecipeError, match="'ppo'"):
        token_weights(torch.tensor([1]), loss="ppo")  # type: ignore[arg-type]


def test_mismatch_weights_are_truncated_ratios():
    learner = torch.tensor([[-1.0, -1.0, -1.0, -1.0]], requires_grad=True)
    engine = torch.tensor([[-1.5, -0.5, -9.0, -1.0]])
    got = engine_mismatch(learner, engine, torch.ones(1, 4).bool(), cap=3.0)
    want = [math.exp(0.5), math.exp(-0.5), 3.0, 1.0]
    assert got.weights_bt[0].tolist() == pytest.approx(want)
    assert not got.weights_bt.requires_grad
    assert got.ratios_n.max().item() == pytest.approx(math.exp(8.0), rel=1e-5)


def test_mismatch_of_a_nan_token_is_neutral_and_counted():
    nan = float("nan")
    learner = torch.tensor([[-1.0, -1.0, -1.0]])
    engine = torch.tensor([[nan, -2.0, nan]])
    mask = torch.tensor([[True, True, False]])
    got = engine_mismatch(learner, engine, mask)
    assert got.weights_bt[0].tolist() == pytest.approx([1.0, math.e, 1.0])
    assert got.num_nan == 1, "a NaN behind the mask is no token"
    assert got.ratios_n.tolist() == pytest.approx([math.e])
    strict = engine_mismatch(learner, engine, mask, cap=0.5)
    assert strict.weights_bt[0].tolist() == [1.0, 0.5, 1.0]


def test_mismatch_reads_an_impossible_token_as_the_cap():
    got = engine_mismatch(
        torch.tensor([[-1.0]]), torch.tensor([[-math.inf]]), torch.ones(1, 1).bool(), cap=2.0
    )
    assert got.weights_bt.item() == 2.0
    assert got.num_nan == 0
