"""The copy that a policy multiplies with."""

import torch
from tiny_policies import tiny_policy

from corl.policy.computing import ComputeModel


def test_in_one_dtype_the_master_computes_itself():
    model = tiny_policy("qwen3").model
    computing = ComputeModel(model, torch.float32)
    assert computing.module is model
    model.get_input_embeddings().weight.grad = torch.ones_like(model.get_input_embeddings().weight)
    computing.hand_gradients_over()
    computing.refresh()
    assert model.get_input_embeddings().weight.grad is not None


def test_a_copy_follows_its_master_and_hands_gradients_over_once():
    model = tiny_policy("qwen3").model
    computing = ComputeModel(model, torch.bfloat16)
    pairs = list(zip(model.parameters(), computing.module.parameters(), strict=True))
    assert all(c.dtype == torch.bfloat16 and c.requires_grad for _, c in pairs)
    with torch.no_grad():
        for master, _ in pairs:
            master.add_(1.0)
    computing.refresh()
    assert all(torch.equal(c, m.to(torch.bfloat16)) for m, c in pairs)
    for _ in range(3):
        for _, computed in pairs:
            computed.grad = torch.full_like(computed, 2.0**-9)
        computing.hand_gradients_over()
    # In bfloat16 a sum of unequal sizes would round; in float32 it is exact.
    assert all((m.grad == 3 * 2.0**-9).all() and m.grad.dtype == torch.float32 for m, _ in pairs)
    assert all(c.grad is None for _, c in pairs)


def test_frozen_parameters_stay_frozen_in_the_copy():
    model = tiny_policy("qwen3").model
    model.get_input_embeddings().weight.requires_grad_(False)
    copy = ComputeModel(model, torch.bfloat16).module
    assert [p.requires_grad for p in copy.parameters()] == [
        p.requires_grad for p in model.parameters()
    ]
