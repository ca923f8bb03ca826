"""Study and run directories for the tests of the report, small and made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from corl.answers import read_answer
from corl.answers.vote import majority
from corl.data.prompts import PromptRow
from corl.run.pages import write_page
from corl.supervision import Rewards

ATTACK = "<script>document.title='owned'</script><img src=x onerror=alert(1)>\"'&</pre>"

Row = dict[str, Any]


def accuracy(share: float) -> dict[str, float]:
    """One measurement, the same under every measure but greedy."""
    return {"avg_at_8": share, "greedy": share / 2, "maj_at_8": share, "pass_at_8": share}


def metric_line(step: int, agent: str, **values: Any) -> Row:
    """A line as `corl.run.metrics` writes it, of the figures that are drawn."""
    line: Row = {
        "step": step,
        "agent": agent,
        "reward_mean": 0.5,
        "reward_std": 0.2,
        "peer_agreement": 0.6,
        "distinct_answers": 2.0,
        "accuracy": 0.4,
        "length_mean": 12.0,
        "entropy": 0.3,
    }
    return {**line, **values}


def write_lines(file: Path, lines: list[Row]) -> None:
    """JSON lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_run(
    root: Path,
    *,
    method: str = "peer",
    seed: int = 0,
    steps: int = 4,
    agents: tuple[str, ...] = ("left", "right"),
    name: str = "demo",
    **values: Any,
) -> Path:
    """A run directory with a recipe and metrics."""
    root.mkdir(parents=True, exist_ok=True)
    recipe = {
        "name": name,
        "seed": seed,
        "agents": [{"name": agent, "model": f"models/{agent}"} for agent in agents],
        "supervision": {"method": method},
    }
    (root / "recipe.yaml").write_text(json.dumps(recipe))
    lines = [metric_line(step, a, **values) for step in range(1, steps + 1) for a in agents]
    write_lines(root / "metrics.jsonl", lines)
    return root


def result_row(method: str, seed: int, after: float | None, **changes: Any) -> Row:
    """A row of results.json for one agent called left, which started at 0.5."""
    agents = [{"name": "left", "before": accuracy(0.5), "after": accuracy(after or 0.0)}]
    row: Row = {
        "method": method,
        "setting": "pair",
        "seed": seed,
        "run": f"cells/{method}-pair-seed{seed}",
        "status": "done",
        "error": None,
        "agents": agents if after is not None else [],
        "alarms": [],
    }
    return {**row, **changes}


def write_study(root: Path, rows: list[Row]) -> Path:
    """A study whose rows all have their run, but for those of the untrained models."""
    for row in rows:
        if row["method"] != "base" and row["run"].startswith("cells/"):
            write_run(root / row["run"], method=row["method"], seed=row["seed"], agents=("left",))
    root.mkdir(parents=True, exist_ok=True)
    (root / "results.json").write_text(json.dumps({"rows": rows}))
    return root


def write_rollouts(run: Path, agent: str, step: int, texts: list[str], prompt: str = "1+1") -> Path:
    """A page as the trainer writes it, of one prompt whose label is 2."""
    answers = [read_answer(text) for text in texts]
    label = read_answer("\\boxed{2}")
    assert label is not None
    rewards = Rewards(
        rewards=[[float(answer == label) for answer in answers]],
        labelled=[True],
        labels=[label.key],
    )
    file = run / "agents" / agent / "pages" / f"step-{step:06d}.md"
    write_page(
        file,
        step=step,
        agent=agent,
        graded_by="right",
        rows=[PromptRow(id="row-1", text=prompt, kind="math")],
        texts=[texts],
        answers=[answers],
        votes=[majority(answers)],
        rewards=rewards,
    )
    return file
