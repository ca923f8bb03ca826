"""Supervised pretraining of the vision-language models, from random weights to checkpoints.

Two tasks share every batch. *Reading* states the signs of a picture, and shows what is seen apart
from what is reckoned; *solving* states the values, some of them wrong on purpose. What decides how
fast either is learned are the first weights: docs/quickstart.md.

Shapes: B rows, T tokens.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from corl.errors import ModelError
from corl.policy.vision.encode import encode_seen
from corl.policy.vision.processor import load_processor
from corl.quickstart.corpus import corpus
from corl.quickstart.fitting import Progress, fit, one_thread_and_seed, reporter
from corl.quickstart.task import completion_of
from corl.quickstart.vision.families import (
    READ,
    SOLVE,
    VISION_FAMILIES,
    VisionFamily,
    build_model,
    build_tokenizer,
    write_processor,
)
from corl.quickstart.vision.glyphs import draw
from corl.quickstart.vision.prompts import shipped_chains
from corl.quickstart.vision.variants import VISION_VARIANTS, VisionVariant

if TYPE_CHECKING:
    from PIL.Image import Image

ROWS_PER_TASK = 64
PEAK_LR = 3e-3
_IGNORED = -100


@dataclass(frozen=True, slots=True)
class SeenBatch:
    """Rows of both tasks, padded on the right."""

    ids_bt: Tensor
    labels_bt: Tensor
    """The ids, but -100 in prompts and padding."""

    mask_bt: Tensor
    pixels: Tensor
    """[B, 3, height, width] float32, as the family's processor makes them."""


def pretrain(
    name: str,
    directory: Path,
    *,
    variant: VisionVariant | None = None,
    progress: Progress | None = None,
) -> Path:
    """Pretrain one model and save it as an ordinary Hugging Face directory.

    `name` is looked up in `VISION_VARIANTS` unless a `variant` of the caller's own is given.
    """
    if variant is None:
        if name not in VISION_VARIANTS:
            raise ModelError(
                f"no variant is named {name!r}; there are {', '.join(VISION_VARIANTS)}."
            )
        variant = VISION_VARIANTS[name]
    family = VISION_FAMILIES[variant.family]
    tokenizer = build_tokenizer(family)
    directory.mkdir(parents=True, exist_ok=True)
    with one_thread_and_seed(variant.seed):
        model = build_model(family, tokenizer)
        model.config.save_pretrained(directory)
        write_processor(family, tokenizer, directory)
        processor = load_processor(
            str(directory), directory, model.config, tokenizer, trust_remote_code=False
        )
        fit(
            model,
            seen_batches(variant, processor, excluded=shipped_chains()),
            seen_loss,
            steps=variant.steps,
            peak_lr=PEAK_LR,
            report=reporter(name, variant.steps, progress),
        )
    model.save_pretrained(directory)
    return directory


def seen_batches(
    variant: VisionVariant, processor: Any, *, excluded: Collection[str]
) -> Iterator[SeenBatch]:
    """Endless batches, half of them pictures to read, half pictures to solve."""
    family = VISION_FAMILIES[variant.family]
    examples = corpus(variant.corpus, seed=variant.seed, excluded=excluded)
    rng = random.Random(f"pictures of seed {variant.seed}")
    prompts: dict[str, list[int]] = {}
    while True:
        rows, pictures = [], []
        for place, (problem, values) in enumerate(islice(examples, 2 * ROWS_PER_TASK)):
            picture = draw(problem.chain, rng)
            asked = READ if place < ROWS_PER_TASK else SOLVE
            if asked not in prompts:  # every picture takes the same number of tokens
                prompts[asked] = encode_seen(processor, asked, [picture.convert("RGB")]).ids
            said = problem.chain if asked == READ else _solution(values, family)
            rows.append((prompts[asked], _completion_ids(processor.tokenizer, said)))
            pictures.append(picture.convert("RGB"))
        yield _batch(rows, pictures, processor)


def seen_loss(model: Any, batch: SeenBatch) -> Tensor:
    """Mean cross-entropy in nats of the completions' tokens, a scalar."""
    logits_btv = model(
        input_ids=batch.ids_bt, attention_mask=batch.mask_bt, pixel_values=batch.pixels
    ).logits[:, :-1]
    labels = batch.labels_bt[:, 1:].flatten()
    return F.cross_entropy(logits_btv.flatten(0, 1), labels, ignore_index=_IGNORED)


def _solution(values: Sequence[int], family: VisionFamily) -> str:
    return completion_of(values, separator=family.separator)


def _completion_ids(tokenizer: Any, text: str) -> list[int]:
    return [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]


def _batch(
    rows: Sequence[tuple[list[int], list[int]]], pictures: Sequence[Image], processor: Any
) -> SeenBatch:
    ids = [torch.tensor(prompt + completion) for prompt, completion in rows]
    labels = [torch.tensor([_IGNORED] * len(prompt) + completion) for prompt, completion in rows]
    ones = [torch.ones(len(row), dtype=torch.long) for row in ids]
    pixels = processor.image_processor(images=list(pictures), return_tensors="pt")["pixel_values"]
    return SeenBatch(
        ids_bt=pad_sequence(ids, batch_first=True, padding_value=processor.tokenizer.pad_token_id),
        labels_bt=pad_sequence(labels, batch_first=True, padding_value=_IGNORED),
        mask_bt=pad_sequence(ones, batch_first=True),
        pixels=pixels,
    )
