"""Our attention gives what sdpa gives, and as good gradients in bfloat16."""

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from corl.policy import attention
from corl.policy.attention import attend, lend_room

# Query heads, key heads, queries, keys, mask.
CASES = [
    (4, 2, 9, 9, None),
    (4, 4, 9, 9, None),
    (4, 2, 1, 9, None),
    (4, 2, 9, 9, "bool"),
    (4, 4, 1, 9, "bool"),
    (4, 2, 9, 9, "additive"),
    (6, 1, 5, 9, "bool"),
]


class _Layer(torch.nn.Module):
    def __init__(self, repeats, is_causal=True):
        super().__init__()
        self.num_key_value_groups = repeats
        self.is_causal = is_causal


def _case(heads, groups, queries, keys, mask, dtype):
    g = torch.Generator().manual_seed(1)
    shapes = [(2, heads, queries, 16), (2, groups, keys, 16), (2, groups, keys, 16)]
    tensors = [torch.randn(shape, generator=g).to(dtype).requires_grad_() for shape in shapes]
    seen = None
    if mask is not None:
        seen = torch.rand(2, 1, queries, keys, generator=g) < 0.6
        seen[..., 0] = True
    if mask == "additive":
        seen = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(dtype).min).to(dtype)
    return _Layer(heads // groups), tensors, seen


def _run(function, layer, tensors, mask):
    attended, _ = function(layer, *tensors, mask)
    weights = torch.arange(attended.numel()).view(attended.shape).cos()
    grads = torch.autograd.grad((attended.float() * weights).sum(), tensors)
    return [attended, *grads]


@pytest.fixture
def fused(monkeypatch):
    """Counts the calls that went on to sdpa."""
    calls = []

    def spy(*args, **kwargs):
        calls.append(args[1].shape)
        return sdpa_attention_forward(*args, **kwargs)

    monkeypatch.setattr(attention, "sdpa_attention_forward", spy)
    return calls


@pytest.mark.parametrize("case", CASES)
def test_float32_products_equal_sdpa(case, fused):
    layer, tensors, mask = _case(*case, torch.float32)
    ours = _run(attend, layer, tensors, mask)
    assert not fused
    theirs = _run(sdpa_attention_forward, layer, tensors, mask)
    assert all((a - b).abs().max() < 2e-6 for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("mask", [None, "bool", "additive"])
def test_room_behind_the_cache_is_lent_and_never_seen(mask, fused):
    layer, (query, key, value), seen = _case(4, 2, 1, 9, mask, torch.bfloat16)
    roomy = [torch.cat([each, torch.full_like(each, 7.0)], dim=2) for each in (key, value)]
    with torch.no_grad():
        plain, _ = attend(layer, query, key, value, seen)
        lent = [lend_room(each[:, :, :9], each) for each in roomy]
        roomier, _ = attend(layer, query, *lent, seen)
    assert not fused
    assert torch.equal(plain, roomier)


@pytest.mark.parametrize("case", CASES)
def test_bfloat16_products_err_no_more_than_sdpa_does(case, fused):
    layer, tensors, mask = _case(*case, torch.bfloat16)
    exact_mask = mask.float() if mask is not None and mask.is_floating_point() else mask
    exact = _run(sdpa_attention_forward, layer, [t.float() for t in tensors], exact_mask)
    ours = _run(attend, layer, tensors, mask)
    assert not fused
    theirs = _run(sdpa_attention_forward, layer, tensors, mask)
    for mine, other, true in zip(ours, theirs, exact, strict=True):
        assert mine.dtype == torch.bfloat16 and mine.shape == true.shape
        scale = true.norm()
        assert (mine - true).norm() / scale < max(1.5 * (other - true).norm() / scale, 0.01)


def test_long_rows_and_unknown_arguments_go_to_sdpa(fused, monkeypatch):
    layer, tensors, _ = _case(4, 2, 9, 9, None, torch.bfloat16)
    attend(layer, *tensors, None, position_bias=torch.zeros(1, 1, 9, 9, dtype=torch.bfloat16))
    assert len(fused) == 1
    monkeypatch.setattr(attention, "_LONGEST", {torch.bfloat16: 8})
    attend(layer, *tensors, None)
    assert len(fused) == 2
    with torch.no_grad():  # one query alone keeps no matrix of scores, however many keys
        attend(layer, tensors[0][:, :, :1], *tensors[1:], None)
    assert len(fused) == 2


def test_a_tower_that_is_not_causal_sees_everything():
    _, tensors, _ = _case(4, 4, 9, 9, None, torch.bfloat16)
    layer = _Layer(1, is_causal=False)
    ours, _ = attend(layer, *tensors, None)
    theirs, _ = sdpa_attention_forward(layer, *tensors, None)
    assert (ours - theirs).abs().max() < 0.02
