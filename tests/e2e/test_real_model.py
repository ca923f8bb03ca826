"""A real pretrained model trains: SmolLM2-135M-Instruct (see scripts/smollm2_checkpoint.py).

CORL_SMOLLM2 names its directory; the default is checkpoints/smollm2.
"""

import os
from pathlib import Path

import pytest
import torch
from rich.console import Console
from transformers import AutoModelForCausalLM

from corl.config import load_recipe
from corl.launch import start_run
from corl.show import live_progress
from e2e.cohorts import metrics

ROOT = Path(__file__).parents[2]
MODEL = Path(os.environ.get("CORL_SMOLLM2", ROOT / "checkpoints" / "smollm2")).absolute()

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(not MODEL.exists(), reason=f"no checkpoint at {MODEL}"),
]


def test_two_wordings_of_a_sum_teach_each_other(tmp_path):
    recipe = load_recipe(
        ROOT / "recipes" / "smollm2_sums.yaml",
        [f"agents.0.model={MODEL}", f"agents.1.model={MODEL}"],
    )
    start_run(recipe, tmp_path / "run", progress=live_progress(Console()))
    records = metrics(tmp_path / "run")
    assert len(records) == 12
    assert any(record["labelled_share"] > 0 for record in records)
    assert any(record["groups_forwarded"] > 0 for record in records)
    before = AutoModelForCausalLM.from_pretrained(MODEL)
    for name in ("original", "reworded"):
        after = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "agents" / name / "final")
        assert any(
            not torch.equal(old, new)
            for old, new in zip(before.parameters(), after.parameters(), strict=True)
        )
