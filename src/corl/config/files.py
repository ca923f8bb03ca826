"""A YAML file that a person wrote, read and held against its sections, with errors they can act on.

Recipes and studies share it: both refuse unknown keys naming the nearest right one, and say one
line per problem.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from corl.errors import RecipeError


def read_tree(path: Path, *, kind: str, keys: str, error: type[RecipeError]) -> dict[str, Any]:
    """The keys of a YAML file. Raises `error` where it is none.

    kind: what the file is to its writer, such as "recipe"; keys: the keys to
    write where it has none.
    """
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{kind} {path} does not exist; give the path of a YAML file") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"{kind} {path} cannot be read: {problem}") from None
    except yaml.YAMLError as problem:
        raise error(f"{kind} {path} is not YAML: {' '.join(str(problem).split())}") from None
    if not isinstance(tree, dict):
        seen = {list: "a list", type(None): "nothing"}.get(type(tree), f"{tree!r:.40}")
        raise error(f"{kind} {path} holds {seen} where keys belong; write {keys}")
    return tree


def explain(model: type[BaseModel], problem: Any, *, further_keys: Sequence[str] = ()) -> str:
    """One line for one problem that pydantic found.

    further_keys: keys of the whole file that are taken off before the model sees it.
    """
    loc = [str(part) for part in problem["loc"]]
    key = ".".join(loc)
    if problem["type"] == "extra_forbidden":
        known = [*_fields_at(model, loc[:-1]), *(further_keys if len(loc) == 1 else ())]
        near = difflib.get_close_matches(loc[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(known)}"
        return f"unknown key `{key}`; {hint}"
    if problem["type"] == "missing":
        return f"key `{key}` is missing"
    message = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return message
    return f"`{key}` is {problem['input']!r}: {message}"


def _fields_at(model: type[BaseModel], loc: Sequence[str]) -> list[str]:
    current: type[BaseModel] = model
    for part in loc:
        field = current.model_fields.get(part)
        if field is not None:
            current = _section_in(field.annotation) or current
    return list(current.model_fields)


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _section_in(arg))), None)
