"""Whether an agent's adapters can be trained, told from its config before a weight is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from corl.config import AgentConfig, LoraConfig, OptimizerConfig
from corl.errors import RecipeError
from corl.policy.adapters import count_adapter, count_saved, is_adapter, require_peft
from corl.policy.load import bare_model
from corl.policy.quantization import quantized
from corl.supervision import Supervision


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """What an agent trains beside a frozen base."""

    lora: LoraConfig
    num_parameters: int


def check_adapter(
    agent: AgentConfig, supervision: Supervision, optimizer: OptimizerConfig
) -> AdapterFacts | None:
    """The agent's adapters, fresh or of the directory that it names; None where it has none.

    The model is built without weights. Raises RecipeError, or its ModelError, for what peft, the
    model or the method cannot do.
    """
    trained_on = is_adapter(agent.model)
    if agent.lora is None and not trained_on:
        return None
    if agent.lora is not None and trained_on:
        raise RecipeError(
            f"agent {agent.name!r}: {agent.model} is an adapter already; leave `lora` out to train "
            "it on, or name its base as the model"
        )
    if supervision.needs_teacher:
        raise RecipeError(
            f"agent {agent.name!r} trains adapters, but its method keeps a teacher, an average of "
            "all weights; train a whole model"
        )
    if optimizer.kind == "adamw_bf16" or agent.dtype == "bfloat16":
        raise RecipeError(
            f"agent {agent.name!r} trains adapters, which are float32 weights of few bytes: use "
            "optimizer.kind adamw, and dtype mixed for a bfloat16 base"
        )
    require_peft()
    if agent.lora is None:
        return AdapterFacts(LoraConfig(), count_saved(agent.model))
    quantized(agent.lora.quantize, dtype=None)
    bare = bare_model(agent.model, trust_remote_code=agent.trust_remote_code)
    return AdapterFacts(agent.lora, count_adapter(bare, agent.lora, with_vision=agent.train_vision))
