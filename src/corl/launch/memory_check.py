"""Whether the agents fit on their devices, and what would make them fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corl.errors import RecipeError
from corl.policy.memory import MemoryNeed, available_bytes

_GIB = 2**30


def check_memory(agents: Mapping[str, tuple[str, MemoryNeed]], *, by_turns: bool) -> None:
    """Hold what the agents of each device need against what it has free.

    agents: name -> (device, need). by_turns: one agent at a time samples or learns. Raises
    RecipeError that names the agents, both sums, and what each change would save.
    """
    for device in sorted({device for device, _ in agents.values()}):
        here = {name: need for name, (where, need) in agents.items() if where == device}
        total = peak(list(here.values()), by_turns=by_turns)
        have = available_bytes(device)
        if have is not None and total > have:
            advice = _cheaper(list(here.values()), by_turns=by_turns)
            raise RecipeError(
                f"{' and '.join(here)} need about {total / _GIB:.1f} GiB on {device}, where "
                f"{have / _GIB:.1f} GiB are free: {advice}"
            )


def peak(needs: Sequence[MemoryNeed], *, by_turns: bool) -> int:
    """Bytes that these agents of one device need at most at one time."""
    if not by_turns:
        return sum(need.total for need in needs)
    held = sum(need.held for need in needs)
    return held + max((need.total - need.held for need in needs), default=0)


def _cheaper(needs: list[MemoryNeed], *, by_turns: bool) -> str:
    turns = 0 if by_turns else peak(needs, by_turns=False) - peak(needs, by_turns=True)
    changes = {
        "launch: in_process, where agents take turns,": turns,
        "optimizer.kind: adamw_bf16 with dtype: bfloat16": sum(n.saved_by_bf16 for n in needs),
        "agents[].lora": sum(need.saved_by_lora for need in needs),
    }
    saved = [f"{name} saves about {s / _GIB:.1f} GiB" for name, s in changes.items() if s]
    phase = "rollout.max_rows saves cache"
    if any(need.learning > need.sampling for need in needs):
        phase = "optimizer.tokens_per_microbatch saves activations"
    return "; ".join([*saved, f"a smaller {phase}", *([] if saved else ["so do smaller models"])])
