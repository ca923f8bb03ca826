"""The work that both sides do: models, prompts, sizes, rewards.

Rewards are replayed, not earned: a function of (seed, step, agent), 0 or 1, with a given share of
groups whose rewards are all alike. So both sides learn from as many groups in every step.

Shapes: P prompts of a step, K completions of a prompt.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One row of the table."""

    name: str
    models: tuple[str, str]
    """Checkpoint directories of the two agents."""
    prompts_file: str
    """JSONL with `id`, `prompt` and `answer`."""
    prompts: int
    completions: int
    tokens: int
    """Completion length; the cap where lengths are ragged."""
    dtype: str = "float32"
    """float32, or mixed: float32 weights multiplied in bfloat16."""
    device: str = "cpu"
    threads: int = 1
    flat_share: float = 0.0
    """Share of groups with equal rewards."""
    is_ragged: bool = False
    """Completions end where the model ends them; else all have `tokens`."""
    chat: bool = False
    tokens_per_microbatch: int = 8192
    trl_rows: int | None = None
    """TRL's rows of one forward pass; left out: all of a step."""
    gradient_checkpointing: bool = False
    """Both sides alike; only for models that do not fit otherwise."""
    seed: int = 0
    names: tuple[str, str] = field(default=("first", "second"))

    @property
    def rows(self) -> int:
        """Completions of one agent and step."""
        return self.prompts * self.completions


def replayed_rewards(work: Work, *, step: int, agent: str) -> list[list[float]]:
    """[P][K] rewards: exactly `flat_share` of the groups (rounded) flat, all others mixed."""
    rng = random.Random(f"{work.seed}:{step}:{agent}")
    flat = set(rng.sample(range(work.prompts), round(work.flat_share * work.prompts)))
    groups = []
    for prompt in range(work.prompts):
        if prompt in flat:
            groups.append([float(rng.random() < 0.5)] * work.completions)
            continue
        right = rng.randint(1, work.completions - 1)
        group = [1.0] * right + [0.0] * (work.completions - right)
        rng.shuffle(group)
        groups.append(group)
    return groups


def recipe_of(work: Work) -> dict[str, Any]:
    """The recipe of Co-RL's side. Its steps never run out: whoever times them stops them."""
    agents = [
        {
            "name": name,
            "model": model,
            "dtype": work.dtype,
            "threads": work.threads,
            "device": work.device,
            "chat": "always" if work.chat else "never",
        }
        for name, model in zip(work.names, work.models, strict=True)
    ]
    return {
        "name": work.name,
        "seed": work.seed,
        "steps": 10_000,
        "agents": agents,
        "prompts": {"file": work.prompts_file},
        "supervision": {
            "method": "versus.replay.ReplayedRewards",
            "options": {"work": json.dumps(work_to_json(work))},
        },
        "batch": {"prompts": work.prompts, "completions": work.completions},
        "sampling": {"max_tokens": work.tokens},
        "optimizer": {
            # So small that completions keep their distribution from step to step.
            "learning_rate": 1e-9,
            "tokens_per_microbatch": work.tokens_per_microbatch,
            "gradient_checkpointing": work.gradient_checkpointing,
        },
        "rollout": {"save_every": 0},
        "checkpoint": {"every": 0},
        "health": {"policy": "off"},
        "launch": "processes",
    }


def work_to_json(work: Work) -> dict[str, Any]:
    """Plain values that `work_from_json` turns back."""
    return {name: getattr(work, name) for name in Work.__slots__}


def work_from_json(tree: dict[str, Any]) -> Work:
    return Work(**{**tree, "models": tuple(tree["models"]), "names": tuple(tree["names"])})


def read_prompts(path: str | Path) -> list[str]:
    """The prompts' texts, in file order."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["prompt"] for line in lines]


def mean_prompt_tokens(work: Work) -> float:
    """Of the first prompts, both agents' tokenizers averaged."""
    from transformers import AutoTokenizer

    counts = []
    for model in work.models:
        tokenizer = AutoTokenizer.from_pretrained(model)
        for text in read_prompts(work.prompts_file)[: work.prompts]:
            if work.chat:
                message = [{"role": "user", "content": text}]
                text = tokenizer.apply_chat_template(
                    message, add_generation_prompt=True, tokenize=False
                )
            counts.append(len(tokenizer(text, add_special_tokens=False)["input_ids"]))
    return sum(counts) / len(counts)
