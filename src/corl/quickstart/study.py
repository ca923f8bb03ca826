"""The study of all methods on the small families."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from corl.quickstart.demonstration import TEXT, make_with_progress
from corl.quickstart.settings import models_to_make, quickstart_study
from corl.quickstart.variants import SHIPPED
from corl.study.run import StudyOutcome, run_study


def run_quickstart_study(
    seeds: Sequence[int],
    out: Path,
    *,
    console: Console,
    pretrain: bool = False,
    is_all: bool = False,
    steps: int | None = None,
) -> StudyOutcome:
    """Run every method on the small families; what is done already is not run again.

    pretrain: make the shipped models again too. is_all: the long study, whose other models are
    pretrained first where OUT/models does not hold them yet.
    """
    models = out / "models"
    study = quickstart_study(
        seeds=seeds,
        models=models,
        is_all=is_all,
        pretrained=SHIPPED if pretrain else (),
        steps=steps,
    )
    num_pairs = len(list(study.pairs()))
    console.print(
        f"{study.name}: {num_pairs} pairs of method and setting, {len(seeds)} seeds. "
        "Seeds vary sampling and the order of prompts; the untrained weights are the same.",
        highlight=False,
        soft_wrap=True,
    )
    make_with_progress(TEXT, models_to_make(study, models), models, console)
    return run_study(study, out, console=console)
