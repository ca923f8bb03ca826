"""The vision demonstration through the command's own path, as short as can be."""

import io
import json
from dataclasses import replace

from rich.console import Console

from corl.quickstart.demonstration import VISION, run_quickstart


def test_one_step_of_both_methods_is_measured_on_held_out_pictures(tmp_path):
    few = VISION.held_out.model_copy(update={"limit": 24})
    console = Console(record=True, width=100, file=io.StringIO())
    rows = run_quickstart(
        [3], tmp_path, console=console, demonstration=replace(VISION, held_out=few), steps=1
    )
    assert [row["method"] for row in rows] == ["base", "peer", "self_vote"]
    assert json.loads((tmp_path / "results.json").read_text())["rows"] == rows
    for row in rows:
        assert [agent["name"] for agent in row["agents"]] == ["llava", "internvl"]
        assert all(0.3 < agent["after"]["avg_at_8"] < 0.95 for agent in row["agents"])
    for run in ("peer-different_family-seed3", "self_vote-different_family-seed3"):
        assert (tmp_path / run / "agents" / "internvl" / "final" / "config.json").exists()
    shown = console.export_text()
    assert "vision-language models of different families, 1 steps" in shown
    assert "self_vote  internvl  pass@8" in shown
