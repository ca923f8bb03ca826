"""Who rewards whom: one method a file, chosen by the recipe's `supervision.method`.

Every method is pure: it sees one agent's answers and the votes that crossed the
exchange, and returns rewards. Votes and labels are canonical answer keys.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from corl.config import SupervisionConfig
from corl.errors import RecipeError
from corl.supervision.base import Evidence, Rewards, Supervision, agreement_rewards
from corl.supervision.co_rewarding import CoRewarding1, CoRewarding2
from corl.supervision.ground_truth import GroundTruth
from corl.supervision.intrinsic import Entropy, SelfCertainty
from corl.supervision.peer import AllPeers, Peer, predecessor
from corl.supervision.self_vote import SelfVote

METHODS: dict[str, type[Supervision]] = {
    "peer": Peer,
    "all_peers": AllPeers,
    "ground_truth": GroundTruth,
    "self_vote": SelfVote,
    "self_certainty": SelfCertainty,
    "entropy": Entropy,
    "co_rewarding_1": CoRewarding1,
    "co_rewarding_2": CoRewarding2,
}

__all__ = [
    "METHODS",
    "Evidence",
    "Rewards",
    "Supervision",
    "agreement_rewards",
    "load_supervision",
    "predecessor",
]


def load_supervision(config: SupervisionConfig) -> Supervision:
    """The method a recipe names, with the recipe's options.

    Raises RecipeError for an unknown name (with the nearest known one), a
    dotted path that leads to no class, or options that the method refuses.
    """
    method = METHODS.get(config.method) or _by_dotted_path(config.method)
    try:
        return method(**config.options)
    except TypeError as error:
        raise RecipeError(
            f"supervision.options {dict(config.options)} do not fit {config.method!r}: {error}"
        ) from None


def _by_dotted_path(path: str) -> type[Supervision]:
    module_name, _, class_name = path.rpartition(".")
    if not module_name:
        near = difflib.get_close_matches(path, METHODS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(METHODS)}"
        raise RecipeError(f"supervision method {path!r} is not known; {hint}")
    try:
        found: Any = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise RecipeError(f"supervision class {path!r} cannot be imported: {error}") from None
    if not (isinstance(found, type) and hasattr(found, "reward") and hasattr(found, "graders")):
        raise RecipeError(f"supervision {path!r} is no class with `graders` and `reward`")
    return found
