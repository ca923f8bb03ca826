"""How much memory an agent takes, estimated from its config before it is loaded.

Weights, gradients and optimiser state are exact; cache and activations are
estimates for a transformer whose layers keep about 16 numbers per token and
hidden unit, or one where gradient checkpointing recomputes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from corl.config import LoraConfig, OptimizerConfig
from corl.grpo.logprobs import chunk_logits
from corl.policy.facts import ModelFacts
from corl.policy.quantization import BYTES

_KEPT_PER_HIDDEN_UNIT = 16
_CHUNKS_OF_LOGITS = 3


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Bytes by use, beside the parameter count they follow from."""

    num_parameters: int
    adapter_parameters: int
    """Numbers in the adapters, the only ones that learn where there are any."""
    weights: int
    gradients: int
    optimizer: int
    compute_copy: int
    """The bf16 copy that samples and learns where compute is bf16 and weights are not."""
    reference: int
    teacher: int
    """A float32 moving average of the policy, with a compute copy where the policy has one."""
    cache: int
    """Keys and values of the rows decoded at once."""
    activations: int

    @property
    def held(self) -> int:
        """What stays between phases, while another agent has its turn."""
        own = self.weights + self.optimizer + self.compute_copy
        return own + self.reference + self.teacher

    @property
    def sampling(self) -> int:
        """Peak of the phase that decodes."""
        return self.held + self.cache

    @property
    def learning(self) -> int:
        """Peak of the phase that updates; gradients live in it alone."""
        return self.held + self.gradients + self.activations

    @property
    def total(self) -> int:
        """Peak of a step, whose phases follow each other."""
        return max(self.sampling, self.learning)

    @property
    def saved_by_bf16(self) -> int:
        """What bf16 weights, gradients and moments would save; 0 where they are bf16 already."""
        if self.adapter_parameters:
            return 0
        held = self.weights + self.gradients + self.optimizer
        return max(0, held + self.compute_copy - 8 * self.num_parameters)

    @property
    def saved_by_lora(self) -> int:
        """What adapters would save, which are next to nothing: gradients, moments and copies."""
        if self.adapter_parameters:
            return 0
        return self.gradients + self.optimizer + self.compute_copy + self.reference


def memory_need(
    model: ModelFacts,
    *,
    agent_dtype: str,
    device: str,
    optimizer: OptimizerConfig,
    keeps_reference: bool,
    keeps_teacher: bool = False,
    lora: LoraConfig | None = None,
    adapter_parameters: int = 0,
    completions: int,
    max_rows: int,
    sequence_length: int,
) -> MemoryNeed:
    """Bytes that one agent needs on its device.

    keeps_reference: for the KL term; a teacher stands in for it, and so does the frozen base that
    adapters are trained on. adapter_parameters: numbers in those of `lora`.
    completions: of one step, of which `max_rows` are decoded at once;
    sequence_length: prompt plus completion, tokens.
    """
    weight_bytes = 2 if agent_dtype == "bfloat16" else 4
    is_fp32 = agent_dtype == "float32" or (agent_dtype == "auto" and device == "cpu")
    compute_bytes = 4 if is_fp32 else 2
    moment_bytes = 2 if optimizer.kind == "adamw_bf16" else weight_bytes
    count = model.num_parameters
    is_mixed = compute_bytes < weight_bytes
    trained = count
    weights = count * weight_bytes
    if lora is not None:  # a base kept once as it is multiplied, and float32 adapters
        is_mixed, weight_bytes, trained = False, 4, adapter_parameters
        base_bytes = BYTES.get(lora.quantize, compute_bytes)
        # Embedding and head keep the compute dtype; tied ones are counted twice, to err high.
        ends = min(count, 2 * model.vocab_size * model.hidden_size)
        weights = round((count - ends) * base_bytes + ends * compute_bytes)
        weights += adapter_parameters * 4
        moment_bytes, keeps_reference = 4, False
    kept = 1 if optimizer.gradient_checkpointing else _KEPT_PER_HIDDEN_UNIT
    tokens = max(
        min(optimizer.tokens_per_microbatch, completions * sequence_length), sequence_length
    )
    return MemoryNeed(
        num_parameters=count,
        adapter_parameters=adapter_parameters,
        weights=weights,
        # The bf16 copy's gradients live until they are added to the master's.
        gradients=trained * (weight_bytes + 2 * is_mixed),
        optimizer=2 * trained * moment_bytes,
        compute_copy=count * 2 if is_mixed else 0,
        reference=count * compute_bytes if keeps_reference and not keeps_teacher else 0,
        teacher=count * _teacher_bytes(agent_dtype, device) if keeps_teacher else 0,
        cache=2
        * model.num_layers
        * model.kv_width
        * min(completions, max_rows)
        * sequence_length
        * compute_bytes,
        activations=tokens * model.hidden_size * model.num_layers * kept * compute_bytes
        + _CHUNKS_OF_LOGITS
        * 4
        * min(tokens * model.vocab_size, chunk_logits(device.partition(":")[0])),
    )


def _teacher_bytes(agent_dtype: str, device: str) -> int:
    return 4 if agent_dtype == "float32" or device == "cpu" else 4 + 2


def available_bytes(device: str) -> int | None:
    """Free memory of a device; None where it cannot be told."""
    import torch

    if device.startswith("cuda"):
        free, _ = torch.cuda.mem_get_info(device)
        return int(free)
    try:
        with open("/proc/meminfo") as stream:
            fields = dict(line.split(":", 1) for line in stream)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
