"""AdamW on bfloat16 weights that rounds at random instead of to nearest.

At a learning rate of 3e-6 an update is smaller than half of bfloat16's step,
so rounding to nearest returns the old weight for ever. Rounding up with the
probability of the remainder moves the weight by the right amount on average.
Weight, gradient and both moments are bfloat16: 8 bytes a parameter; arithmetic
is float32, one tensor at a time.

The noise is a function of (seed, step) and the order of the parameters, so a
resumed run needs no generator state beside the step.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

# Parameters updated at a time: bounds the float32 copies of a large embedding.
_PIECE = 2**25


def round_stochastically(values: Tensor, generator: torch.Generator) -> Tensor:
    """float32 to bfloat16, up or down with probabilities that keep the mean.

    A bfloat16 is the upper half of a float32: adding 16 random bits to the
    lower half carries into the upper with the probability of the remainder.
    What is already a bfloat16 stays; NaN and infinity pass through.
    """
    noise = torch.randint(
        2**16, values.shape, generator=generator, dtype=torch.int32, device=values.device
    )
    bits = values.contiguous().view(torch.int32) + noise
    rounded = bits.bitwise_and_(-(2**16)).view(torch.float32)
    return torch.where(values.isfinite(), rounded, values).to(torch.bfloat16)


class StochasticAdamW(torch.optim.Optimizer):
    """AdamW (arXiv 1711.05101) for bfloat16 parameters, with decoupled weight decay.

    State of a parameter: `step` (int) and two bfloat16 moments. `seed` is part
    of every parameter group and so of the state dict.
    """

    def __init__(
        self,
        params: Iterable[Any],
        *,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
        seed: int,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "seed": seed, "updates": 0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient; a closure is not supported."""
        if closure is not None:
            raise TypeError("StochasticAdamW takes no closure; call backward before step().")
        for number, group in enumerate(self.param_groups):
            group["updates"] += 1
            generators: dict[torch.device, torch.Generator] = {}
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.device not in generators:
                    key = f"{group['seed']}:{group['updates']}:{number}"
                    generators[param.device] = _generator(key, param.device)
                self._update(param, group, generators[param.device])

    def _update(self, param: Tensor, group: dict[str, Any], generator: torch.Generator) -> None:
        state = self.state[param]
        if not state:
            state["step"] = 0
            # Contiguous, so that their flat pieces are views.
            state["exp_avg"] = torch.zeros_like(param, memory_format=torch.contiguous_format)
            state["exp_avg_sq"] = torch.zeros_like(state["exp_avg"])
        state["step"] += 1
        assert param.grad is not None
        whole = (param, param.grad, state["exp_avg"], state["exp_avg_sq"])
        pieces = zip(*(t.reshape(-1).split(_PIECE) for t in whole), strict=True)
        for weight, grad, first, second in pieces:
            _adamw(weight, grad.float(), first, second, state["step"], group, generator)


def _adamw(
    weight: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: int,
    group: dict[str, Any],
    generator: torch.Generator,
) -> None:
    """One AdamW update in float32 of flat bfloat16 views, written back in place."""
    beta1, beta2 = group["betas"]
    first = exp_avg.float().lerp_(grad, 1.0 - beta1)
    second = exp_avg_sq.float().mul_(beta2).addcmul_(grad, grad, value=1.0 - beta2)
    root = (second / (1.0 - beta2**step)).sqrt_().add_(group["eps"])
    moved = weight.float().mul_(1.0 - group["lr"] * group["weight_decay"])
    moved.addcdiv_(first, root, value=-group["lr"] / (1.0 - beta1**step))
    # The moments too: one that changes by less than its own step would stall.
    exp_avg.copy_(round_stochastically(first, generator))
    exp_avg_sq.copy_(round_stochastically(second, generator))
    weight.copy_(round_stochastically(moved, generator))


def _generator(key: str, device: torch.device) -> torch.Generator:
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest, "big") >> 1)
