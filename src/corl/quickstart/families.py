"""Three families that differ in architecture and in what a token is.

| family   | a token is                                        | values       | completion |
|----------|---------------------------------------------------|--------------|------------|
| qwen3    | one character                                     | with spaces  | 15 tokens  |
| gpt_neox | operator with operand; the answer's two digits    | bare         | 9 tokens   |
| llama    | operator with operand; a value with its space     | with spaces  | 10 tokens  |

Value n and step n stand at a constant distance in each of the three. Where they do not (merged
steps, but a separator token after each value) a model must count, and learns several times slower.

All are ordinary classes of transformers and ordinary fast tokenizers, with no code of ours in a
checkpoint. `\\boxed{` is one token everywhere: it would cost six more a completion otherwise.
Imports of torch and transformers wait until a model or tokenizer is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from corl.quickstart.task import OPERATORS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

PAD, EOS, UNK = "<pad>", "<eos>", "<unk>"
BOX_OPEN, BOX_CLOSE = "\\boxed{", "}"
DIGITS = "0123456789"
CONTEXT_TOKENS = 64
# The customary 0.02 is made for wide models; at width 64 it costs about 100 steps of pretraining.
INITIAL_STD = 0.1

_STEPS = [operator + operand for operator, operand in product(OPERATORS, DIGITS[1:])]
_ANSWERS = ["".join(pair) for pair in product(DIGITS, DIGITS)]
_SPACED = [f"{digit} " for digit in DIGITS]
_BOX = r"\\boxed\{|\}"
_CHARACTERS = rf"{_BOX}|."
# The two digits after `\boxed{` are one token; the running values before it stay single.
_PAIRED_ANSWER = rf"{_BOX}|(?<=\{{)\d\d|[+\-*m][1-9]|."
_SPACED_VALUE = rf"{_BOX}|\d |[+\-*m][1-9]|."


@dataclass(frozen=True, slots=True)
class Family:
    """How one family reads, writes and computes."""

    name: str
    separator: str
    """What a completion puts after each running value."""

    pattern: str
    """The regular expression whose matches are the tokens."""

    vocabulary: tuple[str, ...]
    make_config: Callable[..., Any]
    """From keyword arguments of the architecture to its transformers config."""


def _qwen3_config(*, width: int, layers: int, **shared: Any) -> Any:
    from transformers import Qwen3Config

    return Qwen3Config(**_gated(width, layers), head_dim=width // 4, **shared)


def _llama_config(*, width: int, layers: int, **shared: Any) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(**_gated(width, layers), **shared)


def _gpt_neox_config(*, width: int, layers: int, **shared: Any) -> Any:
    from transformers import GPTNeoXConfig

    return GPTNeoXConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=4 * width,
        **shared,
    )


def _gated(width: int, layers: int) -> dict[str, int]:
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "intermediate_size": 2 * width,
    }


_SPECIAL = (PAD, EOS, UNK)
_MARKS = ("=", BOX_OPEN, BOX_CLOSE)

FAMILIES: dict[str, Family] = {
    "qwen3": Family(
        "qwen3",
        " ",
        _CHARACTERS,
        (*_SPECIAL, *DIGITS, *OPERATORS, " ", *_MARKS),
        _qwen3_config,
    ),
    "gpt_neox": Family(
        "gpt_neox",
        "",
        _PAIRED_ANSWER,
        (*_SPECIAL, *DIGITS, *_STEPS, *_ANSWERS, *_MARKS),
        _gpt_neox_config,
    ),
    "llama": Family(
        "llama",
        " ",
        _SPACED_VALUE,
        (*_SPECIAL, *DIGITS, *_STEPS, *_SPACED, *_MARKS),
        _llama_config,
    ),
}


def build_tokenizer(family: Family) -> PreTrainedTokenizerFast:
    """The family's tokenizer: adds no special token, and decodes to the text that went in."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    ids = {token: index for index, token in enumerate(family.vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(family.pattern), "isolated")
    # Without a decoder, word-level tokens are joined by spaces.
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT_TOKENS,
    )


def build_model(
    family: Family, tokenizer: PreTrainedTokenizerFast, *, width: int = 64, layers: int = 3
) -> PreTrainedModel:
    """The family's model with random fp32 weights, drawn from torch's global generator."""
    import torch
    from transformers import AutoModelForCausalLM

    config = family.make_config(
        width=width,
        layers=layers,
        vocab_size=len(tokenizer),
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=False,
        initializer_range=INITIAL_STD,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)
