"""Supervised pretraining of the demonstration's models, from random weights to checkpoints.

Only completions carry loss: the prompt's operators are drawn at random, and nothing can be learned
from guessing them.

Shapes: B rows, T tokens. All problems of a family have one length, so no row is padded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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
from corl.quickstart.fitting import Progress, fit, one_thread_and_seed, reporter
from corl.quickstart.task import Problem, completion_of, shipped_prompts
from corl.quickstart.variants import SHIPPED, VARIANTS, Variant

BATCH_ROWS = 128
PEAK_LR = 3e-3


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
    with one_thread_and_seed(variant.seed):
        model = build_model(family, tokenizer, width=variant.width, layers=variant.layers)
        batches = token_batches(variant, tokenizer, excluded=shipped_prompts())
        fit(
            model,
            batches,
            completion_loss,
            steps=variant.steps,
            peak_lr=PEAK_LR,
            report=reporter(name, variant.steps, progress),
        )
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


def completion_loss(model: Any, batch: tuple[Tensor, int]) -> Tensor:
    """Mean cross-entropy in nats of the completion's tokens, a scalar.

    batch: token ids [B, T] and the tokens of every row's prompt.
    """
    ids_bt, prompt_tokens = batch
    logits_btv = model(input_ids=ids_bt).logits[:, prompt_tokens - 1 : -1]
    return F.cross_entropy(logits_btv.flatten(0, 1), ids_bt[:, prompt_tokens:].flatten())
