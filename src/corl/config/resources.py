"""Amounts of a cluster's resources that an agent asks for."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

_GIVEN_NAMES = {"cpu": "CPU", "gpu": "GPU"}


def _check_resources(resources: dict[str, float]) -> dict[str, float]:
    for name, amount in resources.items():
        meant = _GIVEN_NAMES.get(name.lower(), name.lower() if name.lower() == "memory" else name)
        if name != meant:
            raise ValueError(f"resource {name!r} is written {meant!r}")
        if not 0 <= amount < float("inf"):
            raise ValueError(f"resource {name!r} is {amount:g}; it must be 0 or more")
        if amount > 1 and amount != int(amount):
            raise ValueError(f"resource {name!r} is {amount:g}; above 1 it must be a whole number")
    return resources


Resources = Annotated[dict[str, float], AfterValidator(_check_resources)]
"""Amounts by resource name: CPU, GPU, memory (bytes), or one of the cluster's own."""
