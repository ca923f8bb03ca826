"""The studies of `corl quickstart --study` and `--all`: which cells they have and on which models.

The short one is `study.yaml` beside this file. `--all` adds what it says below, and models that do
not lie in the package: they are pretrained on demand into OUT/models, about a minute each. Nothing
is pretrained on import.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from corl.quickstart.variants import SHIPPED
from corl.study.config import StudyConfig, parse_study

PACKAGE = Path(str(files("corl.quickstart")))

# Setting -> models of its agents. What each is for: `corl.quickstart.variants`.
_COHORTS: dict[str, tuple[str, ...]] = {
    "different_family": ("qwen3", "gpt_neox"),
    "same_family": ("qwen3", "qwen3_twin"),
    "ring_of_three": ("qwen3", "gpt_neox", "llama"),
    "different_size": ("qwen3_wide", "gpt_neox"),
    "different_family_rewritten": ("qwen3", "gpt_neox"),
    "shared_misconception": ("qwen3_shared", "gpt_neox_shared"),
    "no_planted_error": ("qwen3_unplanted", "gpt_neox_unplanted"),
    "weak_teacher": ("qwen3", "llama_weak"),
}
_REWRITTEN = "corl:quickstart/prompts/train_reordered.jsonl"

# Presets lie under the base recipe, so batch, steps and learning rate stay the quickstart's; what
# shows through are the KL terms, the format floor, and that votes outnumber trained completions.
_MORE_METHODS: tuple[dict[str, Any], ...] = (
    {
        "name": "co_rewarding_1",
        "preset": "co_rewarding_1_paper",
        "overrides": {"rewritten": _REWRITTEN},
    },
    {"name": "co_rewarding_2", "preset": "co_rewarding_2_paper"},
    {
        "name": "self_vote_authors",
        "supervision": "self_vote",
        "preset": "ttrl_authors",
        # Two votes to one trained completion, as the authors' 64 to 32.
        "overrides": {"supervision.options.votes": 16},
    },
    {
        "name": "self_certainty_authors",
        "supervision": "self_certainty",
        "preset": "intuitor_authors",
    },
    {"name": "entropy_authors", "supervision": "entropy", "preset": "rent_authors"},
)
_MORE_CELLS = (
    "ground_truth/same_family",
    "peer/ring_of_three",
    "peer/different_size",
    "peer/different_family_rewritten",
    "ground_truth/shared_misconception",
    "peer/shared_misconception",
    "ground_truth/no_planted_error",
    "peer/no_planted_error",
    "self_vote/no_planted_error",
    "peer/weak_teacher",
)

ModelSource = Callable[[str], str]
"""From a model's name to what a recipe calls it."""
Pretrain = Callable[..., Path]
"""Called as (name, directory, progress=...): makes one model."""


def quickstart_study(
    *,
    seeds: Sequence[int],
    models: Path,
    is_all: bool = False,
    pretrained: Sequence[str] = (),
    steps: int | None = None,
) -> StudyConfig:
    """The study of the shipped families, or the long one.

    models: where models made on demand lie. pretrained: names of shipped models to take from there
    too. steps: of every run, in place of the recipe's.
    """
    tree = yaml.safe_load((PACKAGE / "study.yaml").read_text(encoding="utf-8"))
    own = set(pretrained)

    def source(name: str) -> str:
        is_shipped = name in SHIPPED and name not in own
        return f"corl:quickstart/models/{name}" if is_shipped else str(models.resolve() / name)

    tree["seeds"] = list(seeds)
    if is_all:
        tree["name"] = "quickstart_all"
        tree["methods"] += list(_MORE_METHODS)
        tree["cells"]["include"] += list(_MORE_CELLS)
    names = [setting for setting in _COHORTS if is_all or setting in _settings_of(tree)]
    tree["settings"] = [_setting(name, source) for name in names]
    if steps is not None:
        tree["overrides"] = {"steps": steps}
    return parse_study(tree, base=PACKAGE, source="the quickstart's study")


def models_to_make(study: StudyConfig, models: Path) -> list[str]:
    """Names of the models under `models` that the study's cells use and that are not there yet."""
    folder = models.resolve()
    paths = {
        Path(agent["model"])
        for _, setting in study.pairs()
        for agent in setting.overrides["agents"]
    }
    return sorted(
        path.name
        for path in paths
        if path.parent == folder and not (path / "model.safetensors").exists()
    )


def make_models(
    names: Sequence[str],
    models: Path,
    *,
    pretrain: Pretrain,
    progress: Callable[[str, int, int, float], None],
) -> None:
    """Pretrain models by name; one that was stopped half-way is not taken for whole."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    for name in names:
        partial = models / f".{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        pretrain(name, partial, progress=progress)
        shutil.rmtree(models / name, ignore_errors=True)
        partial.rename(models / name)


def pretrain_text(name: str, directory: Path, *, progress: Any) -> Path:
    """`corl.quickstart.pretrain.pretrain`, loaded only when it is called."""
    from corl.quickstart.pretrain import pretrain

    return pretrain(name, directory, progress=progress)


def pretrain_vision(name: str, directory: Path, *, progress: Any) -> Path:
    """`corl.quickstart.vision.pretrain.pretrain`, loaded only when it is called."""
    from corl.quickstart.vision.pretrain import pretrain

    return pretrain(name, directory, progress=progress)


def _settings_of(tree: dict[str, Any]) -> Iterator[str]:
    return (setting["name"] for setting in tree["settings"])


def _setting(name: str, source: ModelSource) -> dict[str, Any]:
    agents: list[dict[str, Any]] = [
        {"name": model, "model": source(model)} for model in _COHORTS[name]
    ]
    if name == "different_family_rewritten":
        agents[1]["prompts"] = _REWRITTEN
    return {"name": name, "overrides": {"agents": agents}}
