"""Two vision-language families that differ in tower, projector, language model and tokens.

| family   | tower, and how it meets the language model  | language  | a token is             |
|----------|---------------------------------------------|-----------|------------------------|
| llava    | CLIP, a patch of 8 pixels is a visual token | Llama     | one character          |
| internvl | InternViT, four patches of 4 pixels are one | Qwen2     | operator with operand; |
|          |                                             |           | the answer's digits    |

A cell of the picture is one visual token in both. All are ordinary classes of transformers with
ordinary fast tokenizers and processors; every printable character is a token, so that a prompt of
anybody's own is read as it stands, if not understood. Imports of torch and transformers wait until
a model or tokenizer is built.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corl.quickstart.families import BOX_OPEN, DIGITS, EOS, PAD, UNK
from corl.quickstart.task import OPERATORS
from corl.quickstart.vision.glyphs import CELL, LINE_CELLS, SIDE

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

READ, SOLVE = "read:", "solve:"
"""What a prompt asks for: the signs of the picture, or the chain's values and answer."""

VISUAL_TOKENS = LINE_CELLS**2
CONTEXT_TOKENS = 128
INITIAL_STD = 0.1

_SPECIAL = (PAD, EOS, UNK)
_PRINTABLE = [chr(code) for code in range(32, 127)]
_MARKS = (BOX_OPEN, READ, SOLVE)
_STEPS = [operator + operand for operator, operand in product(OPERATORS, DIGITS[1:])]
_ANSWERS = ["".join(pair) for pair in product(DIGITS, DIGITS)]
_WORDS = rf"\\boxed\{{|{READ}|{SOLVE}"


@dataclass(frozen=True, slots=True)
class VisionFamily:
    """How one family sees, reads and writes."""

    name: str
    separator: str
    """What a completion puts after each running value."""

    pattern: str
    """The regular expression whose matches are the tokens."""

    vocabulary: tuple[str, ...]
    marks: dict[str, str]
    """The tokenizer's own names for what stands around or for an image."""

    make_config: Callable[..., Any]
    """From the language model's settings, the tower's and the image token to a config."""

    processor_files: dict[str, dict[str, Any]]
    """File name -> content, beside the tokenizer's own files."""


def _llava_config(text: dict[str, Any], tower: dict[str, Any], image_token: int) -> Any:
    from transformers import AutoConfig

    return AutoConfig.for_model(
        "llava",
        text_config={"model_type": "llama", **text},
        vision_config={
            "model_type": "clip_vision_model",
            **tower,
            "image_size": SIDE,
            "patch_size": CELL,
        },
        image_token_index=image_token,
        image_seq_length=VISUAL_TOKENS,
        vision_feature_layer=-1,
    )


def _internvl_config(text: dict[str, Any], tower: dict[str, Any], image_token: int) -> Any:
    from transformers import AutoConfig

    patch = CELL // 2
    return AutoConfig.for_model(
        "internvl",
        text_config={"model_type": "qwen2", **text},
        vision_config={**tower, "image_size": [SIDE, SIDE], "patch_size": [patch, patch]},
        image_token_id=image_token,
        image_seq_length=VISUAL_TOKENS,
    )


_SCALE: dict[str, Any] = {
    "do_convert_rgb": True,
    "do_rescale": True,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}
_SQUARE = {"height": SIDE, "width": SIDE}
_LLAVA_FILES: dict[str, dict[str, Any]] = {
    "preprocessor_config.json": {
        "processor_class": "LlavaProcessor",
        "image_processor_type": "CLIPImageProcessor",
        "size": _SQUARE,
        "crop_size": _SQUARE,
        **_SCALE,
    },
    "processor_config.json": {
        "processor_class": "LlavaProcessor",
        "image_token": "<image>",
        "patch_size": CELL,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
    },
}
_INTERNVL_FILES: dict[str, dict[str, Any]] = {
    "preprocessor_config.json": {
        "processor_class": "InternVLProcessor",
        "image_processor_type": "GotOcr2ImageProcessor",
        "size": _SQUARE,
        # The processor asks for tiles whatever stands here; one tile is the picture itself.
        "crop_to_patches": True,
        "min_patches": 1,
        "max_patches": 1,
        **_SCALE,
    },
    "processor_config.json": {
        "processor_class": "InternVLProcessor",
        "image_seq_length": VISUAL_TOKENS,
    },
    "video_preprocessor_config.json": {"processor_class": "InternVLProcessor", "size": _SQUARE},
}

VISION_FAMILIES: dict[str, VisionFamily] = {
    "llava": VisionFamily(
        "llava",
        " ",
        rf"{_WORDS}|[\s\S]",
        ("\n", *_PRINTABLE, *_MARKS),
        {"image_token": "<image>"},
        _llava_config,
        _LLAVA_FILES,
    ),
    "internvl": VisionFamily(
        "internvl",
        "",
        rf"{_WORDS}|(?<=\{{)\d\d|[+\-*m][1-9]|[\s\S]",
        ("\n", *_PRINTABLE, *_MARKS, *_STEPS, *_ANSWERS),
        {
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
        _internvl_config,
        _INTERNVL_FILES,
    ),
}


def build_tokenizer(family: VisionFamily) -> PreTrainedTokenizerFast:
    """The family's tokenizer: adds no special token, and decodes to the text that went in."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    specials = (*_SPECIAL, *family.marks.values())
    ids = {token: index for index, token in enumerate((*specials, *family.vocabulary))}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(family.pattern), "isolated")
    # Without a decoder, word-level tokens are joined by spaces.
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(list(specials))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=CONTEXT_TOKENS,
        **family.marks,
    )


def build_model(
    family: VisionFamily, tokenizer: PreTrainedTokenizerFast, *, width: int = 64
) -> PreTrainedModel:
    """Three language layers and two of the tower, random fp32 weights of torch's generator."""
    import torch
    from transformers import AutoModelForImageTextToText

    shared = {
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_attention_heads": 4,
        "initializer_range": INITIAL_STD,
    }
    text = {
        **shared,
        "num_hidden_layers": 3,
        "num_key_value_heads": 4,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": CONTEXT_TOKENS,
        "tie_word_embeddings": False,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    names = ("image_token", "context_image_token")
    image_token = next(family.marks[name] for name in names if name in family.marks)
    config = family.make_config(
        text, {**shared, "num_hidden_layers": 2}, tokenizer.convert_tokens_to_ids(image_token)
    )
    config.initializer_range = INITIAL_STD
    return AutoModelForImageTextToText.from_config(config, dtype=torch.float32)


def write_processor(
    family: VisionFamily, tokenizer: PreTrainedTokenizerFast, directory: Path
) -> None:
    """Write the tokenizer and the processor's files into a checkpoint's directory."""
    tokenizer.save_pretrained(directory)
    for name, content in family.processor_files.items():
        text = json.dumps(content, indent=2, sort_keys=True) + "\n"
        (directory / name).write_text(text, encoding="utf-8")
