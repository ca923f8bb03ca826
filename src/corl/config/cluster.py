"""The recipe's `ray` section: how a run joins a Ray cluster (docs/ray.md)."""

from __future__ import annotations

from pydantic import Field

from corl.config.section import Section


class RayConfig(Section):
    """How a run joins a Ray cluster (docs/ray.md)."""

    address: str | None = None
    """HOST:PORT of the cluster's head, or `local` for one of this process's own; left out:
    RAY_ADDRESS, else the cluster of this machine, else a local one."""
    wait_s: float = Field(0.0, ge=0)
    """Longest wait at the start for a cluster that grows on demand; 0: what its nodes cannot hold
    is refused at once."""
