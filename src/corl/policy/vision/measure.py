"""How many tokens a prompt is to a checkpoint, counted before its weights are loaded.

Every image is decoded once, which finds what is broken. What an image adds in tokens depends on
its size alone, so the processor runs once for each combination of sizes, on blank pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corl.data.images import ImageSizes, blank_image
from corl.data.prompts import PromptRow
from corl.data.template import Chat
from corl.errors import PromptError
from corl.policy.facts import load_config, load_tokenizer, locate, sees_images
from corl.policy.vision.encode import encode_prompt, encode_seen

if TYPE_CHECKING:
    from corl.policy.vision.encode import EncodedPrompt


class PromptMeasure:
    """Counts the tokens of prompts as one checkpoint is asked them."""

    def __init__(
        self,
        source: str | Path,
        *,
        trust_remote_code: bool = False,
        system_prompt: str | None = None,
        chat: Chat = "auto",
        chat_template_kwargs: Mapping[str, Any] | None = None,
        sizes: ImageSizes | None = None,
    ) -> None:
        """sizes: shared between measures, so that each image is decoded once.

        Raises ModelError where tokenizer or processor does not load.
        """
        location = locate(source)
        config = load_config(location, source, trust_remote_code=trust_remote_code)
        self.tokenizer = load_tokenizer(location, source, trust_remote_code=trust_remote_code)
        self._processor = None
        if sees_images(config):
            from corl.policy.vision.processor import load_processor

            self._processor = load_processor(
                location, source, config, self.tokenizer, trust_remote_code=trust_remote_code
            )
            self.tokenizer = self._processor.tokenizer
        self._how: dict[str, Any] = {
            "system_prompt": system_prompt,
            "chat": chat,
            "chat_template_kwargs": chat_template_kwargs,
        }
        self._sizes = ImageSizes() if sizes is None else sizes
        self._added: dict[tuple[tuple[int, int], ...], int] = {}

    def length(self, row: PromptRow) -> int:
        """Tokens of the prompt, its images included.

        Raises PromptError for an image that is missing, broken, too large or one pixel wide, and
        for whatever else the checkpoint cannot read.
        """
        if self._processor is None:
            return len(encode_prompt(row, tokenizer=self.tokenizer, **self._how).ids)
        sizes = tuple(self._sizes.of(ref) for ref in row.images)
        where = row.images[0].where if row.images else f"row {row.id!r}"
        return len(self._encoded(row.text, where).ids) + self._tokens_of(sizes, where)

    def _tokens_of(self, sizes: tuple[tuple[int, int], ...], where: str) -> int:
        """What images of these sizes add to a prompt."""
        if not sizes:
            return 0
        if sizes not in self._added:
            with_images = self._encoded("a", where, sizes)
            self._added[sizes] = len(with_images.ids) - len(self._encoded("a", where).ids)
        return self._added[sizes]

    def _encoded(
        self, text: str, where: str, sizes: tuple[tuple[int, int], ...] = ()
    ) -> EncodedPrompt:
        blanks = [blank_image(*size) for size in sizes]
        try:
            return encode_seen(self._processor, text, blanks, where=where, **self._how)
        except MemoryError:
            raise PromptError(f"{where}: its images do not fit in memory") from None
