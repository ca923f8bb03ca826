"""The models, prompts and sizes of each row.

Models of the two small scales are the quickstart's families with random weights: what a step
costs depends on shapes, not on what was learned.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from versus.work import Work

FLAT_SHARE = 0.49
"""Mean `flat_share` in the metrics of `corl quickstart --seeds 0 1 2`: both agents, every step."""


_QWEN_1_5B = {
    "vocab_size": 151_936,
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
}
_LLAMA_3B = {
    "vocab_size": 128_256,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 28,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
"""Of Qwen2.5-1.5B and Llama-3.2-3B."""


def small(folder: Path) -> list[Work]:
    """0.15 M parameters: the quickstart's step, 16 x 8 completions of 20 tokens."""
    work = Work(
        name="0.15M",
        models=_families(folder / "small", width=64, layers=3),
        prompts_file=_chains(folder / "chains.jsonl", steps=5),
        prompts=16,
        completions=8,
        tokens=20,
    )
    return [work, _flat(work), _ragged(work, folder)]


def medium(folder: Path, *, dtype: str) -> list[Work]:
    """5 M parameters: 8 x 8 completions of 64 tokens."""
    work = Work(
        name=f"5M {dtype}",
        dtype=dtype,
        models=_families(folder / "medium", width=256, layers=6),
        prompts_file=_chains(folder / "chains.jsonl", steps=5),
        prompts=8,
        completions=8,
        tokens=64,
    )
    return [work, _flat(work), _ragged(work, folder)]


def large(folder: Path, smollm2: Path, *, dtype: str) -> list[Work]:
    """135 M parameters: SmolLM2-135M-Instruct, 4 x 8 completions of 64 tokens."""
    work = Work(
        name=f"135M {dtype}",
        models=(str(smollm2), str(smollm2)),
        prompts_file=_word_problems(folder / "word_problems.jsonl"),
        prompts=4,
        completions=8,
        tokens=64,
        dtype=dtype,
        chat=True,
        # Four models with their optimisers lie in memory at once.
        tokens_per_microbatch=1280,
        trl_rows=8,
    )
    return [work]


def gpu(folder: Path, *, tokens: int = 2048) -> list[Work]:
    """1.5 B and 3 B random weights of Qwen2.5's and Llama 3.2's shapes, on one GPU."""
    models = (
        _random(folder / "qwen2.5-1.5b", "qwen2", _QWEN_1_5B, device="cuda"),
        _random(folder / "llama-3.2-3b", "llama", _LLAMA_3B, device="cuda"),
    )
    work = Work(
        name="1.5B + 3B",
        models=models,
        prompts_file=_words(folder / "words.jsonl", length=128),
        prompts=4,
        completions=8,
        tokens=tokens,
        dtype="mixed",
        device="cuda:0",
        tokens_per_microbatch=16384,
        trl_rows=8,
        gradient_checkpointing=True,
    )
    return [work]


def _flat(work: Work) -> Work:
    return replace(work, name=f"{work.name}, flat groups", flat_share=FLAT_SHARE)


def _ragged(work: Work, folder: Path) -> Work:
    """The same models, whose end token is likelier: one token in `tokens / 2` ends a completion."""
    models = tuple(
        _likelier_end(Path(model), folder / "ragged", mean_length=work.tokens / 2)
        for model in work.models
    )
    return replace(work, name=f"{work.name}, ragged", models=models, is_ragged=True)


def _families(folder: Path, *, width: int, layers: int) -> tuple[str, str]:
    import torch

    from corl.quickstart.families import FAMILIES, build_model, build_tokenizer

    paths = []
    for seed, name in enumerate(("qwen3", "gpt_neox")):
        target = folder / name
        if not (target / "model.safetensors").exists():
            torch.manual_seed(seed)
            tokenizer = build_tokenizer(FAMILIES[name])
            model = build_model(FAMILIES[name], tokenizer, width=width, layers=layers)
            _lengthen(model, tokenizer, tokens=256)
            model.save_pretrained(target)
            tokenizer.save_pretrained(target)
        paths.append(str(target))
    return paths[0], paths[1]


def _lengthen(model: Any, tokenizer: Any, *, tokens: int) -> None:
    model.config.max_position_embeddings = tokens
    tokenizer.model_max_length = tokens


def _likelier_end(source: Path, folder: Path, *, mean_length: float) -> str:
    """Move the end token's row along the mean hidden state, until it is as likely as asked."""
    import math

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    target = folder / source.parent.name / source.name
    if not (target / "model.safetensors").exists():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_pretrained(source)
        tokenizer = AutoTokenizer.from_pretrained(source)
        head = model.get_output_embeddings().weight
        with torch.no_grad():
            ids = torch.randint(0, len(tokenizer), (64, 32))
            hidden = model.base_model(ids).last_hidden_state.flatten(0, 1)
            direction = hidden.mean(dim=0)
            # The row is all direction: its logit is about its length times |direction|^2.
            others = (hidden @ head.T).logsumexp(dim=1).mean()
            wanted = others + math.log(1.0 / (mean_length - 1.0))
            head[tokenizer.eos_token_id] = direction * wanted / direction.square().sum()
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    return str(target)


def _chains(path: Path, *, steps: int) -> str:
    from corl.quickstart.task import distinct_problems

    problems = distinct_problems(0)
    return _write(path, [next(problems).prompt for _ in range(256)])


def _word_problems(path: Path) -> str:
    rng = random.Random(0)
    names, things = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn"], ["apples", "books", "coins"]
    texts = []
    for _ in range(64):
        one, two = rng.sample(names, 2)
        thing, a, b, c = rng.choice(things), *(rng.randint(2, 30) for _ in range(3))
        texts.append(
            f"{one} has {a} {thing} and buys {b} more at the market on Monday. {two} has {c} "
            f"times as many {thing} as {one} had at first, and gives half of them to {one}. How "
            f"many {thing} does {one} have now? Put the final answer in \\boxed{{}}."
        )
    return _write(path, texts)


def _words(path: Path, *, length: int) -> str:
    rng = random.Random(0)
    return _write(
        path, [" ".join(f"t{rng.randrange(10_000)}" for _ in range(length)) for _ in range(64)]
    )


def _write(path: Path, texts: list[str]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": f"row-{index}", "prompt": text, "answer": "0"} for index, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def _random(target: Path, kind: str, shape: dict[str, int], *, device: str) -> str:
    """A checkpoint of random weights, with one word for every row of its embedding."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    if not (target / "config.json").exists():
        config = AutoConfig.for_model(
            kind,
            **shape,
            max_position_embeddings=32_768,
            tie_word_embeddings=True,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=None,
        )
        words = {f"t{index}": index for index in range(config.vocab_size)}
        inner = Tokenizer(models.WordLevel(words, unk_token="t2"))
        inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=inner, pad_token="t0", eos_token="t1", unk_token="t2"
        )
        torch.manual_seed(0)
        with torch.device(device):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    return str(target)
