"""What every part of a recipe is."""

from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """A part of a recipe: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _yes_is_no_number(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for name, field in cls.model_fields.items():
                kinds = _plain_types(field.annotation)
                takes_number = bool not in kinds and kinds & {int, float}
                if takes_number and isinstance(values.get(name), bool):
                    raise ValueError(f"`{name}` is {values[name]}; it takes a number")
        return values


def _plain_types(annotation: Any) -> set[Any]:
    """The types that an annotation is made of."""
    inner = get_args(annotation)
    return {annotation} if not inner else set().union(*map(_plain_types, inner))
