"""A prompt row becomes what its model reads: token ids, and its images beside them.

Text models go through `corl.data.template`. A vision-language model reads its prompt as content
parts, the images in front of the text, through its chat template; without one, the family's
placeholder stands for each image. Then the family's processor runs once and puts as many
placeholder tokens in the ids as each image takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import jinja2
import torch

from corl.data.images import open_image
from corl.data.prompts import PromptRow
from corl.data.template import Chat, plain_ids, render, without_double_start
from corl.errors import PromptError
from corl.policy.vision.inputs import TOKEN_KEYS, VisionInputs
from corl.policy.vision.positions import with_positions

if TYPE_CHECKING:
    from PIL.Image import Image

_NOT_IMAGES = ("input_ids", "attention_mask")


class _Reader(Protocol):
    """What reading a prompt needs of a policy."""

    @property
    def model(self) -> Any: ...
    @property
    def tokenizer(self) -> Any: ...
    @property
    def processor(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """One prompt as its model reads it."""

    ids: list[int]
    """With as many placeholder tokens as the images take."""
    vision: VisionInputs | None = None


def encode_prompt(
    row: PromptRow,
    *,
    tokenizer: Any,
    processor: Any = None,
    system_prompt: str | None = None,
    chat: Chat = "auto",
    chat_template_kwargs: Mapping[str, Any] | None = None,
) -> EncodedPrompt:
    """Read one row; its images are opened here and let go of.

    processor: a vision-language model's, None for a text model. The other arguments are those of
    `corl.data.template.render`.
    Raises PromptError for what `render` and `open_image` refuse, for images where the model sees
    none, and for a text that holds an image placeholder itself.
    """
    if processor is None:
        if row.images:
            raise PromptError(f"{row.images[0].where}: the model reads text alone")
        ids = render(
            tokenizer,
            row.text,
            system_prompt=system_prompt,
            chat=chat,
            chat_template_kwargs=chat_template_kwargs,
        )
        return EncodedPrompt(ids)
    return encode_seen(
        processor,
        row.text,
        [open_image(ref) for ref in row.images],
        system_prompt=system_prompt,
        chat=chat,
        chat_template_kwargs=chat_template_kwargs,
        where=row.images[0].where if row.images else f"row {row.id!r}",
    )


def encode_for(policy: _Reader, row: PromptRow, **how: Any) -> EncodedPrompt:
    """`encode_prompt` for a loaded policy, with the positions its model gives the images."""
    encoded = encode_prompt(row, tokenizer=policy.tokenizer, processor=policy.processor, **how)
    if encoded.vision is None:
        return encoded
    return replace(encoded, vision=with_positions(encoded.vision, encoded.ids, policy.model))


def encode_seen(
    processor: Any,
    text: str,
    images: Sequence[Image],
    *,
    system_prompt: str | None = None,
    chat: Chat = "auto",
    chat_template_kwargs: Mapping[str, Any] | None = None,
    where: str = "prompt",
) -> EncodedPrompt:
    """The same for images that are open already."""
    tokenizer = processor.tokenizer
    _refuse_placeholders(processor, f"{system_prompt or ''}\n{text}", where)
    has_template = bool(tokenizer.chat_template)
    if chat == "always" and not has_template:
        raise PromptError(
            f"chat: always, but the processor of {tokenizer.name_or_path!r} has no chat template. "
            "Set chat: auto or never, or choose an instruction-tuned model."
        )
    is_chat = has_template and chat != "never"
    if is_chat:
        rendered = _rendered(
            tokenizer, text, len(images), system_prompt, dict(chat_template_kwargs or {})
        )
    else:
        words = f"{system_prompt}\n\n{text}" if system_prompt else text
        shown = "".join(f"{_placeholder(processor)}\n" for _ in images)
        rendered = f"{shown}{words}"
    if images:
        encoded = _processed(processor, rendered, images, where)
        if not is_chat:
            encoded = _behind(_front(tokenizer), encoded)
    elif is_chat:
        encoded = EncodedPrompt(tokenizer(rendered, add_special_tokens=False)["input_ids"])
    else:
        encoded = EncodedPrompt(plain_ids(tokenizer, rendered))
    encoded = _without_double_start(encoded, tokenizer.bos_token_id)
    if not encoded.ids:
        raise PromptError(f"{where}: the prompt {text!r} has no tokens. Give it some text.")
    return encoded


def _rendered(
    tokenizer: Any,
    text: str,
    num_images: int,
    system_prompt: str | None,
    arguments: dict[str, Any],
) -> str:
    parts = [*({"type": "image"} for _ in range(num_images)), {"type": "text", "text": text}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": parts}]
    if system_prompt:
        words = [{"type": "text", "text": system_prompt}]
        messages.insert(0, {"role": "system", "content": words})
    options = {"add_generation_prompt": True, **arguments}
    try:
        rendered: str = tokenizer.apply_chat_template(messages, tokenize=False, **options)
    except (jinja2.TemplateError, TypeError) as error:
        raise PromptError(
            f"the chat template of {tokenizer.name_or_path!r} refuses the prompt ({error}). Some "
            "templates know no system role: put that text into the prompt, or set chat: never."
        ) from error
    return rendered


def _processed(processor: Any, rendered: str, images: Sequence[Image], where: str) -> EncodedPrompt:
    """Run the family's processor on one prompt."""
    try:
        output = processor(
            text=[rendered], images=[list(images)], return_tensors="pt", add_special_tokens=False
        )
    except (ValueError, TypeError, IndexError, KeyError) as error:
        sizes = ", ".join(f"{image.width} x {image.height}" for image in images)
        raise PromptError(
            f"{where}: {type(processor).__name__} refuses the prompt with images of {sizes} "
            f"pixels ({error})"
        ) from error
    ids: list[int] = output["input_ids"][0].tolist()
    return EncodedPrompt(
        ids,
        VisionInputs(
            tensors={
                key: value
                for key, value in output.items()
                if key not in (*_NOT_IMAGES, *TOKEN_KEYS) and isinstance(value, torch.Tensor)
            },
            token_tensors={key: output[key][0].long() for key in TOKEN_KEYS if key in output},
        ),
    )


def _refuse_placeholders(processor: Any, text: str, where: str) -> None:
    names = ("image_token", "video_token", "boi_token", "fake_image_token")
    marks = {getattr(processor, name, None) for name in names}
    marks.add(getattr(processor.tokenizer, "image_token", None))
    for mark in sorted(mark for mark in marks if isinstance(mark, str) and mark):
        if mark in text:
            raise PromptError(
                f"{where}: its text holds {mark!r}, which the model reads as an image. Images come "
                "in front of the text by themselves: take it out"
            )


def _placeholder(processor: Any) -> str:
    """What stands for one image in a text: alone, or between the family's marks."""
    token: str = getattr(processor, "image_token", "<image>")
    start = getattr(processor, "vision_start_token", None)
    end = getattr(processor, "vision_end_token", None)
    if token == "<|image_pad|>":  # Qwen2.5-VL's processor does not name its marks
        start, end = start or "<|vision_start|>", end or "<|vision_end|>"
    return f"{start or ''}{token}{end or ''}"


def _front(tokenizer: Any) -> list[int]:
    """What the tokenizer puts in front of any text."""
    front = plain_ids(tokenizer, "a")
    bare: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"]
    return front[: len(front) - len(bare)]


def _behind(front: list[int], encoded: EncodedPrompt) -> EncodedPrompt:
    if not front or encoded.vision is None:
        return encoded
    shifted = {
        key: torch.cat([values.new_zeros(len(front)), values])
        for key, values in encoded.vision.token_tensors.items()
    }
    return EncodedPrompt([*front, *encoded.ids], VisionInputs(encoded.vision.tensors, shifted))


def _without_double_start(encoded: EncodedPrompt, start_id: int | None) -> EncodedPrompt:
    ids = without_double_start(encoded.ids, start_id)
    dropped = len(encoded.ids) - len(ids)
    if not dropped or encoded.vision is None:
        return EncodedPrompt(ids, encoded.vision)
    cut = {key: values[dropped:] for key, values in encoded.vision.token_tensors.items()}
    return EncodedPrompt(ids, VisionInputs(encoded.vision.tensors, cut))
