"""What a prompt's images are to the model, one prompt at a time, and batched for one forward pass.

The processor runs once a prompt. Its tensors stay apart until prompts meet in a decode chunk or a
micro-batch, so that rows may hold different numbers and sizes of images, or none.

Shapes: B rows, W columns, T tokens of one prompt.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

TOKEN_KEYS = ("token_type_ids", "mm_token_type_ids")
"""Processor outputs with one number a token; every other goes by image."""


@dataclass(frozen=True, slots=True)
class VisionInputs:
    """The images of one prompt, as the processor left them, on the CPU."""

    tensors: dict[str, Tensor]
    """By image or patch: pixel_values, image_grid_thw, pixel_attention_mask, image_sizes."""
    token_tensors: dict[str, Tensor]
    """By prompt token, each [T]."""
    positions_3t: Tensor | None = None
    """Rotary positions in time, height and width, for families that have them."""
    next_position: int | None = None
    """Position of the first completion token, where it is not the number of prompt tokens."""


@dataclass(frozen=True, slots=True)
class VisionBatch:
    """What a forward pass takes beside ids and mask."""

    arguments: dict[str, Tensor]
    positions_3bw: Tensor | None
    """None for families whose positions are the columns."""


@dataclass(frozen=True, slots=True)
class VisionInterface:
    """How a model takes images."""

    takes: frozenset[str]
    """Arguments of its forward."""
    device: torch.device
    dtype: torch.dtype

    @classmethod
    def of(cls, module: Any, device: torch.device) -> VisionInterface:
        """module: whose forward is called, the model or its base."""
        return cls(
            takes=frozenset(inspect.signature(module.forward).parameters),
            device=device,
            dtype=next(module.parameters()).dtype,
        )

    def batch(
        self,
        vision: Sequence[VisionInputs | None],
        *,
        lengths: Sequence[int],
        width: int,
        pad_left: bool = False,
        with_images: bool = True,
    ) -> VisionBatch:
        """Join the images of B rows that are `width` columns wide.

        lengths: [B] prompt tokens. A prompt stands at the left edge, its completion and padding
        behind it, or under `pad_left` at the right edge. with_images: false leaves the images
        themselves out, for a forward that is handed their features.
        """
        starts = [width - length if pad_left else 0 for length in lengths]
        seen = [one for one in vision if one is not None]
        arguments = self.images(seen) if with_images else {}
        for key in sorted({key for one in seen for key in one.token_tensors}):
            if key in self.takes:
                arguments[key] = _by_column(key, vision, starts, width).to(self.device)
        has_positions = any(one.positions_3t is not None for one in seen)
        return VisionBatch(
            arguments,
            _positions(vision, lengths, starts, width).to(self.device) if has_positions else None,
        )

    def images(self, seen: Sequence[VisionInputs]) -> dict[str, Tensor]:
        """The images of several prompts, as far as the forward takes them."""
        keys = sorted({key for one in seen for key in one.tensors})
        return {key: self._joined(key, seen) for key in keys if key in self.takes}

    def _joined(self, key: str, seen: Sequence[VisionInputs]) -> Tensor:
        """One tensor after the other. Idefics3 and SmolVLM have a tensor of [1, images, ...] a row:
        fewer images are filled up with empty ones, which those models leave out again."""
        parts = [one.tensors[key] for one in seen if key in one.tensors]
        sizes = [max(part.shape[axis] for part in parts) for axis in range(1, parts[0].ndim)]
        joined = torch.cat([_grown(part, sizes) for part in parts])
        if joined.is_floating_point():
            joined = joined.to(self.dtype)
        return joined.to(self.device)


def any_vision(vision: Sequence[VisionInputs | None] | None) -> bool:
    """Whether a row has an image at all; without, the text path is taken."""
    return vision is not None and any(one is not None for one in vision)


def _grown(part: Tensor, sizes: Sequence[int]) -> Tensor:
    """Zeros behind every axis but the first, up to `sizes`."""
    missing = [size - have for size, have in zip(sizes, part.shape[1:], strict=True)]
    if not any(missing):
        return part
    pads = [pad for more in reversed(missing) for pad in (0, more)]
    return torch.nn.functional.pad(part, pads)


def _by_column(
    key: str, vision: Sequence[VisionInputs | None], starts: Sequence[int], width: int
) -> Tensor:
    out_bw = torch.zeros(len(vision), width, dtype=torch.long)
    for row, (one, start) in enumerate(zip(vision, starts, strict=True)):
        values_t = None if one is None else one.token_tensors.get(key)
        if values_t is not None:
            out_bw[row, start : start + len(values_t)] = values_t
    return out_bw


def _positions(
    vision: Sequence[VisionInputs | None], lengths: Sequence[int], starts: Sequence[int], width: int
) -> Tensor:
    """[3, B, W]: the prompt's own, then one more a column; 0 in front of the prompt."""
    out_3bw = torch.zeros(3, len(vision), width, dtype=torch.long)
    for row, (one, length, start) in enumerate(zip(vision, lengths, starts, strict=True)):
        end, following = start + length, first_position(one, length)
        if one is None or one.positions_3t is None:
            out_3bw[:, row, start:end] = torch.arange(length)
        else:
            out_3bw[:, row, start:end] = one.positions_3t
        out_3bw[:, row, end:] = torch.arange(following, following + width - end)
    return out_3bw


def first_position(one: VisionInputs | None, length: int) -> int:
    """Position of the first token behind a prompt of `length` tokens."""
    return length if one is None or one.next_position is None else one.next_position
