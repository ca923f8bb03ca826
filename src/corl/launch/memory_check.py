"""Whether the agents fit on their devices, and what would make them fit."""

from __future__ import annotations

from collections.abc import Mapping

from corl.errors import RecipeError
from corl.policy.memory import MemoryNeed, available_bytes

_GIB = 2**30


def check_memory(agents: Mapping[str, tuple[str, MemoryNeed]]) -> None:
    """Hold what the agents of each device need against what it has free.

    agents: name -> (device, need). Raises RecipeError that names the agents, both sums, and what
    each change would save.
    """
    for device in sorted({device for device, _ in agents.values()}):
        here = {name: need for name, (where, need) in agents.items() if where == device}
        total = sum(need.total for need in here.values())
        have = available_bytes(device)
        if have is not None and total > have:
            raise RecipeError(
                f"{' and '.join(here)} need about {total / _GIB:.1f} GiB on {device}, where "
                f"{have / _GIB:.1f} GiB are free: {_cheaper(list(here.values()))}"
            )


def _cheaper(needs: list[MemoryNeed]) -> str:
    changes = {
        "optimizer.kind: adamw_bf16 with dtype: bfloat16": sum(n.saved_by_bf16 for n in needs),
        "agents[].lora": sum(need.saved_by_lora for need in needs),
    }
    saved = [f"{name} saves about {s / _GIB:.1f} GiB" for name, s in changes.items() if s]
    return "; ".join(
        [
            *saved,
            "fewer optimizer.tokens_per_microbatch or rollout.max_rows save activations and cache",
            *([] if saved else ["so do smaller models"]),
        ]
    )
