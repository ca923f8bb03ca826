"""What a policy multiplies with: its own module, or a copy of it in the compute dtype.

Master weights are float32, since an update at a learning rate of 3e-6 is below bfloat16's step.
Sampler and learner run one bfloat16 copy of them, so they see the same weights in the same
arithmetic, and no weight is cast again for every token or micro-batch, as autocast would.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn


class ComputeModel:
    """A module in the compute dtype, kept in step with the master weights."""

    def __init__(self, master: Any, dtype: torch.dtype) -> None:
        """dtype: what matrices are multiplied in; the master itself serves where it has it."""
        self._master = master
        is_same = next(master.parameters()).dtype == dtype
        self.module: Any = master if is_same else _copy_in(master, dtype)

    @torch.no_grad()
    def refresh(self) -> None:
        """Take the master weights over, in place; nothing to do without a copy."""
        if self.module is not self._master:
            copies = list(self.module.parameters())
            torch._foreach_copy_(copies, list(self._master.parameters()))

    @torch.no_grad()
    def hand_gradients_over(self) -> None:
        """Add the copy's gradients to the master's, in the master's dtype, and drop them."""
        if self.module is self._master:
            return
        pairs = zip(self._master.parameters(), self.module.parameters(), strict=True)
        for master, computed in pairs:
            if computed.grad is None:
                continue
            if master.grad is None:
                master.grad = computed.grad.to(master.dtype)
            else:
                master.grad += computed.grad
            computed.grad = None


def _copy_in(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Copy a model with its parameters in another dtype.

    Buffers keep theirs (rotary frequencies lose accuracy in bf16), ties stay ties, and no second
    fp32 copy exists on the way: the memo hands deepcopy the converted parameters.
    """
    memo: dict[int, Any] = {
        id(parameter): nn.Parameter(
            parameter.detach().to(dtype), requires_grad=parameter.requires_grad
        )
        for parameter in model.parameters()
    }
    return copy.deepcopy(model, memo)
