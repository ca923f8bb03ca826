"""The optimiser of one agent and its learning rate as a function of the step.

The rate is computed, not carried: no scheduler object, and a resumed run asks
for step n and gets what an uninterrupted one got.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from corl.config import OptimizerConfig
from corl.errors import RecipeError
from corl.policy.stochastic_rounding import StochasticAdamW


def learning_rate_at(
    step: int,
    total_steps: int,
    *,
    peak: float,
    warmup_share: float = 0.03,
    floor_share: float = 0.1,
) -> float:
    """Linear warm-up, then a cosine from `peak` to `floor_share * peak`.

    Steps count from 0. W = ceil(warmup_share * total_steps) steps warm up, step
    s at peak * (s + 1) / W, so that no step is wasted at rate 0; the peak is at
    step W - 1 and the floor at the last step and after it.
    """
    # The tolerance keeps 0.1 * 30 = 3.0000000000000004 at 3.
    warmup_steps = math.ceil(warmup_share * total_steps - 1e-9)
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    peak_step = max(warmup_steps - 1, 0)
    progress = min((step - peak_step) / max(total_steps - 1 - peak_step, 1), 1.0)
    cosine = 0.5 * (1.0 + math.cos(math.pi * progress))
    return peak * (floor_share + (1.0 - floor_share) * cosine)


def build_optimizer(
    model: nn.Module, config: OptimizerConfig, *, seed: int = 0
) -> torch.optim.Optimizer:
    """AdamW over the trainable parameters; vectors (norms, biases) do not decay.

    Raises RecipeError when the weights' dtype is not the one `config.kind` is for.
    """
    trainable = [p for p in model.parameters() if p.requires_grad]
    _check_dtypes(trainable, config.kind)
    groups = [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    betas = (config.betas[0], config.betas[1])
    if config.kind == "adamw_bf16":
        return StochasticAdamW(
            groups,
            lr=config.learning_rate,
            betas=betas,
            eps=config.epsilon,
            weight_decay=config.weight_decay,
            seed=seed,
        )
    # Fused needs no temporary copy of the parameters; the plain loop fixes the order on CPU.
    fused = all(p.is_cuda for p in trainable)
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=betas, eps=config.epsilon, fused=fused or None
    )


def clip_gradients(params: Iterable[Tensor], limit: float) -> float:
    """Scale gradients to a total norm of at most `limit`; returns the norm before.

    The norm is float32 whatever the gradients are. A norm that is not finite is
    returned and nothing is scaled.
    """
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return 0.0
    norms = [torch.linalg.vector_norm(g, dtype=torch.float32) for g in grads]
    device = norms[0].device
    norm = torch.linalg.vector_norm(torch.stack([n.to(device) for n in norms])).item()
    if math.isfinite(norm) and norm > limit:
        for grad in grads:
            grad.mul_(limit / norm)
    return norm


def _check_dtypes(trainable: list[nn.Parameter], kind: str) -> None:
    if not trainable:
        raise RecipeError("the model has no trainable parameter.")
    wanted = torch.bfloat16 if kind == "adamw_bf16" else torch.float32
    for param in trainable:
        if param.dtype != wanted:
            raise RecipeError(
                f"optimizer.kind {kind} trains {wanted} weights, but the model has {param.dtype}. "
                f"Load it as {wanted}, or use "
                f"{'adamw' if kind == 'adamw_bf16' else 'adamw_bf16'}."
            )
