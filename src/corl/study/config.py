"""Study files: a base recipe, and what varies over it, typed and checked.

A cell's recipe is made in this order, later ones winning: preset of the method, base recipe,
overrides of the study, of the setting, of the method, seed. Overrides are recipe keys: nested
mappings merge into the recipe (`grpo: {kl: 0.005}` and `grpo.kl: 0.005` are the same), lists
replace. Paths in a study file are relative to that file. No torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import (
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from corl.config import PromptsConfig, Section, resolve_source
from corl.config.files import explain, read_tree
from corl.config.loading import PACKAGE_PREFIX
from corl.errors import RecipeError

UNTRAINED = "base"
"""The method name of the rows that hold the models as they were before training."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]{0,63}")
# Keys whose text is a path, shorthands for a section with a file included.
_PATH_KEYS = ("model", "file", "prompts", "rewritten")


class StudyError(RecipeError):
    """A study file cannot be used as written, or some of its cells failed."""


def _plain_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"name {name!r} must be 1 to 64 letters, digits, dots or underscores: it becomes part "
            "of a folder's name, where a dash separates"
        )
    return name


class MethodConfig(Section):
    """One way to reward agents, with its settings."""

    name: str
    """Names rows and folders; also the recipe's `supervision`, unless `supervision` is given."""
    supervision: str | None = None
    """The supervision method, where the name is not one: two rows of one method need two names."""
    preset: str | None = None
    """A named preset (docs/methods.md); it lies under the base recipe, whose own keys win."""
    overrides: dict[str, Any] = {}
    """Recipe keys of this method."""

    _plain = field_validator("name")(_plain_name)

    @property
    def rewards_by(self) -> str:
        """The recipe's supervision method."""
        return self.supervision or self.name


class SettingConfig(Section):
    """One cohort: which agents, on which prompts."""

    name: str
    """Names rows and folders."""
    overrides: dict[str, Any] = {}
    """Recipe keys of this setting, such as `agents`."""

    _plain = field_validator("name")(_plain_name)


class CellsConfig(Section):
    """Which of methods x settings are run, as patterns `METHOD/SETTING` with `*` and `?`."""

    include: tuple[str, ...] = ("*/*",)
    """A pair is run when one of these fits it,"""
    exclude: tuple[str, ...] = ()
    """and none of these does."""

    @field_validator("include", "exclude")
    @classmethod
    def _has_two_parts(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if pattern.count("/") != 1:
                raise ValueError(f"cell pattern {pattern!r} must be METHOD/SETTING, such as peer/*")
        return patterns

    def runs(self, method: str, setting: str) -> bool:
        """Whether this pair is part of the study."""
        pair = f"{method}/{setting}"
        return any(fnmatchcase(pair, pattern) for pattern in self.include) and not any(
            fnmatchcase(pair, pattern) for pattern in self.exclude
        )


class EvaluateConfig(Section):
    """How accuracy is measured: 8 completions and a greedy one per held-out prompt."""

    prompts: PromptsConfig
    """Labelled held-out prompts; no training run sees them."""
    every: int = Field(0, ge=0)
    """Steps between measurements along the way; 0: only before and after."""
    along: PositiveInt | None = None
    """Prompts used along the way, from the top of the file; left out: all."""
    keep_checkpoints: bool = True
    """Keep the checkpoints along the way once they are measured."""
    workers: PositiveInt | None = None
    """Processes that measure; left out: one a core on a CPU, one on a GPU."""


class StudyConfig(Section):
    """A whole study."""

    name: str = "study"
    """Shown in the terminal and the report."""
    recipe: str
    """The base recipe's file."""
    methods: tuple[MethodConfig, ...] = Field(min_length=1)
    """Rows of the comparison; a bare name stands for a method without settings of its own."""
    settings: tuple[SettingConfig, ...] = (SettingConfig(name="default"),)
    """Cohorts to compare them on; left out: the base recipe's own agents."""
    seeds: tuple[int, ...] = Field((0, 1, 2), min_length=1)
    """Seeds of every cell. They vary sampling noise and prompt order, over the same models."""
    cells: CellsConfig = CellsConfig()
    """Which pairs of method and setting are run."""
    overrides: dict[str, Any] = {}
    """Recipe keys of every cell."""
    evaluate: EvaluateConfig
    """How accuracy is measured."""

    @model_validator(mode="after")
    def _names_tell_apart(self) -> Self:
        for kind, names in (
            ("methods", [method.name for method in self.methods]),
            ("settings", [setting.name for setting in self.settings]),
            ("seeds", [str(seed) for seed in self.seeds]),
        ):
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(f"{kind}: {twice[0]!r} is listed twice")
        if UNTRAINED in (method.name for method in self.methods):
            raise ValueError(f"the method name {UNTRAINED!r} is kept for the untrained models")
        if not list(self.pairs()):
            raise ValueError("cells: no pair of method and setting is left to run")
        return self

    def pairs(self) -> Iterator[tuple[MethodConfig, SettingConfig]]:
        """Method and setting of every cell, in the order of the study."""
        for method in self.methods:
            for setting in self.settings:
                if self.cells.runs(method.name, setting.name):
                    yield method, setting

    def to_yaml(self) -> str:
        """The resolved study as text that `load_study` reads back to an equal one."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def load_study(path: str | Path) -> StudyConfig:
    """Read and check a study file. Raises StudyError with one line per problem."""
    path = Path(path)
    tree = read_tree(
        path, kind="study", keys="`recipe:`, `methods:`, `evaluate:`", error=StudyError
    )
    return parse_study({"name": path.stem, **tree}, base=path.resolve().parent, source=str(path))


def parse_study(tree: dict[str, Any], *, base: Path, source: str = "study") -> StudyConfig:
    """Check a tree of study keys; relative paths in it start at `base`. Raises StudyError."""
    try:
        return StudyConfig.model_validate(_resolved(tree, base))
    except ValidationError as error:
        lines = [explain(StudyConfig, problem) for problem in error.errors()]
        raise StudyError("\n".join(f"{source}: {line}" for line in lines)) from None


def flat_overrides(overrides: dict[str, Any]) -> list[str]:
    """Overrides as the `a.b=value` texts that `load_recipe` takes; mappings merge."""
    return [f"{key}={_one_line(value)}" for key, value in _leaves(overrides, "")]


def _leaves(node: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _one_line(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=2**30)
    return text.removesuffix("\n").removesuffix("\n...")


def _resolved(tree: dict[str, Any], base: Path) -> dict[str, Any]:
    """The tree with shorthands written out and paths made absolute."""
    known = dict(tree)
    if isinstance(known.get("recipe"), str):
        known["recipe"] = _recipe_path(known["recipe"], base)
    for key in ("methods", "settings"):
        if isinstance(known.get(key), list):
            known[key] = [
                {"name": entry} if isinstance(entry, str) else _absolute(entry, base)
                for entry in known[key]
            ]
    evaluate = known.get("evaluate")
    if isinstance(evaluate, dict) and isinstance(evaluate.get("prompts"), str):
        known["evaluate"] = {**evaluate, "prompts": {"file": evaluate["prompts"]}}
    return {
        key: _absolute(value, base) if key in ("evaluate", "overrides") else value
        for key, value in known.items()
    }


def _recipe_path(source: str, base: Path) -> str:
    if source.startswith(PACKAGE_PREFIX):
        return resolve_source(source, base)
    return str((base / Path(source).expanduser()).resolve())


def _absolute(node: Any, base: Path) -> Any:
    """Make the paths in overrides absolute, dotted keys included."""
    if isinstance(node, list):
        return [_absolute(item, base) for item in node]
    if not isinstance(node, dict):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        last = str(key).rpartition(".")[2]
        if isinstance(value, str) and last in _PATH_KEYS:
            made[key] = resolve_source(value, base)
        else:
            made[key] = _absolute(value, base)
    return made
