"""Did the first alarm come before held-out accuracy had halved? Measured step by step.

Replays the first steps of the collapsing cells of a finished quickstart study with a checkpoint
after each (runs are deterministic: the replayed metrics are compared with the study's), then asks
every checkpoint all held-out prompts.

    python benchmarks/alarm_before_halving.py runs/quickstart_study --steps 24
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from corl.evaluation.accuracy import grade, label_keys
from corl.evaluation.completions import Asking
from corl.quickstart.demonstration import held_out_rows
from corl.run.directory import RunDirectory
from corl.run.journal import read_records
from corl.study.files import alarms_of
from corl.study.measure import Measurer, Question


def replay(cell: Path, out: Path, steps: int) -> None:
    """Train the cell's recipe anew until `steps` steps are done, keeping a checkpoint of each."""
    command = [sys.executable, "-m", "corl.cli", "train", str(cell / "recipe.yaml")]
    command += ["checkpoint.every=1", f"checkpoint.keep={steps + 30}", "--out", str(out)]
    with (out.parent / "log").open("wb") as log:
        run = subprocess.Popen(command, stdout=log, stderr=log)
        while run.poll() is None and len(read_records(out / "metrics.jsonl")) < 2 * steps:
            time.sleep(0.1)
        run.send_signal(signal.SIGINT)
        run.wait()


def is_same(cell: Path, run: Path, steps: int) -> bool:
    """Whether the replay had the study's metrics, clock apart."""
    ours, theirs = (
        [
            {key: value for key, value in record.items() if key != "time"}
            for record in read_records(root / "metrics.jsonl")
            if record["step"] <= steps
        ]
        for root in (run, cell)
    )
    return json.dumps(ours) == json.dumps(theirs)


def main() -> None:
    """Print a line per method, seed and agent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--methods", nargs="+", default=["self_certainty", "entropy"])
    options = parser.parse_args()
    rows = held_out_rows()
    keys = label_keys(rows)
    print("method          seed  agent     alarm  accuracy then, of start  first at half  replayed")
    for method in options.methods:
        for cell in sorted((options.study / "cells").glob(f"{method}-different_family-seed*")):
            with tempfile.TemporaryDirectory() as folder, Measurer(workers=1) as measurer:
                out = Path(folder) / "run"
                replay(cell, out, options.steps)
                run = RunDirectory(out)
                recipe, _ = run.load()
                for agent in recipe.agents:
                    models = {0: agent.model} | {
                        step: str(run.checkpoint(agent.name, step))
                        for step in range(1, options.steps + 1)
                    }
                    asking = Asking.of(recipe, agent)
                    sheets = measurer.sheets(
                        [Question(model, asking, device="cpu") for model in models.values()], rows
                    )
                    share = [grade(sheet, keys).avg_at_8 for sheet in sheets]
                    alarm = next(a["step"] for a in alarms_of(cell) if a["agent"] == agent.name)
                    halved = [step for step in models if share[step] <= share[0] / 2]
                    first = halved[0] if halved else "later"
                    print(
                        f"{method:14}  {cell.name[-1]:>4}  {agent.name:8}  {alarm:5}"
                        f"  {share[alarm] / share[0]:22.0%}   {first:>12}"
                        f"  {'same' if is_same(cell, out, options.steps) else 'differs'}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
