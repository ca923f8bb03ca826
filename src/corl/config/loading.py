"""Recipe files, presets and overrides become one checked `Recipe`.

Precedence: defaults, the preset, the recipe file, `key=value` overrides. Paths
in a file are relative to that file, paths in an override to the working
directory, and `corl:PATH` names a file shipped with the package; all are made
absolute on loading, so a saved recipe means the same from anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from corl.config.files import explain, read_tree
from corl.config.presets import PRESET_KEY, over_preset
from corl.config.recipe import Recipe
from corl.errors import RecipeError

PACKAGE_PREFIX = "corl:"
_PACKAGE = Path(__file__).parents[1]
_PATH_KEYS = ("model", "file")
_SITE_FILES = ("key", "certificates")
# `prompts: FILE` and `supervision: NAME` stand for the section with that one key.
_SHORTHAND = {"prompts": "file", "rewritten": "file", "supervision": "method"}


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe file, lay it over its preset, apply `a.b=value` overrides and check it.

    Raises RecipeError with one line per problem: unknown keys name the nearest
    right one, wrong values name the key and what it takes.
    """
    path = Path(path)
    tree = read_tree(
        path, kind="recipe", keys="at least `agents:` and `prompts:`", error=RecipeError
    )
    tree = _expand(tree, path.resolve().parent)
    # Whoever names the preset, it lies under the file.
    names_preset = [override.partition("=")[0].strip() == PRESET_KEY for override in overrides]
    for override, is_name in zip(overrides, names_preset, strict=True):
        if is_name:
            _apply_override(tree, override)
    tree = over_preset(tree)
    for override, is_name in zip(overrides, names_preset, strict=True):
        if not is_name:
            _apply_override(tree, override)
    return parse_recipe(tree, source=str(path))


def parse_recipe(tree: dict[str, Any], *, source: str = "recipe") -> Recipe:
    """Check an already loaded tree of recipe keys, its preset included. Raises RecipeError."""
    try:
        return Recipe.model_validate(over_preset(_expand(tree, Path.cwd())))
    except ValidationError as error:
        lines = [explain(Recipe, problem, further_keys=[PRESET_KEY]) for problem in error.errors()]
        raise RecipeError("\n".join(f"{source}: {line}" for line in lines)) from None


def _apply_override(tree: dict[str, Any], override: str) -> None:
    key, sign, text = override.partition("=")
    if not sign or not key:
        raise RecipeError(f"override {override!r} is not of the form key=value, without spaces")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    *parents, last = key.strip().split(".")
    node: Any = tree
    for part in parents:
        node = _child(node, part, key)
    if isinstance(node, list):
        raise RecipeError(f"override `{key}` names no field; write `{key}.FIELD=value`")
    expanded: Any = {last: value}
    for part in reversed(parents):
        expanded = {part: expanded}
    expanded = _expand(expanded, Path.cwd())
    for part in parents:
        expanded = expanded[part]
    if last in _SHORTHAND and isinstance(value, str) and isinstance(node.get(last), dict):
        node[last].update(expanded[last])
    else:
        node.update(expanded)


def _child(node: Any, part: str, key: str) -> Any:
    if isinstance(node, list):
        names = [item.get("name") if isinstance(item, dict) else None for item in node]
        index = int(part) if part.isdigit() else names.index(part) if part in names else -1
        if not 0 <= index < len(node):
            known = ", ".join(name if name else str(i) for i, name in enumerate(names))
            raise RecipeError(
                f"override `{key}`: no entry {part!r} of {len(node)}; there are {known}"
            )
        return node[index]
    if node.get(part) is None:
        node[part] = {}
    if not isinstance(node[part], dict | list):
        raise RecipeError(f"override `{key}`: `{part}` is {node[part]!r}, which has no keys")
    return node[part]


def _expand(node: Any, base: Path) -> Any:
    """Write shorthands out and make paths absolute."""
    if isinstance(node, list):
        return [_expand(item, base) for item in node]
    if not isinstance(node, dict):
        return node
    written_out = {
        key: {_SHORTHAND[key]: value} if key in _SHORTHAND and isinstance(value, str) else value
        for key, value in node.items()
    }
    sites = written_out.get("sites")
    if isinstance(sites, dict):
        written_out["sites"] = _site_files(sites, base)
    return {
        key: resolve_source(value, base)
        if isinstance(value, str) and (key in _PATH_KEYS or _is_own_benchmark(key, value))
        else _expand(value, base)
        for key, value in written_out.items()
    }


def _site_files(sites: dict[str, Any], base: Path) -> dict[str, Any]:
    """The section with the paths of its key files absolute."""
    made = dict(sites)
    for key in _SITE_FILES:
        if isinstance(made.get(key), str):
            made[key] = str(base / Path(made[key]).expanduser())
    if isinstance(made.get("peers"), dict):
        made["peers"] = {
            name: str(base / Path(file).expanduser()) if isinstance(file, str) else file
            for name, file in made["peers"].items()
        }
    return made


def _is_own_benchmark(key: str, value: str) -> bool:
    return key == "benchmark" and value.endswith((".yaml", ".yml"))


def resolve_source(source: str, base: Path) -> str:
    """Make a path absolute; leave hub ids alone.

    `corl:PATH` is a file of the package. Text that starts with `.`, `/` or `~`,
    ends like a file, or exists under `base` is a path.
    """
    if source.startswith(PACKAGE_PREFIX):
        return str(_PACKAGE / source.removeprefix(PACKAGE_PREFIX))
    path = Path(source).expanduser()
    is_path = (
        source.startswith((".", "/", "~"))
        or path.suffix in (".jsonl", ".json", ".gz", ".parquet", ".yaml", ".yml")
        or (base / path).exists()
    )
    return str((base / path).resolve()) if is_path else source
