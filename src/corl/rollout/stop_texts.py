"""Texts that end a completion, beside the model's own stop tokens.

The rule is exact and does not depend on how often anyone looks: a completion ends with the first
token after which its decoded text contains a stop text, and keeps that token. While decoding, only
the last tokens are searched, and only now and then, to let rows leave early; the cut is made once,
at the end, on whole texts.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

LOOK_EVERY = 16
"""Tokens between two searches while decoding."""


class StopTexts:
    """Finds stop texts in tokens."""

    def __init__(self, tokenizer: Any, texts: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._texts = [text for text in texts if text]
        # A token is a byte at the least, so a stop text spans at most its own bytes in tokens.
        longest = max((len(text.encode()) for text in self._texts), default=0)
        self.window = LOOK_EVERY + longest
        """Tokens that a search while decoding must see."""

    def found(self, ids_rw: Tensor) -> Tensor:
        """Return [R] bool: does the text of the row's last tokens hold a stop text?"""
        flags = [self._holds(text) for text in self._decode(ids_rw.tolist())]
        return torch.tensor(flags, device=ids_rw.device)

    def cut(self, ids: list[int]) -> int | None:
        """Return how many tokens to keep, or None when no stop text is there."""
        if not self._texts or not self._holds(self._decode([ids])[0]):
            return None
        low, high = 1, len(ids)
        while low < high:
            middle = (low + high) // 2
            if self._holds(self._decode([ids[:middle]])[0]):
                high = middle
            else:
                low = middle + 1
        return low

    def _decode(self, rows: list[list[int]]) -> list[str]:
        texts: list[str] = self._tokenizer.batch_decode(
            rows, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return texts

    def _holds(self, text: str) -> bool:
        return any(stop in text for stop in self._texts)
