"""The learning rate, AdamW's groups and clipping, and stochastic rounding."""

import io
import math

import pytest
import torch
from torch import nn

from corl.config import OptimizerConfig
from corl.errors import RecipeError
from corl.policy.optimizer import build_optimizer, clip_gradients, learning_rate_at
from corl.policy.stochastic_rounding import StochasticAdamW, round_stochastically


def _rates(total, **settings):
    return [learning_rate_at(s, total, peak=1.0, **settings) for s in range(total + 2)]


def test_the_rate_warms_up_to_the_peak_and_falls_along_a_cosine_to_the_floor():
    got = _rates(9, warmup_share=0.5, floor_share=0.2)
    # 4.5 -> 5 steps of warm-up; then progress 1/4, 2/4, 3/4, 1 of the cosine
    cosine = [0.2 + 0.8 * 0.5 * (1 + math.cos(math.pi * k / 4)) for k in (1, 2, 3, 4)]
    assert got == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, *cosine, 0.2, 0.2])


def test_no_step_is_wasted_at_rate_zero_and_the_last_one_is_at_the_floor():
    assert _rates(100)[:4] == pytest.approx([1 / 3, 2 / 3, 1.0, 0.9997638], abs=1e-6)
    assert _rates(100)[99] == pytest.approx(0.1)
    assert _rates(6)[0] == 1.0, "one step of warm-up is the peak itself"


def test_the_rate_without_warm_up_starts_at_the_peak():
    assert _rates(3, warmup_share=0.0, floor_share=0.0)[:3] == pytest.approx([1.0, 0.5, 0.0])
    assert _rates(1, warmup_share=0.0)[0] == 1.0


def test_warm_up_steps_do_not_grow_by_float_noise():
    assert 0.07 * 100 > 7
    assert learning_rate_at(6, 100, peak=1.0, warmup_share=0.07) == 1.0


def test_a_whole_run_may_be_warm_up():
    assert _rates(2, warmup_share=1.0)[:2] == [0.5, 1.0]


class _Net(nn.Module):
    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.matrix = nn.Parameter(torch.ones(2, 2, dtype=dtype))
        self.vector = nn.Parameter(torch.ones(2, dtype=dtype))
        self.frozen = nn.Parameter(torch.ones(2, dtype=dtype), requires_grad=False)


@pytest.mark.parametrize("kind", ["adamw", "adamw_bf16"])
def test_matrices_decay_and_vectors_do_not(kind):
    dtype = torch.float32 if kind == "adamw" else torch.bfloat16
    net = _Net(dtype)
    config = OptimizerConfig(kind=kind, learning_rate=0.5, weight_decay=0.5)
    optimizer = build_optimizer(net, config)
    for param in (net.matrix, net.vector):
        param.grad = torch.zeros_like(param)
    optimizer.step()
    assert net.matrix.tolist() == [[0.75, 0.75], [0.75, 0.75]]
    assert net.vector.tolist() == [1.0, 1.0]
    assert net.frozen.tolist() == [1.0, 1.0]


def test_adamw_takes_its_settings_from_the_recipe():
    config = OptimizerConfig(learning_rate=1e-3, betas=(0.8, 0.7), epsilon=1e-5)
    group = build_optimizer(_Net(), config).param_groups[0]
    assert (group["lr"], group["betas"], group["eps"]) == (1e-3, (0.8, 0.7), 1e-5)


def test_weights_of_the_wrong_dtype_are_refused():
    with pytest.raises(RecipeError, match=r"bfloat16.*adamw_bf16"):
        build_optimizer(_Net(torch.bfloat16), OptimizerConfig(kind="adamw"))
    with pytest.raises(RecipeError, match="float32"):
        build_optimizer(_Net(), OptimizerConfig(kind="adamw_bf16"))
    with pytest.raises(RecipeError, match="trainable"):
        build_optimizer(_Net().requires_grad_(False), OptimizerConfig())


def test_clipping_scales_the_total_norm_and_reports_the_norm_before():
    one, two = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    one.grad, two.grad = torch.tensor([3.0]), torch.tensor([4.0])
    assert clip_gradients([one, two], 2.5) == pytest.approx(5.0)
    assert (one.grad.item(), two.grad.item()) == pytest.approx((1.5, 2.0))
    assert clip_gradients([one, two], 2.6) == pytest.approx(2.5)
    assert (one.grad.item(), two.grad.item()) == pytest.approx((1.5, 2.0))


def test_clipping_returns_a_norm_that_is_no_number_and_touches_nothing():
    one, two = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    one.grad, two.grad = torch.tensor([float("nan")]), torch.tensor([4.0])
    assert math.isnan(clip_gradients([one, two], 1.0))
    assert two.grad.item() == 4.0
    assert clip_gradients([nn.Parameter(torch.zeros(1))], 1.0) == 0.0


def test_rounding_keeps_the_mean_and_only_uses_the_two_neighbours():
    g = torch.Generator().manual_seed(0)
    low, step = 1.0, 2.0**-7
    for share, sign in ((0.25, 1), (0.9, 1), (0.25, -1)):
        values = torch.full((40_000,), sign * (low + share * step))
        rounded = round_stochastically(values, g)
        assert rounded.dtype == torch.bfloat16
        assert set(rounded.abs().tolist()) == {low, low + step}
        up = (rounded.abs() > low).float().mean().item()
        assert up == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 40_000))


def test_rounding_keeps_bfloat16_numbers_and_what_is_not_finite():
    g = torch.Generator().manual_seed(0)
    kept = torch.tensor([0.0, -0.0, 1.0, -3.5, 2.0**-130, math.inf, -math.inf]).repeat(200)
    assert torch.equal(round_stochastically(kept, g).float(), kept)
    # NaN has many bit patterns; adding to the largest ones would carry into the sign.
    nans = torch.tensor([0x7FC00000, 0x7FFFFFFF, -1], dtype=torch.int32).view(torch.float32)
    assert round_stochastically(nans.repeat(200), g).isnan().all()


def _bf16_run(steps, *, size=4096, lr=1e-4, seed=0, grad=1.0):
    param = nn.Parameter(torch.ones(size, dtype=torch.bfloat16))
    optimizer = StochasticAdamW(
        [param], lr=lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0, seed=seed
    )
    for _ in range(steps):
        param.grad = torch.full_like(param, grad)
        optimizer.step()
    return param, optimizer


def test_an_update_below_half_a_step_moves_the_weights_on_average():
    assert torch.tensor(1 - 1e-4, dtype=torch.bfloat16) == 1.0, "nearest rounding keeps 1"
    param, _ = _bf16_run(steps=20)
    # A constant gradient moves AdamW by lr a step: 20 x 1e-4.
    moved = (1.0 - param.float()).mean().item()
    deviation = math.sqrt(20 * 1e-4 * 2**-8 / 4096)
    assert moved == pytest.approx(20e-4, abs=5 * deviation)


def test_stochastic_adamw_follows_adamw_where_rounding_is_small():
    torch.manual_seed(0)
    start = torch.randn(64, 64)
    exact, rounded = nn.Parameter(start.clone()), nn.Parameter(start.bfloat16())
    settings = {"lr": 0.05, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
    one = torch.optim.AdamW([exact], **settings)
    other = StochasticAdamW([rounded], seed=0, **settings)
    for _ in range(10):
        gradient = torch.randn(64, 64).bfloat16()
        exact.grad, rounded.grad = gradient.float(), gradient
        one.step()
        other.step()
    difference = rounded.float() - exact
    moved = (exact - start).norm()
    assert difference.norm() < 0.1 * moved
    assert difference.mean().abs() < 2e-3 * moved / 64 + 5e-4


def test_stochastic_adamw_holds_two_bfloat16_moments_and_nothing_large_beside():
    _, optimizer = _bf16_run(steps=1)
    (state,) = optimizer.state.values()
    tensors = {k: v.dtype for k, v in state.items() if isinstance(v, torch.Tensor)}
    assert tensors == {"exp_avg": torch.bfloat16, "exp_avg_sq": torch.bfloat16}


def test_noise_depends_on_seed_and_step_alone():
    one, _ = _bf16_run(steps=3, seed=1)
    torch.rand(10)
    same, _ = _bf16_run(steps=3, seed=1)
    other, _ = _bf16_run(steps=3, seed=2)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    once, optimizer = _bf16_run(steps=1)
    first = (once < 1).clone()
    with torch.no_grad():
        once.fill_(1.0)
    once.grad = torch.ones_like(once)
    optimizer.step()
    assert not torch.equal(once < 1, first), "each step draws anew"


def test_stochastic_adamw_continues_bit_for_bit_from_a_saved_state():
    whole, _ = _bf16_run(steps=5)
    param, optimizer = _bf16_run(steps=3)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    param = nn.Parameter(param.detach().clone())
    resumed = StochasticAdamW([param], lr=9.0, betas=(0.1, 0.1), eps=1.0, weight_decay=0.3, seed=77)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for _ in range(2):
        param.grad = torch.ones_like(param)
        resumed.step()
    assert torch.equal(param, whole)


def test_large_tensors_are_updated_in_pieces_and_noncontiguous_gradients_are_read(monkeypatch):
    import corl.policy.stochastic_rounding as module

    monkeypatch.setattr(module, "_PIECE", 5)
    param = nn.Parameter(torch.zeros(3, 4, dtype=torch.bfloat16))
    param.grad = torch.arange(-6, 6).bfloat16().view(4, 3).T
    optimizer = StochasticAdamW(
        [param], lr=1.0, betas=(0.9, 0.9), eps=1e-8, weight_decay=0.0, seed=0
    )
    optimizer.step()
    torch.testing.assert_close(param.float(), -param.grad.sign().float(), atol=0.01, rtol=0)
    with pytest.raises(TypeError, match="closure"):
        optimizer.step(lambda: 0.0)


def test_stochastic_adamw_leaves_parameters_without_a_gradient_alone():
    idle, busy = (nn.Parameter(torch.ones(8, dtype=torch.bfloat16)) for _ in range(2))
    busy.grad = torch.ones_like(busy)
    optimizer = StochasticAdamW(
        [idle, busy], lr=0.1, betas=(0.9, 0.9), eps=1e-8, weight_decay=0.5, seed=0
    )
    optimizer.step()
    assert idle.eq(1).all()
    assert busy.lt(1).all()
    assert idle not in optimizer.state
