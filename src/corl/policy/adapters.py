"""Low-rank adapters on a frozen model (LoRA, Hu et al. 2021), by peft.

The adapters are injected into the model as it stands, so whoever forwards it sees the same class.
Its own weights are frozen and kept once, in the compute dtype; the adapters are float32 masters.
Saved, an adapter is peft's own directory: `adapter_model.safetensors` and `adapter_config.json`,
which names the base that it belongs to.

Only this file imports peft.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.pytorch_utils import Conv1D

from corl.config import LoraConfig
from corl.errors import ModelError, first_line
from corl.policy.vision.towers import vision_parameters

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"

_PREFIX = "base_model.model."
"""Of every name in peft's files."""

Result = TypeVar("Result")


def is_adapter(source: str | Path) -> bool:
    """Whether a directory holds an adapter and no model of its own."""
    directory = Path(str(source)).expanduser()
    return (directory / CONFIG).is_file() and not (directory / "config.json").is_file()


def base_of(source: str | Path) -> str:
    """The model that an adapter directory belongs to. Raises ModelError where it names none."""
    path = Path(str(source)).expanduser() / CONFIG
    try:
        base = json.loads(path.read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ModelError(
            f"adapter {str(source)!r}: {CONFIG} cannot be read ({error}); save it again by peft"
        ) from None
    if not isinstance(base, str) or not base:
        raise ModelError(
            f"adapter {str(source)!r}: {CONFIG} names no base_model_name_or_path; write the "
            "directory or hub id of its base there"
        )
    return base


def require_peft() -> None:
    """Raise ModelError where the library is not installed."""
    try:
        import peft  # noqa: F401
    except ImportError:
        raise ModelError("LoRA needs peft; pip install 'corl[lora]'") from None


def add_adapter(model: Any, lora: LoraConfig, *, base: str, with_vision: bool, seed: int) -> None:
    """Freeze the model and inject fresh adapters, which change nothing until they are trained.

    base: what `adapter_config.json` will name. with_vision: a vision tower gets adapters as well.
    seed: of the adapters' first weights. Raises ModelError where `lora.targets` fit no layer.
    """
    require_peft()
    import peft

    config = peft.LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=0.0,  # sampler and learner must see one distribution
        target_modules=list(target_layers(model, lora, with_vision=with_vision)),
        bias="none",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        peft.inject_adapter_in_model(config, model)
    _as_masters(model, base=base)


def load_adapter(model: Any, directory: str | Path, *, base: str) -> None:
    """Freeze the model and inject the trained adapters of a directory.

    Raises ModelError where they do not fit the model.
    """
    require_peft()
    import peft

    weights = Path(directory) / WEIGHTS
    if not weights.is_file():
        raise ModelError(
            f"adapter {str(directory)!r}: it has no {WEIGHTS}. Pickled adapters are refused: save "
            "it again with safetensors"
        )
    try:
        config = peft.PeftConfig.from_pretrained(str(directory))
        config.inference_mode = False
        state = {name.removeprefix(_PREFIX): one for name, one in load_file(weights).items()}
        peft.inject_adapter_in_model(config, model)
        found: Any = peft.set_peft_model_state_dict(model, state)
    except (ValueError, RuntimeError, KeyError, TypeError, OSError, SafetensorError) as error:
        raise ModelError(
            f"adapter {str(directory)!r} does not fit {base!r} ({first_line(error)})"
        ) from error
    wrong = [name for name in found.missing_keys if "lora_" in name] + found.unexpected_keys
    if wrong:
        raise ModelError(
            f"adapter {str(directory)!r} does not fit {base!r}: {len(wrong)} weights are missing "
            f"or unknown, such as {sorted(wrong)[0]}"
        )
    _as_masters(model, base=base)


def save_adapter(model: Any, directory: str | Path) -> None:
    """Write the adapters as peft does, so that `PeftModel.from_pretrained` loads them."""
    import peft

    state = {
        _PREFIX + name: one.detach().cpu().contiguous()
        for name, one in peft.get_peft_model_state_dict(model, save_embedding_layers=False).items()
    }
    save_file(state, Path(directory) / WEIGHTS, metadata={"format": "pt"})
    config = copy(model.peft_config["default"])
    config.inference_mode = True
    config.save_pretrained(str(directory))


def target_layers(model: Any, lora: LoraConfig, *, with_vision: bool) -> Iterator[str]:
    """Names of the layers that get an adapter. Raises ModelError where there are none."""
    linear = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D)
    }
    head = model.get_output_embeddings()
    tower: set[int] = set()
    if getattr(model.config, "vision_config", None) is not None and not with_vision:
        tower = {id(parameter) for parameter in vision_parameters(model).values()}
    ends = None if lora.targets == "auto" else set(lora.targets)
    found = [
        name
        for name, module in linear.items()
        if module is not head
        and id(module.weight) not in tower
        and (ends is None or any(name == end or name.endswith(f".{end}") for end in ends))
    ]
    unused = sorted(
        end for end in ends or () if not any(n == end or n.endswith(f".{end}") for n in found)
    )
    if unused or not found:
        known = sorted({name.rpartition(".")[2] for name in linear})
        raise ModelError(
            f"lora.targets {unused or 'auto'} fit no layer of {type(model).__name__}; its linear "
            f"layers end in {', '.join(known)}"
        )
    yield from found


def count_adapter(model: Any, lora: LoraConfig, *, with_vision: bool) -> int:
    """Numbers in the adapters that `add_adapter` would inject; the model may be on `meta`."""
    modules = dict(model.named_modules())
    weights = (modules[name].weight for name in target_layers(model, lora, with_vision=with_vision))
    return sum(lora.rank * sum(weight.shape) for weight in weights)


def count_saved(directory: str | Path) -> int:
    """Numbers in an adapter directory's weights. Raises ModelError where they cannot be read."""
    path = Path(str(directory)).expanduser() / WEIGHTS
    try:
        with safe_open(path, framework="pt") as weights:
            names = list(weights.keys())
            return sum(math.prod(weights.get_slice(name).get_shape()) for name in names)
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"adapter {str(directory)!r}: {WEIGHTS} cannot be read ({error}). Pickled adapters are "
            "refused: save it again with safetensors"
        ) from None


def write_merged(model: Any, *, adapter: str | Path, directory: str | Path) -> None:
    """Fold an adapter into its base, loaded plainly as `model`, and save an ordinary checkpoint."""
    require_peft()
    import peft

    merged = peft.PeftModel.from_pretrained(model, str(adapter)).merge_and_unload(safe_merge=True)
    merged.save_pretrained(directory)


@contextmanager
def without_adapter(model: Any) -> Iterator[None]:
    """The base alone inside: what the adapters' training started from."""
    _switch(model, on=False)
    try:
        yield
    finally:
        _switch(model, on=True)


def on_base(model: Any, score: Callable[..., Result]) -> Callable[..., Result]:
    """The same scorer of the base alone: a reference for the KL term that takes no memory."""

    def scored(*rows: Any, **settings: Any) -> Result:
        with without_adapter(model):
            return score(*rows, **settings)

    return scored


def _switch(model: Any, *, on: bool) -> None:
    from peft.tuners.tuners_utils import BaseTunerLayer

    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            module.enable_adapters(enabled=on)


def _as_masters(model: Any, *, base: str) -> None:
    """Adapters in float32, and trained; nothing else is."""
    # peft takes the name from the model; ours is found from any working directory.
    model.peft_config["default"].base_model_name_or_path = base
    for name, parameter in model.named_parameters():
        is_adapter_weight = "lora_" in name
        parameter.requires_grad_(is_adapter_weight)
        if is_adapter_weight:
            parameter.data = parameter.data.float()
