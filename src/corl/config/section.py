"""What every part of a recipe is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of a recipe: frozen, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
