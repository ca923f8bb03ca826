"""`environment.json`: what a run ran on, for whoever has to explain its figures."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from datetime import UTC, datetime

import torch

from corl.run.directory import RunDirectory
from corl.run.files import write_atomically

_PACKAGES = ("corl", "torch", "transformers", "tokenizers", "safetensors", "numpy")


def write_environment(run: RunDirectory, *, devices: dict[str, str]) -> None:
    """Record machine, versions and devices of this start."""
    facts = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
        "devices": devices,
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }
    write_atomically(run.root / "environment.json", json.dumps(facts, indent=1))
