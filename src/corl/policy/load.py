"""A checkpoint becomes a policy, and a policy becomes an ordinary Hugging Face directory.

The model always stays in evaluation mode, in training too: dropout off keeps the learner's
distribution equal to the one that was sampled from, and a policy gradient needs no other
regulariser. Master weights are fp32 unless bf16 is asked for: at reinforcement-learning rates one
update is smaller than bf16's step. Weights that are missing, unknown or of another shape are
errors here (transformers only warns and trains on random numbers).
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.utils import logging

from corl.config import LoraConfig
from corl.errors import ModelError, first_line
from corl.policy.adapters import add_adapter, is_adapter, load_adapter, save_adapter, write_merged
from corl.policy.attention import use_our_attention
from corl.policy.computing import ComputeModel
from corl.policy.facts import (
    context_length,
    load_config,
    load_tokenizer,
    locate,
    sees_images,
)
from corl.policy.quantization import quantized, quantized_layers
from corl.policy.stop_tokens import stop_ids
from corl.policy.vision.towers import freeze_vision

Dtype = Literal["auto", "float32", "mixed", "bfloat16"]


@dataclass
class Policy:
    """One agent's model with all that sampling and learning need to know of it."""

    model: Any
    """A transformers PreTrainedModel holding the master weights; in evaluation mode."""
    tokenizer: Any
    device: torch.device
    compute_dtype: torch.dtype
    """What matrices are multiplied in; float32 or bfloat16."""
    stop_ids: frozenset[int]
    """Token ids that end a completion."""
    context_length: int
    """Longest prompt plus completion, tokens."""
    processor: Any = None
    """What reads a vision-language model's images, around `tokenizer`; None for text models."""
    base: str | None = None
    """The model that adapters are trained on; None where its own weights are."""
    trust_remote_code: bool = False
    """Whether the model's own code may run, on loading its base again."""

    @cached_property
    def computing(self) -> ComputeModel:
        """What samples and scores: the model, or its copy in the compute dtype."""
        return ComputeModel(self.model, self.compute_dtype)

    @property
    def weight_dtype(self) -> torch.dtype:
        """Dtype of the master weights."""
        return next(self.model.parameters()).dtype


def load_policy(
    source: str | Path,
    *,
    dtype: Dtype = "auto",
    device: str | torch.device = "auto",
    trust_remote_code: bool = False,
    gradient_checkpointing: bool = False,
    train_vision: bool = False,
    lora: LoraConfig | None = None,
    base: str | Path | None = None,
    adapter_seed: int = 0,
) -> Policy:
    """Load a language model, with or without images, for training.

    source: directory or hub id; safetensors only. An adapter's directory loads its base, and the
    adapter onto it; `base` is where that base lies now, in place of where the adapter says.
    dtype: "mixed" is fp32 weights, multiplied in bf16; "auto" is that on a GPU and fp32 elsewhere;
    "float32" and "bfloat16" set both. device: "auto" is the first GPU, else the CPU. train_vision:
    also train a vision-language model's tower and projector, which are frozen otherwise.
    lora: freeze the model and train fresh adapters, drawn from `adapter_seed`.
    Raises ModelError with the checkpoint's name for anything that would not train it faithfully.
    """
    logging.disable_progress_bar()  # the commands' own progress tells more
    target = _pick_device(device)
    weight_dtype, compute_dtype = _pick_dtypes(dtype, target)
    adapter = source if is_adapter(source) else None
    if adapter is not None:
        source = base or source
    has_adapters = adapter is not None or lora is not None
    if has_adapters:
        weight_dtype = compute_dtype  # a frozen base needs no master
    location = locate(source)
    config = load_config(location, source, trust_remote_code=trust_remote_code)
    tokenizer = load_tokenizer(location, source, trust_remote_code=trust_remote_code)
    processor = None
    if sees_images(config):
        from corl.policy.vision.processor import load_processor  # spares text runs its imports

        processor = load_processor(
            location, source, config, tokenizer, trust_remote_code=trust_remote_code
        )
        tokenizer = processor.tokenizer
    quantize = "none" if lora is None else lora.quantize
    model = _load_weights(
        location, source, config, weight_dtype, trust_remote_code, quantize, target
    )
    if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
        raise ModelError(
            f"model {str(source)!r}: its tokenizer has {len(tokenizer)} tokens, its embedding only "
            f"{model.get_input_embeddings().weight.shape[0]}. Use the checkpoint's own tokenizer."
        )
    if processor is not None and not train_vision:
        freeze_vision(model)
    whole = str(Path(location).resolve()) if Path(location).is_dir() else location
    if adapter is not None:
        load_adapter(model, adapter, base=whole)
    elif lora is not None:
        add_adapter(model, lora, base=whole, with_vision=train_vision, seed=adapter_seed)
    if quantize == "none":  # quantised weights are put where they belong as they are loaded
        model.to(target)
    use_our_attention(model)
    if gradient_checkpointing:
        _enable_checkpointing(model)
    policy = Policy(
        model=model,
        tokenizer=tokenizer,
        device=target,
        compute_dtype=compute_dtype,
        stop_ids=stop_ids(tokenizer, getattr(model, "generation_config", None)),
        context_length=context_length(model.config, tokenizer),
        processor=processor,
        base=whole if has_adapters else None,
        trust_remote_code=trust_remote_code,
    )
    set_learning_mode(model)
    return policy


def _enable_checkpointing(model: Any) -> None:
    """Recompute layers in the backward pass, under either name that transformers gives it."""
    options = {"use_reentrant": False}
    try:
        if hasattr(model, "activation_checkpointing_enable"):
            model.activation_checkpointing_enable(activation_checkpointing_kwargs=options)
        else:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
    except ValueError as error:
        raise ModelError(
            f"{first_line(error)} Set optimizer.gradient_checkpointing: false for this agent."
        ) from error


def set_learning_mode(model: Any) -> None:
    """Dropout off everywhere, gradient checkpointing still on where it was enabled.

    transformers checkpoints a layer only while that layer's own `training` flag is set, so the
    flag is raised on such layers alone; their children, which hold every dropout, stay in
    evaluation mode. So it is on quantised layers: bitsandbytes repacks their weights for inference
    otherwise, in an arithmetic of its own that has no gradient.
    """
    model.eval()
    for layer in quantized_layers(model):
        layer.training = True
    for module in model.modules():
        if isinstance(module, GradientCheckpointingLayer) and module.gradient_checkpointing:
            module.training = True


def save_policy(policy: Policy, directory: str | Path) -> None:
    """Write weights, config, generation config, tokenizer and processor as save_pretrained does.

    Of a policy with adapters, these alone. Weights are written in the master dtype. Equal weights
    give equal bytes. The caller makes the write atomic.
    """
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    if policy.base is not None:
        save_adapter(policy.model, target)
        _save_readers(policy, target)
        return
    generation = getattr(policy.model, "generation_config", None)
    # Older checkpoints carry a temperature beside do_sample: false, which the writer refuses.
    if generation is not None and not generation.do_sample and _is_inconsistent(generation):
        generation.do_sample = True
    policy.model.save_pretrained(target)
    _save_readers(policy, target)


def save_merged(policy: Policy, directory: str | Path) -> None:
    """Write an ordinary checkpoint with the adapters folded in, in the base's compute dtype.

    The base is read again, on the CPU, so that what is in memory stays as it is.
    """
    target = Path(directory)
    if policy.base is None:
        raise ModelError("only a policy with adapters can be merged")
    with TemporaryDirectory() as held:
        save_adapter(policy.model, held)
        base, own_code = policy.base, policy.trust_remote_code
        config = load_config(base, base, trust_remote_code=own_code)
        plain = _load_weights(base, base, config, policy.compute_dtype, own_code)
        write_merged(plain, adapter=held, directory=target)
    _save_readers(policy, target)


def _save_readers(policy: Policy, target: Path) -> None:
    policy.tokenizer.save_pretrained(target)
    if policy.processor is not None:
        policy.processor.save_pretrained(target)
    # Weights are written through a private temporary file; they are as readable as the rest.
    mode = (target / "tokenizer_config.json").stat().st_mode
    for weights in target.glob("*.safetensors"):
        weights.chmod(mode)


def _is_inconsistent(generation: Any) -> bool:
    try:
        generation.validate(strict=True)
    except ValueError:
        return True
    return False


def _pick_device(device: str | torch.device) -> torch.device:
    if str(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        target = torch.device(device)
    except RuntimeError as error:
        raise ModelError(
            f"device {device!r} is unknown to torch. Use auto, cpu, cuda or cuda:N."
        ) from error
    if target.type == "cuda" and (target.index or 0) >= torch.cuda.device_count():
        raise ModelError(
            f"device {device!r}: torch sees {torch.cuda.device_count()} GPU(s) here. "
            "Use device: auto, or one that exists."
        )
    return target


def _pick_dtypes(dtype: Dtype, device: torch.device) -> tuple[torch.dtype, torch.dtype]:
    """Return (weights, compute)."""
    if dtype == "auto":
        return torch.float32, torch.bfloat16 if device.type == "cuda" else torch.float32
    if dtype == "mixed":
        return torch.float32, torch.bfloat16
    if dtype == "float32":
        return torch.float32, torch.float32
    if dtype == "bfloat16":
        return torch.bfloat16, torch.bfloat16
    raise ModelError(f"dtype {dtype!r} is not supported. Use auto, float32, mixed or bfloat16.")


def _load_weights(
    location: str,
    source: str | Path,
    config: Any,
    dtype: torch.dtype,
    trust_remote_code: bool,
    quantize: str = "none",
    device: torch.device | None = None,
) -> Any:
    auto = AutoModelForImageTextToText if sees_images(config) else AutoModelForCausalLM
    try:
        model, info = auto.from_pretrained(
            location,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
            **quantized(quantize, dtype, device),
        )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        if _has_only_pickles(location):
            advice = "Pickled weights are refused: save_pretrained it again as safetensors."
        else:
            advice = "It needs whole *.safetensors files that fit its config.json."
        raise ModelError(
            f"model {str(source)!r}: its weights do not load ({first_line(error)}). {advice}"
        ) from error
    _require_complete(info, source)
    return model


def bare_model(source: str | Path, *, trust_remote_code: bool) -> Any:
    """The model's modules on the meta device, from its config alone: shapes without weights."""
    location = locate(source)
    config = load_config(location, source, trust_remote_code=trust_remote_code)
    auto = AutoModelForImageTextToText if sees_images(config) else AutoModelForCausalLM
    with torch.device("meta"):
        return auto.from_config(config, trust_remote_code=trust_remote_code)


def _require_complete(info: dict[str, Any], source: str | Path) -> None:
    """Every weight of the model came from the checkpoint, and the other way round."""
    faults = {
        "missing from the checkpoint": info.get("missing_keys"),
        "unknown to the model": info.get("unexpected_keys"),
        "of another shape": [entry[0] for entry in info.get("mismatched_keys") or ()],
        "with errors": info.get("error_msgs"),
    }
    found = [
        f"{len(names)} {what} (such as {sorted(names)[0]})"
        for what, names in faults.items()
        if names
    ]
    if found:
        raise ModelError(
            f"model {str(source)!r}: weights {', '.join(found)}. Training would start from random "
            "or partial weights: use a whole checkpoint whose config.json describes it."
        )


def _has_only_pickles(location: str) -> bool:
    directory = Path(location)
    return (
        directory.is_dir()
        and not any(directory.glob("*.safetensors"))
        and any(directory.glob("*.bin"))
    )
