"""Tiny checkpoints of really different families, as ordinary Hugging Face directories.

Random weights are scaled up so that next-token distributions are far from uniform: a test of
log-probabilities on a nearly uniform model passes whatever the positions and masks are.
"""

import json
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GenerationConfig,
    GPTNeoXConfig,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

Family = Literal["qwen3", "llama", "gpt_neox", "gemma3"]
FAMILIES: tuple[Family, ...] = ("qwen3", "llama", "gpt_neox", "gemma3")

PAD, EOS, BOS, TURN_START, TURN_END = "<pad>", "<eos>", "<bos>", "<|im_start|>", "<|im_end|>"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
CHARACTERS = "0123456789" + LETTERS + "+-*/=<>^_()[]{}\\|.,:;?!'\" \n$"

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_tokenizer(
    *,
    chat_template: str | None = None,
    pad_is_eos: bool = False,
    add_bos: bool = False,
    append_eos: bool = False,
) -> PreTrainedTokenizerFast:
    """One token a character: digits, letters, operators, backslash, braces, space, newline."""
    specials = [PAD, EOS, BOS, TURN_START, TURN_END]
    vocab = {token: index for index, token in enumerate([*specials, *CHARACTERS])}
    core = Tokenizer(models.WordLevel(vocab, unk_token=PAD))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    core.decoder = decoders.Fuse()
    if add_bos or append_eos:
        pattern = " ".join([BOS] * add_bos + ["$A"] + [EOS] * append_eos)
        core.post_processor = processors.TemplateProcessing(
            single=pattern, special_tokens=[(BOS, vocab[BOS]), (EOS, vocab[EOS])]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=EOS,
        bos_token=BOS,
        pad_token=EOS if pad_is_eos else PAD,
        additional_special_tokens=[TURN_START, TURN_END],
        chat_template=chat_template,
        clean_up_tokenization_spaces=False,
    )


def tiny_config(family: Family, **overrides: Any) -> Any:
    """A config of two layers and width 32 (about 20,000 parameters)."""
    common: dict[str, Any] = {
        "vocab_size": 5 + len(CHARACTERS),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 128,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 2,
    }
    grouped = {"num_key_value_heads": 2, "head_dim": 8}
    if family == "qwen3":
        return Qwen3Config(**{**common, **grouped, "tie_word_embeddings": True, **overrides})
    if family == "llama":
        return LlamaConfig(**{**common, **grouped, **overrides})
    if family == "gpt_neox":
        return GPTNeoXConfig(**{**common, "tie_word_embeddings": False, **overrides})
    # One sliding layer (window shorter than the tests' sequences) and one that sees everything.
    sliding = {
        "sliding_window": 6,
        "layer_types": ["sliding_attention", "full_attention"],
        "query_pre_attn_scalar": 8,
    }
    return Gemma3TextConfig(**{**common, **grouped, **sliding, **overrides})


def tiny_model(family: Family, *, seed: int = 0, scale: float = 12.0, **overrides: Any) -> Any:
    """A random model; its matrices are multiplied by `scale` to sharpen the distributions."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(tiny_config(family, **overrides))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(scale)
                else:  # norms and biases: away from their symmetric start
                    parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def build_checkpoint(
    directory: str | Path,
    family: Family = "qwen3",
    seed: int = 0,
    chat_template: str | None = None,
    *,
    generation: dict[str, Any] | None = None,
    tokenizer: PreTrainedTokenizerFast | None = None,
    **overrides: Any,
) -> Path:
    """Write a tiny checkpoint and return its directory.

    chat_template: Jinja text, or None for a base model. generation: entries of its generation
    config. overrides: config entries, and `scale` for the sharpness of the weights.
    """
    target = Path(directory)
    model = tiny_model(family, seed=seed, **overrides)
    model.generation_config = GenerationConfig(
        **{"eos_token_id": 1, "pad_token_id": 0, "bos_token_id": 2, **(generation or {})}
    )
    model.save_pretrained(target)
    chosen = tokenizer if tokenizer is not None else tiny_tokenizer(chat_template=chat_template)
    chosen.save_pretrained(target)
    return target


def edit_json(path: Path, **changes: Any) -> None:
    """Change entries of a JSON file in place."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content.update(changes)
    path.write_text(json.dumps(content), encoding="utf-8")
