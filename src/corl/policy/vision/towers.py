"""What of a vision-language model is trained: its language model, and the rest where asked."""

from __future__ import annotations

from typing import Any

from torch import nn


def vision_parameters(model: Any) -> dict[str, nn.Parameter]:
    """Parameters of vision tower and projector: all outside the language model and its head."""
    language = {id(parameter) for parameter in _language_model(model).parameters()}
    head = model.get_output_embeddings()
    if head is not None:
        language |= {id(parameter) for parameter in head.parameters()}
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if id(parameter) not in language
    }


def freeze_vision(model: Any) -> None:
    """Leave vision tower and projector as they are: no gradient, no optimiser state."""
    for parameter in vision_parameters(model).values():
        parameter.requires_grad_(False)


def _language_model(model: Any) -> Any:
    base = model.base_model
    for name in ("language_model", "text_model"):
        if hasattr(base, name):
            return getattr(base, name)
    return model.get_decoder()
