"""How the cost of a step grows with agents, completions, length and vocabulary.

    python benchmarks/scaling.py --out docs/figures/scaling

One agent, one thread, except where agents are counted: they take turns in one process, or have one
each. Medians of repeats; the growth is the exponent of a power law fitted to the upper half of
each axis (1 is linear). Writes OUT.json, and OUT.png where matplotlib is installed.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

WIDTH, LAYERS = 128, 4
AXES: dict[str, tuple[int, ...]] = {
    "completions": (4, 8, 16, 32, 64),
    "length": (32, 128, 512, 2048),
    "vocabulary": (1_000, 10_000, 50_000, 150_000),
    "agents": (1, 2, 4, 8),
}


@dataclass(frozen=True, slots=True)
class Size:
    """One step of one agent."""

    prompts: int = 4
    completions: int = 8
    length: int = 64
    vocabulary: int = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("scaling"))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, list[dict[str, float]]] = {}
    for axis, values in AXES.items():
        measure = _agents if axis == "agents" else _sized(axis)
        found[axis] = []
        for value in values:
            seconds = measure(value, options.repeats)
            found[axis].append({axis: value, **seconds})
            text = "  ".join(f"{name} {each:.3f} s" for name, each in seconds.items())
            print(f"{axis:<12} {value:>8,}  {text}", flush=True)
        for name in seconds:
            print(f"{axis:<12} {name} grows as {axis}^{growth(found[axis], axis, name):.2f}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps(found, indent=1))
    draw(found, options.out.with_suffix(".png"))


def growth(rows: Sequence[dict[str, float]], axis: str, name: str) -> float:
    """Exponent between the middle and the end of an axis."""
    low, high = rows[len(rows) // 2 - 1], rows[-1]
    return math.log(high[name] / low[name]) / math.log(high[axis] / low[axis])


def _sized(axis: str) -> Callable[[int, int], dict[str, float]]:
    def measure(value: int, repeats: int) -> dict[str, float]:
        from dataclasses import replace

        size = replace(Size(), **{axis: value})
        if axis == "length":
            size = replace(size, prompts=1)
        return _seconds([Agent(size)], repeats)

    return measure


def _agents(number: int, repeats: int) -> dict[str, float]:
    return _seconds([Agent(Size()) for _ in range(number)], repeats)


def _seconds(agents: Sequence[Agent], repeats: int) -> dict[str, float]:
    sampling: list[float] = []
    learning: list[float] = []
    for repeat in range(repeats + 1):
        started = time.perf_counter()
        rollouts = [agent.sample(repeat) for agent in agents]
        sampled = time.perf_counter()
        for agent, rollout in zip(agents, rollouts, strict=True):
            agent.learn(rollout)
        if repeat:
            sampling.append(sampled - started)
            learning.append(time.perf_counter() - sampled)
    return {"sampling": statistics.median(sampling), "learning": statistics.median(learning)}


class Agent:
    """A policy of random weights that samples and learns at one size, and stops at no token."""

    def __init__(self, size: Size) -> None:
        from transformers import AutoModelForCausalLM, Qwen3Config

        from corl.config import GrpoConfig, OptimizerConfig
        from corl.policy.attention import use_our_attention
        from corl.policy.learner import Learner
        from corl.policy.load import Policy
        from corl.rollout.transformers_engine import TransformersEngine

        torch.manual_seed(0)
        config = Qwen3Config(
            vocab_size=size.vocabulary,
            hidden_size=WIDTH,
            intermediate_size=3 * WIDTH,
            num_hidden_layers=LAYERS,
            num_attention_heads=4,
            num_key_value_heads=4,
            head_dim=WIDTH // 4,
        )
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        use_our_attention(model)
        tokenizer = _Tokenizer(size.vocabulary)
        policy = Policy(model, tokenizer, torch.device("cpu"), torch.float32, frozenset(), 4096)
        self._size = size
        self._engine = TransformersEngine(policy)
        self._learner = Learner(
            policy,
            OptimizerConfig(learning_rate=1e-9),
            GrpoConfig(),
            total_steps=1_000,
            temperature=1.0,
        )

    def sample(self, step: int) -> Any:
        from corl.rollout.noise import Noise
        from corl.rollout.sampling import SamplingParameters

        return self._engine.sample(
            [list(range(3, 19))] * self._size.prompts,
            completions=self._size.completions,
            sampling=SamplingParameters(max_tokens=self._size.length),
            noise=Noise(0, "agent"),
            step=step,
        )

    def learn(self, rollout: Any) -> None:
        from corl.policy.learner import LearnBatch

        rewards_k = torch.arange(self._size.completions).remainder(2).float()
        self._learner.update(
            LearnBatch(
                prompt_ids=rollout.prompt_ids,
                token_ids=rollout.token_ids,
                engine_logps=rollout.logps,
                rewards_pk=rewards_k.expand(self._size.prompts, -1),
            )
        )


class _Tokenizer:
    """All that sampling asks of a tokenizer; texts are not looked at."""

    def __init__(self, vocabulary: int) -> None:
        self._vocabulary = {str(index): index for index in range(vocabulary)}

    def get_vocab(self) -> dict[str, int]:
        return self._vocabulary

    def batch_decode(self, rows: Sequence[Sequence[int]], **_: Any) -> list[str]:
        return [""] * len(rows)


def draw(found: dict[str, list[dict[str, float]]], path: Path) -> None:
    """One panel an axis, both logarithmic."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: pip install corl[plots]")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(found), figsize=(4 * len(found), 3.4))
    for panel, (axis, rows) in zip(panels, found.items(), strict=True):
        values = [row[axis] for row in rows]
        for name, marker in (("sampling", "o"), ("learning", "s")):
            exponent = growth(rows, axis, name)
            panel.plot(
                values,
                [row[name] for row in rows],
                marker=marker,
                label=f"{name} ~ {axis}^{exponent:.2f}",
            )
        panel.set(xscale="log", yscale="log", xlabel=axis, ylabel="seconds a step")
        panel.set_xticks(values, [f"{value:,}" for value in values], rotation=30)
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(path)


if __name__ == "__main__":
    main()
