"""What N agents cost beside N agents alone, and how long they wait for one another.

    python benchmarks/cohort_cost.py --steps 12

1. Taking turns in one process: seconds a step of a cohort of N, against N times a run of one agent
   that votes for itself, alternating, medians. Nothing but the exchange is added, so about 1.
2. In processes of their own, equal agents and fixed lengths: the share of a step that an agent
   waits for its peer's ballot. Needs as many free cores as agents.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from versus import scales
from versus.work import Work


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=Path("vs_trl"), help="folder for checkpoints")
    parser.add_argument("--agents", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    work = scales.small(options.work.resolve())[0]
    print(f"{'agents':>6} {'cohort s/step':>14} {'alone s/step':>13} {'cohort / alone':>15}")
    for number in options.agents:
        cohort, alone = taking_turns(work, number=number, steps=options.steps)
        print(f"{number:>6} {cohort:>14.3f} {alone:>13.3f} {cohort / alone:>15.3f}", flush=True)
    shares = idle_shares(work, steps=4 * options.steps)
    print(f"idle at the barrier, 2 processes: {statistics.fmean(shares):.1%} of a step")


def taking_turns(work: Work, *, number: int, steps: int) -> tuple[float, float]:
    """Median seconds a step of a cohort of `number`, and of as many agents alone, added up."""
    with tempfile.TemporaryDirectory() as folder:
        cohort = _steps(work, number, Path(folder) / "cohort", method="peer")
        singles = [
            _steps(work, 1, Path(folder) / f"alone-{index}", method="self_vote", model=index % 2)
            for index in range(number)
        ]
        together: list[float] = []
        apart: list[float] = []
        for step in range(steps + 1):
            one, many = next(cohort), sum(next(single) for single in singles)
            if step:
                together.append(one)
                apart.append(many)
    return statistics.median(together), statistics.median(apart)


def _steps(
    work: Work, number: int, folder: Path, *, method: str, model: int = 0
) -> Iterator[float]:
    """Seconds of each step of a run in this process."""
    from corl.cohort import train
    from corl.config import parse_recipe
    from corl.data.order import step_rows
    from corl.exchange import LocalExchange
    from corl.launch.assembly import build_agent
    from corl.launch.preflight import preflight
    from corl.run.directory import RunDirectory, RunFacts

    names = [f"agent{index}" for index in range(number)]
    models = [work.models[(model + index) % 2] for index in range(number)]
    recipe = parse_recipe(
        {
            "steps": 10_000,
            "agents": [
                {"name": n, "model": m, "threads": 1} for n, m in zip(names, models, strict=True)
            ],
            "prompts": {"file": work.prompts_file},
            "supervision": method,
            "batch": {"prompts": work.prompts, "completions": work.completions},
            "sampling": {"max_tokens": work.tokens},
            "optimizer": {"learning_rate": 1e-9},
            "rollout": {"save_every": 0},
            # Every group is forwarded, whatever the votes are: all runs do the same work.
            "grpo": {"kl": 1e-9},
            "launch": "in_process",
        }
    )
    checked = preflight(recipe)
    facts = RunFacts("cost", checked.threads, checked.launcher, checked.steps)
    run = RunDirectory.create(folder, recipe, facts)
    agents = [
        build_agent(
            name,
            recipe=recipe,
            run=run,
            facts=facts,
            prompts=checked.prompts[name],
            done_step=0,
            device="cpu",
        )
        for name in names
    ]
    num_rows = len(checked.prompts[names[0]].rows)

    class Once:
        def ends_before(self, step: int, names: Sequence[str]) -> bool:
            return False

    for step in range(1, 10_000):
        started = time.perf_counter()
        train(
            agents,
            LocalExchange(),
            rows_of_step=lambda at: step_rows(
                at, num_rows=num_rows, per_step=work.prompts, data_seed=0
            ),
            first_step=step,
            last_step=step,
            control=Once(),
        )
        yield time.perf_counter() - started


def idle_shares(work: Work, *, steps: int) -> list[float]:
    """Of each agent and step but the first: wait / whole step."""
    from versus.pair import Pair

    equal: dict[str, Any] = {name: getattr(work, name) for name in Work.__slots__}
    equal["models"] = (work.models[0], work.models[0])
    shares = []
    with Pair("corl", Work(**equal)) as pair:
        for step in range(steps + 1):
            for figures in pair.step():
                if step:
                    shares.append(figures["wait_s"] / figures["step_s"])
        pair.memory()
    return shares


if __name__ == "__main__":
    main()
