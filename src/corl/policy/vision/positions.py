"""Three-dimensional rotary positions (Qwen2-VL, Qwen2.5-VL, Qwen3-VL), worked out once a prompt.

Those models would work them out in the forward pass and keep the offset of later tokens as state
of the module, `rope_deltas`: one number for whatever batch came last. Repeated rows, rows that
leave the batch and padding on the other side make it wrong, so positions are always passed.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import torch

from corl.policy.vision.inputs import VisionInputs


def with_positions(vision: VisionInputs | None, ids: list[int], model: Any) -> VisionInputs | None:
    """The same images with the positions that `model` gives them, where it gives any.

    Touches no weight and no state of the model.
    """
    index = _rope_index_of(model)
    if vision is None or index is None:
        return vision
    arguments: dict[str, Any] = {
        "image_grid_thw": vision.tensors["image_grid_thw"],
        "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
    }
    # Older transformers find the images by their ids, newer ones by token types.
    if "mm_token_type_ids" in inspect.signature(index).parameters:
        arguments["mm_token_type_ids"] = vision.token_tensors["mm_token_type_ids"][None]
    positions_31t, offset = index(torch.tensor([ids]), **arguments)
    return replace(
        vision, positions_3t=positions_31t[:, 0], next_position=len(ids) + int(offset.item())
    )


def _rope_index_of(model: Any) -> Any:
    base = getattr(model, "base_model", model)
    return getattr(model, "get_rope_index", None) or getattr(base, "get_rope_index", None)
