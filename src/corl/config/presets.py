"""Named settings that lie under a recipe file: `preset: NAME`.

Defaults come first, then the preset, then the file, then overrides. A preset is
spent on loading: a resolved recipe holds its values and not its name, so it
reads back equal whatever becomes of the preset. docs/methods.md lists them.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import yaml

from corl.errors import RecipeError

PRESET_KEY = "preset"
_FOLDER = Path(__file__).parents[1] / "presets"

Tree = dict[str, Any]


def preset_names() -> list[str]:
    """Names of the shipped presets, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def load_preset(name: str) -> Tree:
    """The recipe keys of a preset. Raises RecipeError for an unknown one, naming the nearest."""
    known = preset_names()
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise RecipeError(f"preset {name!r} is not known; {hint}")
    tree: Tree = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return tree


def over_preset(tree: Tree) -> Tree:
    """A recipe's keys on top of those of the preset it names, the name itself left out."""
    above = {key: value for key, value in tree.items() if key != PRESET_KEY}
    name = tree.get(PRESET_KEY)
    return above if name is None else overlay(load_preset(name), above)


def overlay(below: Tree, above: Tree) -> Tree:
    """Two trees as one: sections are merged, `above` wins, lists are taken whole.

    Options belong to their method: under another `supervision.method` those
    below do not show through.
    """
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if not (isinstance(under, dict) and isinstance(value, dict)):
            merged[key] = value
            continue
        if key == "supervision" and value.get("method") not in (None, under.get("method")):
            under = {name: item for name, item in under.items() if name != "options"}
        merged[key] = overlay(under, value)
    return merged
