"""Supervised steps from random weights, for all small models of the demonstrations.

AdamW, a short linear warm-up and a cosine to zero. One thread and the seeds decide every byte, so a
second run on the same kind of machine writes the same checkpoint; another processor may round
differently in the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import torch
from torch import Tensor

WARMUP_STEPS = 20

Batch = TypeVar("Batch")
Progress = Callable[[str, int, int, float], None]
"""Called as (name, steps done, steps in all, loss in nats a token)."""


def fit(
    model: Any,
    batches: Iterator[Batch],
    loss_of: Callable[[Any, Batch], Tensor],
    *,
    steps: int,
    peak_lr: float,
    report: Callable[[int, float], None],
) -> None:
    """Train in place; the model ends in evaluation mode.

    loss_of: from model and batch to a scalar. report: called with steps done and loss.
    """
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=peak_lr, betas=(0.9, 0.95), weight_decay=0.01
    )
    for step, batch in enumerate(islice(batches, steps)):
        for group in optimizer.param_groups:
            group["lr"] = peak_lr * _lr_share(step, steps)
        loss = loss_of(model, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        report(step + 1, loss.item())
    model.eval()


def reporter(name: str, steps: int, progress: Progress | None) -> Callable[[int, float], None]:
    """What `fit` calls, for a display that shows several models."""
    if progress is None:
        return lambda step, loss: None
    return lambda step, loss: progress(name, step, steps, loss)


@contextmanager
def one_thread_and_seed(seed: int) -> Iterator[None]:
    """One thread and a seeded generator inside; the caller's own come back afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def _lr_share(step: int, steps: int) -> float:
    """Linear warm-up, then a cosine to zero; 0 to 1."""
    warm = min(1.0, (step + 1) / WARMUP_STEPS)
    return warm * 0.5 * (1 + math.cos(math.pi * step / steps))
