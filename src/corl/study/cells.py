"""Cells of a study: one method on one setting with one seed, and the recipe that each becomes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from corl.config import Recipe, load_preset, load_recipe
from corl.study.config import (
    MethodConfig,
    SettingConfig,
    StudyConfig,
    flat_overrides,
)

_ALL_CHECKPOINTS = 10**6


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a study."""

    method: MethodConfig
    setting: SettingConfig
    seed: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.method.name}-{self.setting.name}-seed{self.seed}"

    @property
    def title(self) -> str:
        """The name for a person."""
        return f"{self.method.name}, {self.setting.name}, seed {self.seed}"


def cells_of(study: StudyConfig) -> list[Cell]:
    """Every cell, seed by seed: after the first seed the whole comparison stands once."""
    return [
        Cell(method, setting, seed) for seed in study.seeds for method, setting in study.pairs()
    ]


def recipe_of(study: StudyConfig, cell: Cell) -> Recipe:
    """The recipe of a cell. Raises RecipeError where its overrides do not fit."""
    overrides = [*_shared_overrides(study, cell.setting), *_method_overrides(study, cell)]
    if cell.method.preset is not None:
        overrides.insert(0, f"preset={cell.method.preset}")
    return load_recipe(study.recipe, overrides).model_copy(
        update={"name": cell.title, "seed": cell.seed}
    )


def setting_recipe(study: StudyConfig, setting: SettingConfig) -> Recipe:
    """The recipe of a setting before any method: its agents and how they are asked."""
    return load_recipe(study.recipe, _shared_overrides(study, setting))


def _shared_overrides(study: StudyConfig, setting: SettingConfig) -> list[str]:
    every = study.evaluate.every
    checkpoint = {"checkpoint": {"every": every, "keep": _ALL_CHECKPOINTS}} if every else {}
    return [
        text
        for overrides in (study.overrides, setting.overrides, checkpoint)
        for text in flat_overrides(overrides)
    ]


def _method_overrides(study: StudyConfig, cell: Cell) -> list[str]:
    """The supervision method and its own keys.

    Options of the base recipe belong to the base recipe's method: another one starts from its
    preset's options, or from none.
    """
    method = cell.method
    made = [f"supervision.method={method.rewards_by}"]
    if setting_recipe(study, cell.setting).supervision.method != method.rewards_by:
        preset = {} if method.preset is None else load_preset(method.preset).get("supervision")
        is_its_own = isinstance(preset, dict) and preset.get("method") == method.rewards_by
        options = preset.get("options", {}) if preset and is_its_own else {}
        made.append(f"supervision.options={json.dumps(options)}")
    return [*made, *flat_overrides(method.overrides)]
