"""Which token ids end a completion.

The union of three sources, since each alone is wrong for some family: the tokenizer's end of
sequence, the generation config's (one id or a list), and the chat format's end of turn. Nothing
else of a generation config is ever read: its temperature, top-k and penalties would make
sampling nearly greedy without a word.
"""

from collections.abc import Iterable
from typing import Any

END_OF_TURN = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<turn|>",
    "<|end|>",
    "<|end_of_turn|>",
    "<|endofturn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<end_of_utterance>",
)
"""End-of-turn marks of chat formats. They stop only where the tokenizer declares them as tokens."""


def stop_ids(tokenizer: Any, generation_config: Any | None) -> frozenset[int]:
    """Collect the ids after which a completion is over.

    tokenizer: a transformers tokenizer. generation_config: the model's, or None.
    Returns ids, possibly none (then only the length limits end a completion).
    """
    ids = set(_as_ids(tokenizer.eos_token_id))
    if generation_config is not None:
        ids.update(_as_ids(getattr(generation_config, "eos_token_id", None)))
    declared = tokenizer.get_added_vocab()
    for mark in END_OF_TURN:
        # Harmony formats close every channel message with <|end|> and the turn with <|return|>.
        if mark == "<|end|>" and "<|return|>" in declared:
            continue
        if mark in declared:
            ids.add(declared[mark])
    return frozenset(ids)


def _as_ids(value: int | Iterable[int] | None) -> list[int]:
    if value is None:
        return []
    return [value] if isinstance(value, int) else [int(item) for item in value]
