"""Supervised pretraining of the demonstration's models, from random weights to checkpoints.

Only completions carry loss: the prompt's operators are drawn at random, and nothing can be learned
from guessing them. One thread and the seeds decide every byte, so a second run on the same kind of
machine writes the same checkpoint; another processor may round differently in the last bit.

Shapes: B rows, T tokens. All problems of a family have one length, so no row is padded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from corl.errors import ModelError
from corl.quickstart.corpus import corpus
from corl.quickstart.families import FAMILIES, Family, build_model, build_tokenizer
from corl.quickstart.task import Problem, completion_of, shipped_prompts
from corl.quickstart.variants import SHIPPED, VARIANTS, Variant

BATCH_ROWS = 128
PEAK_LR = 3e-3
WARMUP_STEPS = 20

Progress = Callable[[str, int, int, float], None]
"""Called as (name, steps done, steps in all, loss in nats a token)."""


def shipped_model(name: str) -> Path:
    """The directory of a checkpoint that the package carries."""
    if name not in SHIPPED:
        raise ModelError(
            f"{name!r} is not among the shipped models {', '.join(SHIPPED)}. "
            "corl.quickstart.pretrain makes the others."
        )
    return Path(str(files("corl.quickstart") / "models" / name))


def pretrain_all(
    out: Path, names: Sequence[str] | None = None, progress: Progress | None = None
) -> list[Path]:
    """Pretrain the named variants (default: the shipped ones) into `out/NAME`."""
    return [pretrain(name, out / name, progress=progress) for name in names or SHIPPED]


def pretrain(
    name: str,
    directory: Path,
    *,
    variant: Variant | None = None,
    progress: Progress | None = None,
) -> Path:
    """Pretrain one model and save it as an ordinary Hugging Face directory.

    `name` is looked up in `VARIANTS` unless a `variant` of the caller's own is given.
    """
    if variant is None:
        if name not in VARIANTS:
            raise ModelError(f"no variant is named {name!r}; there are {', '.join(VARIANTS)}.")
        variant = VARIANTS[name]
    family = FAMILIES[variant.family]
    tokenizer = build_tokenizer(family)
    with _one_thread_and_seed(variant.seed):
        model = build_model(family, tokenizer, width=variant.width, layers=variant.layers)
        batches = token_batches(variant, tokenizer, excluded=shipped_prompts())
        _fit(model, batches, steps=variant.steps, report=_reporter(name, variant, progress))
    directory.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def token_batches(
    variant: Variant, tokenizer: Any, *, excluded: Collection[str]
) -> Iterator[tuple[Tensor, int]]:
    """Endless batches of (token ids [B, T] int64, tokens of the prompt)."""
    family = FAMILIES[variant.family]
    examples = corpus(variant.corpus, seed=variant.seed, excluded=excluded)
    while True:
        rows = [
            _encode(problem, values, family, tokenizer)
            for problem, values in islice(examples, BATCH_ROWS)
        ]
        prompt_tokens = rows[0][1]
        yield torch.tensor([ids for ids, _ in rows]), prompt_tokens


def _encode(
    problem: Problem, values: Sequence[int], family: Family, tokenizer: Any
) -> tuple[list[int], int]:
    prompt_ids = tokenizer.encode(problem.prompt)
    completion_ids = tokenizer.encode(completion_of(values, separator=family.separator))
    return [*prompt_ids, *completion_ids, tokenizer.eos_token_id], len(prompt_ids)


def _fit(
    model: Any,
    batches: Iterator[tuple[Tensor, int]],
    *,
    steps: int,
    report: Callable[[int, float], None],
) -> None:
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=PEAK_LR, betas=(0.9, 0.95), weight_decay=0.01
    )
    for step, (ids_bt, prompt_tokens) in enumerate(islice(batches, steps)):
        for group in optimizer.param_groups:
            group["lr"] = PEAK_LR * _lr_share(step, steps)
        loss = completion_loss(model, ids_bt, prompt_tokens)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        report(step + 1, loss.item())
    model.eval()


def completion_loss(model: Any, ids_bt: Tensor, prompt_tokens: int) -> Tensor:
    """Mean cross-entropy in nats of the completion's tokens, a scalar."""
    logits_btv = model(input_ids=ids_bt).logits[:, prompt_tokens - 1 : -1]
    return F.cross_entropy(logits_btv.flatten(0, 1), ids_bt[:, prompt_tokens:].flatten())


def _lr_share(step: int, steps: int) -> float:
    """Linear warm-up, then a cosine to zero; 0 to 1."""
    warm = min(1.0, (step + 1) / WARMUP_STEPS)
    return warm * 0.5 * (1 + math.cos(math.pi * step / steps))


def _reporter(
    name: str, variant: Variant, progress: Progress | None
) -> Callable[[int, float], None]:
    if progress is None:
        return lambda step, loss: None
    return lambda step, loss: progress(name, step, variant.steps, loss)


@contextmanager
def _one_thread_and_seed(seed: int) -> Iterator[None]:
    """One thread and a seeded generator inside; the caller's own come back afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
