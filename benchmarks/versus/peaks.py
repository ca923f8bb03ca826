"""What share of the device's arithmetic and bandwidth a step reaches.

Both peaks are measured where the benchmark runs: a large product in the compute dtype, and a copy
of memory that no cache holds. What counts is the work that a step must do, not what a side did:
learning takes six operations a weight and token of every row, its prompt included; decoding reads
every weight once a token of the longest completion.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open

from versus.work import Work


@dataclass(frozen=True, slots=True)
class Peaks:
    """Of one device, with the row's threads."""

    operations_per_s: float
    bytes_per_s: float


def measure_peaks(work: Work) -> Peaks:
    """Medians would hide nothing here: the best of several is the peak."""
    torch.set_num_threads(work.threads)
    device = torch.device(work.device)
    dtype = torch.bfloat16 if work.dtype == "mixed" else torch.float32
    size = 8192 if device.type == "cuda" else 2048
    one = torch.randn(size, size, device=device).to(dtype)
    other = torch.randn(size, size, device=device).to(dtype)
    product_s = _best(lambda: one @ other, device)
    source = torch.empty(2**28, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copy_s = _best(lambda: target.copy_(source), device)
    return Peaks(2.0 * size**3 / product_s, 2.0 * source.numel() / copy_s)


def shares(
    work: Work, peaks: Peaks, *, sample_s: float, learn_s: float, prompt_tokens: float
) -> tuple[float, float]:
    """(arithmetic while learning, bandwidth while sampling), each of one agent's peak."""
    weights = sum(_num_weights(Path(model)) for model in work.models) / len(work.models)
    operations = 6.0 * weights * work.rows * (prompt_tokens + work.tokens)
    weight_bytes = 2 if work.dtype == "mixed" else 4
    read = weight_bytes * weights * work.tokens
    return (
        operations / learn_s / peaks.operations_per_s,
        read / sample_s / peaks.bytes_per_s,
    )


def _num_weights(model: Path) -> int:
    total = 0
    for file in model.glob("*.safetensors"):
        with safe_open(str(file), framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a dict)
                shape = tensors.get_slice(name).get_shape()
                total += int(torch.Size(shape).numel())
    return total


def _best(run: Callable[[], object], device: torch.device, repeats: int = 5) -> float:
    seconds = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])
