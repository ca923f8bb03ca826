"""Tiny vision-language checkpoints of seven families, each with its own processor.

Random weights are scaled up, so that text and images both move next-token distributions far from
uniform. Processor files are written as checkpoints carry them; nothing here needs torchvision.
"""

import json
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from PIL import Image
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForImageTextToText,
    GenerationConfig,
    PreTrainedTokenizerFast,
)

from tiny_models import BOS, CHARACTERS, EOS, PAD, TURN_END, TURN_START

VisionFamily = Literal[
    "llava", "qwen2_5_vl", "qwen3_vl", "internvl", "gemma3", "smolvlm", "idefics3"
]
VISION_FAMILIES: tuple[VisionFamily, ...] = (
    "llava", "qwen2_5_vl", "qwen3_vl", "internvl", "gemma3", "smolvlm", "idefics3",
)  # fmt: skip

_QWEN_MARKS = {
    "image_token": "<|image_pad|>",
    "video_token": "<|video_pad|>",
    "vision_start_token": "<|vision_start|>",
    "vision_end_token": "<|vision_end|>",
}
_IDEFICS_MARKS = {
    "image_token": "<image>",
    "fake_image_token": "<fake_token_around_image>",
    "global_image_token": "<global-img>",
    "end_of_utterance_token": "<end_of_utterance>",
}
_TILES = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
MARKS: dict[str, dict[str, str]] = {
    "llava": {"image_token": "<image>"},
    "qwen2_5_vl": _QWEN_MARKS,
    "qwen3_vl": _QWEN_MARKS,
    "internvl": {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    },
    "gemma3": {
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
        "image_token": "<image_soft_token>",
    },
    "smolvlm": _IDEFICS_MARKS,
    "idefics3": _IDEFICS_MARKS,
}
_SHOWN = {
    "llava": "<image>\n",
    "qwen2_5_vl": "<|vision_start|><|image_pad|><|vision_end|>",
    "qwen3_vl": "<|vision_start|><|image_pad|><|vision_end|>",
    "internvl": "<IMG_CONTEXT>\n",
    "gemma3": "<start_of_image>",
    "smolvlm": "<image>",
    "idefics3": "<image>",
}
_PROCESSORS = {
    "llava": "LlavaProcessor",
    "qwen2_5_vl": "Qwen2_5_VLProcessor",
    "qwen3_vl": "Qwen3VLProcessor",
    "internvl": "InternVLProcessor",
    "gemma3": "Gemma3Processor",
    "smolvlm": "SmolVLMProcessor",
    "idefics3": "Idefics3Processor",
}


def vision_tokenizer(family: str, *, chat: bool = True) -> PreTrainedTokenizerFast:
    """One token a character, and the family's marks as special tokens."""
    specials = [PAD, EOS, BOS, TURN_START, TURN_END, *MARKS[family].values()]
    if MARKS[family] is _IDEFICS_MARKS:
        specials += _TILES
    vocab = {token: index for index, token in enumerate([*specials, *CHARACTERS])}
    core = Tokenizer(models.WordLevel(vocab, unk_token=PAD))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    core.decoder = decoders.Fuse()
    core.add_special_tokens(specials)
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=EOS,
        bos_token=BOS,
        pad_token=PAD,
        chat_template=vision_template(family) if chat else None,
        clean_up_tokenization_spaces=False,
        **MARKS[family],
    )


def vision_template(family: str) -> str:
    """Turns of content parts; a text that is no list of parts is an error, as in SmolVLM's."""
    shown = _SHOWN[family].replace("\n", "\\n")
    return (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
        "{% for part in message['content'] %}"
        f"{{% if part['type'] == 'image' %}}{{{{ '{shown}' }}}}"
        "{% else %}{{ part['text'] }}{% endif %}{% endfor %}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def vision_config(family: str, tokenizer: PreTrainedTokenizerFast) -> Any:
    """Two language layers of width 32, two vision layers of width 16."""
    ids = {name: tokenizer.convert_tokens_to_ids(mark) for name, mark in MARKS[family].items()}
    text: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 2,
    }
    vision: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 16,
        "patch_size": 4,
    }
    qwen = {
        "depth": 2,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_heads": 2,
        "patch_size": 8,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": 32,
    }
    qwen_ids = {
        f"{name}_id": ids.get(name)
        for name in ("image_token", "video_token", "vision_start_token", "vision_end_token")
    }
    rotary = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
    if family == "llava":
        return AutoConfig.for_model(
            "llava",
            vision_config={"model_type": "clip_vision_model", **vision, "patch_size": 8},
            text_config={"model_type": "llama", **text},
            image_token_index=ids["image_token"],
            image_seq_length=4,
            vision_feature_layer=-2,
        )
    if family == "qwen2_5_vl":
        return AutoConfig.for_model(
            "qwen2_5_vl",
            text_config={**text, "rope_parameters": rotary},
            vision_config={**qwen, "window_size": 32, "fullatt_block_indexes": [1]},
            **qwen_ids,
        )
    if family == "qwen3_vl":
        return AutoConfig.for_model(
            "qwen3_vl",
            text_config={**text, "rope_parameters": {**rotary, "mrope_interleaved": True}},
            vision_config={**qwen, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]},
            **qwen_ids,
        )
    if family == "internvl":
        return AutoConfig.for_model(
            "internvl",
            text_config={"model_type": "qwen2", **text},
            vision_config={**vision, "image_size": [16, 16], "patch_size": [4, 4]},
            image_token_id=ids["context_image_token"],
            image_seq_length=4,
        )
    if family == "gemma3":
        return AutoConfig.for_model(
            "gemma3",
            text_config={
                **text,
                "sliding_window": 6,
                "layer_types": ["sliding_attention", "full_attention"],
                "query_pre_attn_scalar": 8,
            },
            vision_config=vision,
            mm_tokens_per_image=4,
            image_token_index=ids["image_token"],
            boi_token_index=ids["boi_token"],
            eoi_token_index=ids["eoi_token"],
        )
    return AutoConfig.for_model(
        family,
        text_config={"model_type": "llama", **text},
        vision_config=vision,
        image_token_id=ids["image_token"],
        scale_factor=2,
        pad_token_id=0,
    )


def vision_processor_files(family: str) -> dict[str, dict[str, Any]]:
    """The processor's files as a checkpoint carries them."""
    named: dict[str, Any] = {"processor_class": _PROCESSORS[family]}
    square = {"size": {"height": 16, "width": 16}}
    image: dict[str, dict[str, Any]] = {
        "llava": {
            "image_processor_type": "CLIPImageProcessor",
            "size": {"shortest_edge": 16},
            "crop_size": {"height": 16, "width": 16},
        },
        "qwen2_5_vl": {
            "image_processor_type": "Qwen2VLImageProcessor",
            "patch_size": 8,
            "merge_size": 2,
            "temporal_patch_size": 2,
            "size": {"shortest_edge": 256, "longest_edge": 48 * 48},
        },
        "internvl": {
            "image_processor_type": "GotOcr2ImageProcessor",
            **square,
            "crop_to_patches": True,
            "min_patches": 1,
            "max_patches": 3,
        },
        "gemma3": {"image_processor_type": "Gemma3ImageProcessor", **square},
        "smolvlm": {
            "image_processor_type": "SmolVLMImageProcessor",
            "size": {"longest_edge": 32},
            "max_image_size": {"longest_edge": 16},
            "do_image_splitting": True,
        },
    }
    image["qwen3_vl"] = image["qwen2_5_vl"]
    image["idefics3"] = {**image["smolvlm"], "image_processor_type": "Idefics3ImageProcessor"}
    own: dict[str, dict[str, Any]] = {
        "llava": {
            "patch_size": 8,
            "vision_feature_select_strategy": "default",
            "num_additional_image_tokens": 1,
        },
        "internvl": {"image_seq_length": 4},
        "gemma3": {"image_seq_length": 4},
        "smolvlm": {"image_seq_len": 4},
        "idefics3": {"image_seq_len": 4},
    }
    files = {
        "preprocessor_config.json": {**named, **image[family]},
        "processor_config.json": {**named, **own.get(family, {})},
    }
    if family in ("qwen2_5_vl", "qwen3_vl", "internvl", "smolvlm"):
        files["video_preprocessor_config.json"] = {**named, "fps": 3, "num_frames": 5}
    return files


def build_vision_checkpoint(
    directory: str | Path, family: str, *, seed: int = 0, scale: float = 12.0, chat: bool = True
) -> Path:
    """Write a tiny vision-language checkpoint and return its directory."""
    target = Path(directory)
    tokenizer = vision_tokenizer(family, chat=chat)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForImageTextToText.from_config(vision_config(family, tokenizer))
        with torch.no_grad():
            for parameter in model.parameters():
                if not parameter.any() and parameter.ndim > 1:  # Gemma 3's projector
                    parameter.normal_(0.0, 0.1)
                elif parameter.ndim > 1:
                    parameter.mul_(scale)
                else:
                    parameter.add_(0.1 * torch.randn_like(parameter))
    model.generation_config = GenerationConfig(eos_token_id=1, pad_token_id=0, bos_token_id=2)
    model.eval().save_pretrained(target)
    tokenizer.save_pretrained(target)
    for name, content in vision_processor_files(family).items():
        (target / name).write_text(json.dumps(content), encoding="utf-8")
    return target


def picture(width: int, height: int, *, seed: int = 0) -> Image.Image:
    """A picture of noise, so that no two look alike to a model."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (height, width, 3), generator=generator, dtype=torch.uint8)
    return Image.fromarray(pixels.numpy())


def auto_class(family: str) -> Any:
    """The family's processor class."""
    return getattr(transformers, _PROCESSORS[family])
