"""Image features once a prompt, whatever the number of its completions in a micro-batch.

K completions of a prompt show the model the same images. The tower runs over each prompt's images
once, and rows take copies of what it made of them; gradients of a trained tower add up the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from corl.policy.vision.inputs import VisionInputs, VisionInterface


def shared_features(
    module: Any,
    interface: VisionInterface,
    vision: Sequence[VisionInputs | None],
    prompt_ids: Sequence[Sequence[int]],
) -> Any | None:
    """The tower's output laid out for B rows, as the forward takes it under `mm_encoder_outputs`.

    module: the model without its head. None where no two rows share images, or where the module
    cannot be handed features: the forward then gets the images themselves.
    """
    rows = [(one, ids) for one, ids in zip(vision, prompt_ids, strict=True) if one is not None]
    first = {id(one): (one, ids) for one, ids in reversed(rows)}
    unique = list({id(one): first[id(one)] for one, _ in rows}.values())
    token = getattr(module.config, "image_token_id", None)
    if len(unique) == len(rows) or token is None or "mm_encoder_outputs" not in interface.takes:
        return None
    takes = inspect.signature(module.get_image_features).parameters
    images = interface.images([one for one, _ in unique])
    output = module.get_image_features(
        **{key: value for key, value in images.items() if key in takes}, return_dict=True
    )
    counts = [list(ids).count(token) for _, ids in unique]
    starts = [sum(counts[:place]) for place in range(len(counts))]
    spans = {
        id(one): torch.arange(start, start + count)
        for (one, _), start, count in zip(unique, starts, counts, strict=True)
    }
    order_n = torch.cat([spans[id(one)] for one, _ in rows]).to(interface.device)
    output.pooler_output = _taken(output.pooler_output, order_n)
    deeper = getattr(output, "deepstack_features", None)
    if deeper is not None:  # Qwen3-VL
        output.deepstack_features = [_taken(one, order_n) for one in deeper]
    return output


def _taken(features: Any, order_n: Tensor) -> Any:
    """One feature a placeholder token, in the order of the rows: [N, H], listed as it was."""
    if isinstance(features, Tensor):
        return features.flatten(0, -2).index_select(0, order_n)
    flat_nh = torch.cat([part.flatten(0, -2) for part in features])
    return [flat_nh.index_select(0, order_n)]
