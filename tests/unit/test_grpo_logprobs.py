"""Chunked log-probabilities against the dense computation."""

import pytest
import torch
import torch.nn.functional as F

from corl.grpo import selected_logps

N, H, V = 13, 6, 29


def _inputs(dtype=torch.float32, bias=True, size=1.0):
    g = torch.Generator().manual_seed(3)
    hidden = (size * torch.randn(N, H, generator=g)).to(dtype).requires_grad_()
    weight = torch.randn(V, H, generator=g).to(dtype).requires_grad_()
    bias_v = torch.randn(V, generator=g).to(dtype).requires_grad_() if bias else None
    targets = torch.randint(V, (N,), generator=g)
    # Two equal targets: their gradients must add up.
    targets[1] = targets[0]
    upstream = torch.randn(N, generator=g)
    return hidden, weight, bias_v, targets, upstream


def _dense(hidden, weight, bias, targets, *, temperature=1.0, softcap=None, scale=1.0):
    logits = F.linear(hidden, weight, bias)
    if logits.dtype == torch.bfloat16:
        logits = logits.float()
    logits = logits * scale
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    all_nv = torch.log_softmax(logits / temperature, dim=-1)
    entropy = -(all_nv.exp() * all_nv).sum(-1)
    return all_nv.gather(1, targets[:, None])[:, 0], entropy


def _compare(inputs, tolerance, chunk_tokens, **settings):
    *tensors, targets, upstream = inputs
    leaves = [t for t in tensors if t is not None]
    want, want_entropy = _dense(*tensors, targets, **settings)
    got, entropy = selected_logps(*tensors, targets, chunk_tokens=chunk_tokens, **settings)
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(entropy, want_entropy, rtol=tolerance, atol=tolerance)
    got_grads = torch.autograd.grad(got, leaves, upstream.to(got.dtype))
    want_grads = torch.autograd.grad(want, leaves, upstream.to(want.dtype))
    for one, other in zip(got_grads, want_grads, strict=True):
        assert one.dtype == other.dtype
        assert (one - other).norm() <= tolerance * other.norm()


@pytest.mark.parametrize("chunk_tokens", [1, 4, 13, 1000, None])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "settings",
    [{}, {"temperature": 0.7}, {"softcap": 2.0, "temperature": 1.3}, {"scale": 0.3, "softcap": 3}],
    ids=["plain", "temperature", "softcap", "scale"],
)
def test_values_and_gradients_equal_the_dense_computation(chunk_tokens, bias, settings):
    _compare(_inputs(bias=bias), 1e-6, chunk_tokens, **settings)


def test_gradcheck_in_double_precision():
    hidden, weight, bias, targets, _ = _inputs(torch.float64)
    assert torch.autograd.gradcheck(
        lambda h, w, b: selected_logps(
            h, w, b, targets, temperature=0.7, softcap=2.0, scale=0.5, chunk_tokens=5
        )[0],
        (hidden, weight, bias),
    )


def test_bfloat16_hidden_states_give_float32_results():
    inputs = _inputs(torch.bfloat16)
    logps, entropy = selected_logps(*inputs[:4], chunk_tokens=5)
    assert (logps.dtype, entropy.dtype) == (torch.float32, torch.float32)
    # Forward: the same bfloat16 product, so float32 agreement from there on.
    want, _ = _dense(*inputs[:4])
    torch.testing.assert_close(logps, want, rtol=1e-6, atol=1e-6)
    # Gradients are bfloat16 numbers summed in another order: 8 bits.
    _compare(inputs, 8e-3, 5)


def test_a_float32_weight_under_bfloat16_hidden_states_gets_a_float32_gradient():
    hidden, weight, _, targets, upstream = _inputs(torch.float32, bias=False)
    half = hidden.detach().bfloat16()
    logps, _ = selected_logps(half, weight, None, targets, chunk_tokens=5)
    (grad,) = torch.autograd.grad(logps, weight, upstream)
    assert grad.dtype == torch.float32
    copy = weight.detach().bfloat16().float().requires_grad_()
    want, _ = _dense(half.float(), copy, None, targets)
    (want_grad,) = torch.autograd.grad(want, copy, upstream)
    assert (grad - want_grad).norm() <= 1e-2 * want_grad.norm()


def test_large_logits_stay_finite():
    hidden, weight, bias, targets, upstream = _inputs(size=1e3)
    logps, entropy = selected_logps(hidden, weight, bias, targets)
    logps.backward(upstream)
    assert logps.isfinite().all()
    assert entropy.isfinite().all()
    assert hidden.grad.isfinite().all()


def test_frozen_inputs_get_no_gradient_and_entropy_has_none():
    hidden, weight, bias, targets, upstream = _inputs()
    weight.requires_grad_(False)
    bias.requires_grad_(False)
    logps, entropy = selected_logps(hidden, weight, bias, targets, chunk_tokens=4)
    assert not entropy.requires_grad
    logps.backward(upstream)
    assert weight.grad is None
    twin = hidden.detach().requires_grad_()
    want, _ = _dense(twin, weight, bias, targets)
    want.backward(upstream)
    torch.testing.assert_close(hidden.grad, twin.grad, rtol=1e-5, atol=1e-6)


def test_no_tokens_give_empty_results_and_zero_gradients():
    hidden = torch.zeros(0, H, requires_grad=True)
    weight = torch.ones(V, H, requires_grad=True)
    logps, entropy = selected_logps(hidden, weight, None, torch.zeros(0, dtype=torch.long))
    assert logps.shape == entropy.shape == (0,)
    logps.sum().backward()
    assert weight.grad.eq(0).all()


def test_no_more_than_a_chunk_of_logits_ever_exists():
    """Largest tensor made inside, forward and backward, whatever the number of tokens."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        numel = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for tensor in out if isinstance(out, tuple | list) else [out]:
                if isinstance(tensor, torch.Tensor):
                    self.numel = max(self.numel, tensor.numel())
            return out

    vocabulary, tokens, chunk = 500, 400, 7
    hidden = torch.randn(tokens, 4, requires_grad=True)
    weight = torch.randn(vocabulary, 4, requires_grad=True)
    targets = torch.randint(vocabulary, (tokens,))
    with Largest() as seen:
        logps, _ = selected_logps(hidden, weight, None, targets, chunk_tokens=chunk)
        logps.sum().backward()
    assert seen.numel == chunk * vocabulary
