"""What a checkpoint says about itself, read before any weight is loaded.

Used by `corl check`, and by `load_policy` as its first step, so that both refuse the same things
in the same words. Parameter counts come from safetensors headers (a few kilobytes), never from
building the model. A hub id that is not in the local cache is asked for once, with a short
time-out: transformers' own retries would keep an offline user waiting for half a minute.
"""

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import huggingface_hub
from transformers import AutoConfig, AutoTokenizer
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
)

from corl.errors import ModelError, first_line
from corl.policy.adapters import base_of, is_adapter

UNLIMITED_CONTEXT = 1 << 30
"""Tokens of context where neither config nor tokenizer states a limit (ALiBi, recurrent models)."""

_HUB_TIMEOUT_S = 10.0
_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a checkpoint without its weights."""

    source: str
    architecture: str
    """Class that transformers will build, such as Qwen3ForCausalLM."""
    model_type: str
    num_parameters: int
    """Stored parameters; tied weights count once."""
    context_length: int
    """Longest prompt plus completion, tokens."""
    vocab_size: int
    """Rows of the output layer; may exceed the tokenizer's."""
    num_layers: int
    hidden_size: int
    kv_width: int
    """Key-value heads times head size: one token's cache is 2 * num_layers * kv_width numbers."""
    has_chat_template: bool
    sees_images: bool = False


def check_model(source: str | Path, *, trust_remote_code: bool = False) -> ModelFacts:
    """Validate a checkpoint without loading its weights.

    source: a directory or a hub id.
    Raises ModelError when it is missing or unreachable, no causal language model, has no
    safetensors weights, or its tokenizer does not load or does not fit.
    """
    location = locate(source)
    config = load_config(location, source, trust_remote_code=trust_remote_code)
    num_parameters = _count_parameters(location, source)
    tokenizer = load_tokenizer(location, source, trust_remote_code=trust_remote_code)
    text = config.get_text_config(decoder=True)
    if len(tokenizer) > text.vocab_size:
        raise ModelError(
            f"model {str(source)!r}: its tokenizer has {len(tokenizer)} tokens, its embedding only "
            f"{text.vocab_size}. Use the tokenizer that belongs to the checkpoint."
        )
    heads = getattr(text, "num_attention_heads", 1) or 1
    kv_heads = getattr(text, "num_key_value_heads", None) or heads
    head_size = getattr(text, "head_dim", None) or text.hidden_size // heads
    return ModelFacts(
        source=str(source),
        architecture=_architecture(config),
        model_type=config.model_type,
        num_parameters=num_parameters,
        context_length=context_length(config, tokenizer),
        vocab_size=text.vocab_size,
        num_layers=text.num_hidden_layers,
        hidden_size=text.hidden_size,
        kv_width=kv_heads * head_size,
        has_chat_template=bool(getattr(tokenizer, "chat_template", None)),
        sees_images=sees_images(config),
    )


def locate(source: str | Path) -> str:
    """Return the directory or hub id to load from, or raise ModelError if neither is there.

    An adapter's directory leads to its base.
    """
    if is_adapter(source):
        return locate(base_of(source))
    name = str(source)
    directory = Path(name).expanduser()
    if directory.is_dir():
        if not (directory / "config.json").is_file():
            raise ModelError(
                f"model {name!r}: the directory has no config.json, so it is no checkpoint of "
                "transformers. Point to the directory that save_pretrained wrote."
            )
        return str(directory)
    looks_like_path = (
        isinstance(source, Path) or name.startswith((".", "/", "~")) or name.count("/") > 1
    )
    if directory.exists() or (looks_like_path and not _cached(name)):
        raise ModelError(
            f"model {name!r}: no such directory (looked at {directory.absolute()}). "
            "Give a directory with config.json and *.safetensors, or a hub id OWNER/NAME."
        )
    if not _cached(name):
        _ask_hub(name)
    return name


def load_config(location: str, source: str | Path, *, trust_remote_code: bool) -> Any:
    """Read the config and refuse what is no language model, with or without images."""
    try:
        config = AutoConfig.from_pretrained(location, trust_remote_code=trust_remote_code)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"model {str(source)!r}: its config does not load ({first_line(error)}). Check the "
            "directory or id; a model with its own code needs trust_remote_code: true."
        ) from error
    has_own_code = trust_remote_code and "AutoModelForCausalLM" in getattr(config, "auto_map", {})
    is_known = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING or sees_images(config)
    if not is_known and not has_own_code:
        raise ModelError(
            f"model {str(source)!r}: {config.model_type!r} ({_architecture(config)}) is no causal "
            "language model of transformers. Choose a decoder such as Qwen3, Llama or Gemma."
        )
    return config


def sees_images(config: Any) -> bool:
    """Whether the checkpoint is a vision-language model."""
    has_tower = getattr(config, "vision_config", None) is not None
    return has_tower and type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING


def load_tokenizer(location: str, source: str | Path, *, trust_remote_code: bool) -> Any:
    """Load the tokenizer, with errors that name the checkpoint."""
    try:
        return AutoTokenizer.from_pretrained(location, trust_remote_code=trust_remote_code)
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        raise ModelError(
            f"model {str(source)!r}: its tokenizer does not load ({first_line(error)}). "
            "Put tokenizer.json and tokenizer_config.json beside the weights."
        ) from error


def context_length(config: Any, tokenizer: Any) -> int:
    """Longest sequence in tokens: the config's limit, else the tokenizer's, else no limit."""
    text = config.get_text_config(decoder=True)
    for key in _CONTEXT_KEYS:
        value = getattr(text, key, None)
        if isinstance(value, int) and value > 0:
            return value
    return min(int(tokenizer.model_max_length), UNLIMITED_CONTEXT)


def _architecture(config: Any) -> str:
    names = getattr(config, "architectures", None)
    return names[0] if names else type(config).__name__


def _cached(name: str) -> str | None:
    """Path of the hub id's config in the local cache, or None."""
    try:
        found = huggingface_hub.try_to_load_from_cache(name, "config.json")
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def _ask_hub(name: str) -> None:
    """Raise ModelError unless the hub knows this id."""
    try:
        huggingface_hub.HfApi().model_info(name, timeout=_HUB_TIMEOUT_S)
    except huggingface_hub.errors.RepositoryNotFoundError as error:
        raise ModelError(
            f"model {name!r}: neither a directory here nor a model that the hub shows you. "
            "Check the spelling; a private or gated model needs `hf auth login`."
        ) from error
    except Exception as error:  # the hub client raises its transport's own error classes
        raise ModelError(
            f"model {name!r}: no such directory, not in the local cache, and the hub did not "
            f"answer ({type(error).__name__}). Check the path, or download the model first."
        ) from error


def _count_parameters(location: str, source: str | Path) -> int:
    """Count stored parameters from safetensors headers; ModelError when there are none."""
    config_path = _cached(location)
    directory = Path(config_path).parent if config_path else Path(location)
    files = sorted(directory.glob("*.safetensors"))
    if files:
        _check_shards(directory, source)
        return sum(_header_count(file, source) for file in files)
    if not Path(location).is_dir():
        count = _hub_count(location)
        if count:
            return count
    pickles = [file.name for pattern in _PICKLES for file in directory.glob(pattern)]
    seen = f"only pickled weights ({', '.join(sorted(pickles)[:3])})" if pickles else "no weights"
    raise ModelError(
        f"model {str(source)!r}: {seen}, no *.safetensors. Pickles can run code and are refused: "
        "load the model with transformers where you trust it, and save_pretrained it again."
    )


def _check_shards(directory: Path, source: str | Path) -> None:
    """Every shard that the index names must be there."""
    index = directory / "model.safetensors.index.json"
    if not index.is_file():
        return
    named = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    missing = sorted(name for name in named if not (directory / name).is_file())
    if missing:
        raise ModelError(
            f"model {str(source)!r}: {len(missing)} of {len(named)} weight files are missing, "
            f"the first is {missing[0]}. Download the checkpoint again."
        )


def _header_count(file: Path, source: str | Path) -> int:
    """Numbers stored in one safetensors file (8 bytes of header length, then JSON)."""
    size = os.path.getsize(file)
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 0 < length <= size - 8:
            raise ModelError(
                f"model {str(source)!r}: {file.name} is no safetensors file or was cut off "
                f"({size} bytes). Copy or download it again."
            )
        header = json.loads(stream.read(length))
    header.pop("__metadata__", None)
    data_bytes = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if 8 + length + data_bytes > size:
        raise ModelError(
            f"model {str(source)!r}: {file.name} has {size} bytes, its header announces "
            f"{8 + length + data_bytes}. Copy or download it again."
        )
    return sum(math.prod(entry["shape"]) for entry in header.values())


def _hub_count(name: str) -> int:
    """Parameters by the hub's metadata; 0 where it lists no safetensors."""
    info = huggingface_hub.HfApi().model_info(name, timeout=_HUB_TIMEOUT_S)
    return int(info.safetensors.total) if info.safetensors else 0
