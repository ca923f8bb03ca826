"""How much memory an update takes at a small and at a large vocabulary.

    python benchmarks/learner_memory.py

One update of one micro-batch of 4,096 tokens, a process for each vocabulary. Printed is the peak
beyond weights, gradients and optimiser state: peak resident memory of the update, less what was
resident before the model was built, less 16 bytes a parameter. The logits of such a micro-batch
alone would take 2.3 GiB at 150,000 entries.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from versus.gate import peak_bytes, resident_bytes

VOCABULARIES = (1_000, 150_000)
SHAPES = {"5M": (256, 6), "100M": (576, 30)}
"""Hidden width and layers."""
PROMPT, COMPLETIONS, TOKENS = 64, 32, 126
"""32 completions of one prompt: 64 + 32 * 125 tokens are read, 4,064."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=[*SHAPES, "all"], default="all")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_update(options.one[0], int(options.one[1]))))
        return
    print(f"{'shape':<6} {'vocabulary':>10} {'parameters':>12} {'beyond, MiB':>12} {'ratio':>6}")
    for shape in SHAPES if options.shape == "all" else [options.shape]:
        first = None
        for vocabulary in VOCABULARIES:
            found = _in_process(shape, vocabulary)
            first = first or found["beyond"]
            print(
                f"{shape:<6} {vocabulary:>10,} {found['parameters']:>12,} "
                f"{found['beyond'] / 2**20:>12.0f} {found['beyond'] / first:>6.2f}",
                flush=True,
            )


def one_update(shape: str, vocabulary: int) -> dict[str, int]:
    """Learn once and read the peak."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen3Config

    from corl.config import GrpoConfig, OptimizerConfig
    from corl.policy.attention import use_our_attention
    from corl.policy.learner import LearnBatch, Learner
    from corl.policy.load import Policy

    torch.set_num_threads(1)
    width, layers = SHAPES[shape]
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        num_key_value_heads=width // 64,
        head_dim=64,
        tie_word_embeddings=False,
    )
    _update(torch, width)  # whatever torch loads for its first update is loaded now
    before = resident_bytes()
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    use_our_attention(model)
    policy = Policy(model, None, torch.device("cpu"), torch.float32, frozenset(), 4096)
    learner = Learner(
        policy,
        OptimizerConfig(tokens_per_microbatch=4096),
        GrpoConfig(),
        total_steps=2,
        temperature=1.0,
    )
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(vocabulary, (COMPLETIONS, TOKENS), generator=draw).tolist()
    learner.update(
        LearnBatch(
            prompt_ids=[list(range(PROMPT))],
            token_ids=[ids],
            rewards_pk=torch.arange(COMPLETIONS).remainder(2).float()[None],
        )
    )
    peak = peak_bytes()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"parameters": parameters, "beyond": peak - before - 16 * parameters}


def _update(torch: Any, width: int) -> None:
    layer = torch.nn.Linear(width, width)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(8, width)).sum().backward()
    optimizer.step()


def _in_process(shape: str, vocabulary: int) -> dict[str, int]:
    command = [sys.executable, __file__, "--one", shape, str(vocabulary)]
    found: dict[str, int] = json.loads(subprocess.check_output(command).splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
