"""Where the time of a step goes, phase by phase, for one agent.

    python benchmarks/phases.py --smollm2 checkpoints/smollm2

The agent does the work of `vs_trl.py` by itself (its own votes, replayed rewards) on one thread.
Medians over steps, the first dropped; what is left over is padding, counting and Python between.
The wait for a peer's ballot is what `cohort_cost.py` measures.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from versus import scales
from versus.gate import Stopwatch
from versus.work import Work, read_prompts, replayed_rewards

_BACKWARD = torch.Tensor.backward
PHASES = ("prefill", "decode", "answers", "forward", "backward", "optimiser", "rest")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=Path("vs_trl"), help="folder for checkpoints")
    parser.add_argument("--smollm2", type=Path, help="SmolLM2-135M (scripts/smollm2_checkpoint.py)")
    parser.add_argument("--steps", type=int, default=7)
    options = parser.parse_args()
    folder = options.work.resolve()
    works = [scales.small(folder)[0]]
    works += [scales.medium(folder, dtype=dtype)[0] for dtype in ("float32", "mixed")]
    if options.smollm2:
        works += scales.large(folder, options.smollm2.resolve(), dtype="mixed")
    print(f"{'work':<14} {'step, s':>8} " + " ".join(f"{phase:>10}" for phase in PHASES))
    for work in works:
        found = list(steps(work, number=2 if work.trl_rows else options.steps))[1:]
        whole = statistics.median(each["whole"] for each in found)
        shares = [statistics.median(e[phase] / e["whole"] for e in found) for phase in PHASES]
        print(
            f"{work.name:<14} {whole:>8.3f} " + " ".join(f"{share:>10.1%}" for share in shares),
            flush=True,
        )


def steps(work: Work, *, number: int) -> Iterator[dict[str, float]]:
    """Seconds of each phase, of `number` steps and one before them."""
    from dataclasses import replace

    from corl.answers import majority, read_answer
    from corl.config import GrpoConfig, OptimizerConfig
    from corl.data.template import render
    from corl.policy import load_policy
    from corl.policy.learner import LearnBatch, Learner
    from corl.rollout.noise import Noise
    from corl.rollout.sampling import SamplingParameters
    from corl.rollout.transformers_engine import TransformersEngine

    torch.set_num_threads(work.threads)
    policy = replace(load_policy(work.models[0], dtype=work.dtype), stop_ids=frozenset())
    engine = TransformersEngine(policy)
    learner = Learner(
        policy,
        OptimizerConfig(learning_rate=1e-9, tokens_per_microbatch=work.tokens_per_microbatch),
        GrpoConfig(),
        total_steps=1_000,
        temperature=1.0,
    )
    chat = "always" if work.chat else "never"
    prompts = [
        render(policy.tokenizer, text, chat=chat)
        for text in read_prompts(work.prompts_file)[: work.prompts]
    ]
    watches = _watch(learner, work.device)
    for step in range(number + 1):
        started = time.perf_counter()
        rollout = engine.sample(
            prompts,
            completions=work.completions,
            sampling=SamplingParameters(max_tokens=work.tokens),
            noise=Noise(0, "agent"),
            step=step,
        )
        sampled = time.perf_counter()
        for texts in rollout.texts:
            majority([read_answer(text) for text in texts])
        read = time.perf_counter()
        rewards = replayed_rewards(work, step=step, agent="first")
        learner.update(
            LearnBatch(
                prompt_ids=rollout.prompt_ids,
                token_ids=rollout.token_ids,
                engine_logps=rollout.logps,
                rewards_pk=torch.tensor(rewards),
            )
        )
        found = {
            "whole": time.perf_counter() - started,
            "prefill": rollout.prefill_s,
            "decode": rollout.decode_s,
            "answers": read - sampled,
            **{name: watch.take() for name, watch in watches.items()},
        }
        found["rest"] = found["whole"] - sum(found[phase] for phase in PHASES if phase != "rest")
        yield found


def _watch(learner: Any, device: str) -> dict[str, Stopwatch]:
    """Time the learner's forward passes, its backward passes and what changes the weights."""
    watches = {name: Stopwatch(device) for name in ("forward", "backward", "optimiser")}
    learner._score = _Timed(learner._score, watches["forward"])
    torch.Tensor.backward = watches["backward"].wrap(_BACKWARD)  # type: ignore[method-assign]
    optimizer, computing = learner._optimizer, learner._computing
    optimizer.step = watches["optimiser"].wrap(optimizer.step)
    computing.refresh = watches["optimiser"].wrap(computing.refresh)
    return watches


class _Timed:
    """A scorer whose calls are timed."""

    def __init__(self, scorer: Any, watch: Stopwatch) -> None:
        self._scorer = scorer
        self._call = watch.wrap(scorer.__call__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)


if __name__ == "__main__":
    main()
