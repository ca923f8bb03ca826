"""Ids that stand for images, sound or their frames: drawn as text, they break the next forward."""

from __future__ import annotations

import re
from typing import Any

_CONFIG_KEYS = (
    "image_token_id", "image_token_index", "video_token_id", "video_token_index",
    "audio_token_id", "audio_token_index", "vision_start_token_id", "vision_end_token_id",
    "vision_token_id", "boi_token_id", "boi_token_index", "eoi_token_id", "eoi_token_index",
)  # fmt: skip
_NAMES = (
    "image_token", "video_token", "audio_token", "boi_token", "eoi_token", "start_image_token",
    "end_image_token", "context_image_token", "vision_start_token", "vision_end_token",
    "fake_image_token", "global_image_token", "global_image_tag",
)  # fmt: skip
_TILES = re.compile(r"<row_\d+_col_\d+>|<global-img>|<fake_token_around_image>")


def placeholder_ids(config: Any, tokenizer: Any, processor: Any = None) -> set[int]:
    """Ids of a model's stand-ins, by its config and, where it has one, its processor."""
    ids = {getattr(config, key, None) for key in _CONFIG_KEYS}
    if processor is not None:
        vocabulary = tokenizer.get_vocab()
        for owner in (processor, tokenizer):
            for name in _NAMES:
                token = getattr(owner, name, None)
                ids.add(vocabulary.get(token) if isinstance(token, str) else None)
        ids |= set(getattr(processor, "image_token_ids", None) or ())
        ids |= {index for token, index in vocabulary.items() if _TILES.fullmatch(token)}
    return {index for index in ids if isinstance(index, int) and index >= 0}
