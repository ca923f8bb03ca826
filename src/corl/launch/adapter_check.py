"""Whether an agent's adapters can be trained, told from its config before a weight is loaded."""

from __future__ import annotations

from corl.config import AgentConfig
from corl.errors import RecipeError
from corl.policy.adapters import count_adapter, is_adapter, require_peft
from corl.policy.load import bare_model
from corl.policy.quantization import quantized
from corl.supervision import Supervision


def check_adapter(agent: AgentConfig, supervision: Supervision) -> int:
    """Numbers in the agent's adapters, 0 where it has none; the model is built without weights.

    Raises RecipeError, or its ModelError, for what peft, the model or the method cannot do.
    """
    if agent.lora is None:
        return 0
    if is_adapter(agent.model):
        raise RecipeError(
            f"agent {agent.name!r}: {agent.model} is an adapter already; leave `lora` out to train "
            "it on, or name its base as the model"
        )
    if supervision.needs_teacher:
        raise RecipeError(
            f"agent {agent.name!r} trains adapters, but its method keeps a teacher, an average of "
            "all weights; leave `lora` out"
        )
    require_peft()
    quantized(agent.lora.quantize, dtype=None)
    bare = bare_model(agent.model, trust_remote_code=agent.trust_remote_code)
    return count_adapter(bare, agent.lora, with_vision=agent.train_vision)
