"""A prompt's text becomes the tokens that a model reads.

With a chat template the prompt is one user turn, after the system prompt if there is one, and the
model's turn is opened. Without one the text is tokenised as it stands (the system prompt first,
then an empty line), with whatever the tokenizer puts in front and nothing of what it may put
behind: an end-of-sequence token after the prompt would ask the model to continue after its end.
"""

from collections.abc import Mapping
from typing import Any, Literal

import jinja2

from corl.errors import PromptError

Chat = Literal["auto", "always", "never"]


def render(
    tokenizer: Any,
    text: str,
    *,
    system_prompt: str | None = None,
    chat: Chat = "auto",
    chat_template_kwargs: Mapping[str, Any] | None = None,
) -> list[int]:
    """Return the token ids of one prompt; never empty, never with a double start token.

    chat: "auto" uses the tokenizer's chat template if it has one, "always" requires it, "never"
    leaves it out. chat_template_kwargs go to the template (such as enable_thinking=False).
    Raises PromptError when a template is required and missing, when it refuses the messages, or
    when nothing is left to read.
    """
    has_template = bool(getattr(tokenizer, "chat_template", None))
    if chat == "always" and not has_template:
        raise PromptError(
            f"chat: always, but the tokenizer of {tokenizer.name_or_path!r} has no chat template. "
            "Set chat: auto or never, or choose an instruction-tuned model."
        )
    if has_template and chat != "never":
        ids = _chat_ids(tokenizer, text, system_prompt, dict(chat_template_kwargs or {}))
    else:
        ids = plain_ids(tokenizer, f"{system_prompt}\n\n{text}" if system_prompt else text)
    ids = without_double_start(ids, tokenizer.bos_token_id)
    if not ids and tokenizer.bos_token_id is not None:
        ids = [tokenizer.bos_token_id]
    if not ids:
        raise PromptError(f"the prompt {text!r} has no tokens. Give it some text.")
    return ids


def _chat_ids(
    tokenizer: Any, text: str, system_prompt: str | None, arguments: dict[str, Any]
) -> list[int]:
    messages = [{"role": "user", "content": text}]
    if system_prompt:
        messages.insert(0, {"role": "system", "content": system_prompt})
    options = {"add_generation_prompt": True, **arguments}
    try:
        rendered = tokenizer.apply_chat_template(messages, tokenize=False, **options)
    except (jinja2.TemplateError, TypeError) as error:
        raise PromptError(
            f"the chat template of {tokenizer.name_or_path!r} refuses the prompt ({error}). Some "
            "templates know no system role: put that text into the prompt, or set chat: never."
        ) from error
    # The template wrote every special token itself.
    ids: list[int] = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    return ids


def plain_ids(tokenizer: Any, text: str) -> list[int]:
    """What the tokenizer makes of the text, cut behind the text's own last token."""
    full: list[int] = tokenizer(text, add_special_tokens=True)["input_ids"]
    bare: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            # With an empty text everything is special: keep only what stands in front.
            return full[: start + len(bare)] if bare else []
    return full


def without_double_start(ids: list[int], start_id: int | None) -> list[int]:
    """Drop a start token that the text spelled out and the tokenizer added again."""
    while len(ids) > 1 and start_id is not None and ids[0] == start_id == ids[1]:
        ids = ids[1:]
    return ids
