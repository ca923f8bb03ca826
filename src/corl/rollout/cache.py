"""A key-value cache that grows by blocks instead of by one token.

transformers' dynamic layer concatenates the whole cache at every token, which copies it all each
time. Here full-attention layers write into a buffer with spare room and hand out a view of the
used part. Sliding-window, recurrent and other layers keep their own classes.
"""

import inspect
from typing import Any

from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from corl.policy.attention import lend_room

_SMALLEST_BLOCK = 32
"""Tokens of spare room at the least, a quarter of the length above that."""


class BlockLayer(DynamicLayer):
    """A full-attention layer, [rows, heads, tokens, head size], with spare room at the end.

    `keys` and `values` are always the used part, so everything inherited stays right: whatever
    replaces them (selecting rows, cropping) merely makes the next update take a new buffer.
    """

    def __init__(self, max_length: int) -> None:
        """max_length: tokens that the cache will ever hold; no buffer is longer."""
        super().__init__()
        self._max_length = max_length
        self._buffers: tuple[Tensor, Tensor] | None = None
        self._view: Tensor | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            # The prompt stays as it comes: it is about to be repeated for its K completions.
            self.keys, self.values = key_states, value_states
            return self.keys, self.values
        used = self.keys.shape[-2]
        needed = used + key_states.shape[-2]
        if self._buffers is None or self.keys is not self._view or self._room() < needed:
            self._buffers = self._enlarge(needed)
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, used:needed] = states
        self._show(needed)
        return self.keys, self.values

    def batch_repeat_interleave(self, repeats: int) -> None:
        if self.is_initialized:
            length = self.keys.shape[-2]
            self._buffers = self._enlarge(length + 1, repeats)
            self._show(length)

    def _enlarge(self, needed: int, repeats: int = 1) -> tuple[Tensor, Tensor]:
        """New buffers for at least `needed` tokens, holding each used row `repeats` times."""
        room = max(needed, min(self._max_length, needed + max(_SMALLEST_BLOCK, needed // 4)))
        return _with_room(self.keys, room, repeats), _with_room(self.values, room, repeats)

    def _show(self, length: int) -> None:
        assert self._buffers is not None
        self.keys, self.values = (
            lend_room(buffer[:, :, :length], buffer) for buffer in self._buffers
        )
        self._view = self.keys

    def _room(self) -> int:
        return 0 if self._buffers is None else self._buffers[0].shape[-2]


def _with_room(used: Tensor, room: int, repeats: int) -> Tensor:
    """A buffer of `room` tokens that starts with `used`, each row `repeats` times in a row."""
    rows, heads, length, size = used.shape
    buffer = used.new_zeros(rows * repeats, heads, room, size)
    buffer.view(rows, repeats, heads, room, size)[:, :, :, :length] = used[:, None]
    return buffer


def new_cache(config: Any, max_length: int) -> DynamicCache:
    """An empty cache for a model of this config, for at most `max_length` tokens."""
    cache = DynamicCache(config=config)
    cache.layers = [
        BlockLayer(max_length) if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    return cache


def cache_argument(model: Any) -> str | None:
    """Name under which the model's forward takes a cache, or None if it takes none.

    transformers renamed `past_key_values` to `cache`.
    """
    parameters = inspect.signature(model.forward).parameters
    for name in ("cache", "past_key_values"):
        if name in parameters:
            return name
    return None
