"""A frozen base in 4 or 8 bits (QLoRA, Dettmers et al. 2023), by bitsandbytes.

Only this file imports bitsandbytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from corl.errors import ModelError

BYTES = {"nf4": 0.53, "int8": 1.0}
"""Of one quantised number; nf4 counts its doubly quantised scales, one a block of 64."""


def quantized(
    kind: str, dtype: torch.dtype | None, device: torch.device | None = None
) -> dict[str, Any]:
    """Arguments of from_pretrained that load linear layers in that form; {} for "none".

    dtype: what they are multiplied in. device: where the whole model goes. Raises ModelError where
    bitsandbytes is missing.
    """
    if kind == "none":
        return {}
    if find_spec("bitsandbytes") is None:
        raise ModelError(f"lora.quantize {kind} needs bitsandbytes; install corl[qlora]")
    from transformers import BitsAndBytesConfig

    where = {} if device is None else {"device_map": {"": device}}
    if kind == "int8":
        return {**where, "quantization_config": BitsAndBytesConfig(load_in_8bit=True)}
    return {
        **where,
        "quantization_config": BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type=kind,
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
        ),
    }


def quantized_layers(model: nn.Module) -> Iterator[nn.Module]:
    """The layers that hold a quantised weight."""
    if "bitsandbytes" in sys.modules:
        from bitsandbytes.nn import Linear4bit, Linear8bitLt

        for module in model.modules():
            if isinstance(module, Linear4bit | Linear8bitLt):
                yield module
