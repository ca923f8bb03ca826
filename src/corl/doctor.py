"""What this machine has, what is missing for which part, and what to do: `corl doctor`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from corl import __version__
from corl.errors import CorlError

_NEEDED = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "pydantic")
# Package, the extra that brings it, what it is for.
_OPTIONAL = (
    ("datasets", "corl[datasets]", "Parquet files and data sets of the hub"),
    ("math-verify", "corl[grading]", "reported scores of maths"),
    ("matplotlib", "corl[plots]", "pictures as PNG and SVG"),
    ("httpx2", "corl[rephrase]", "rewriting prompts through an endpoint"),
    ("ray", "corl[ray]", "agents on the nodes of a cluster"),
    ("tensorboard", "corl[tensorboard]", "tracking"),
    ("wandb", "corl[wandb]", "tracking"),
    ("trackio", "corl[trackio]", "tracking"),
)
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact, and what to do where something is missing."""

    name: str
    value: str
    advice: str = ""


def examine() -> list[Finding]:
    """Look at everything; never raises for what is missing."""
    return [*_packages(), *_machine(), *_sandbox()]


def _packages() -> list[Finding]:
    findings = [
        Finding("corl", __version__),
        Finding("python", f"{sys.version.split()[0]} ({sys.executable})"),
    ]
    for name in _NEEDED:
        version = _version(name)
        advice = "" if version else "install corl again: pip install corl"
        findings.append(Finding(name, version or "missing", advice))
    for name, extra, purpose in _OPTIONAL:
        version = _version(name)
        advice = "" if version else f"for {purpose}: pip install '{extra}'"
        findings.append(Finding(name, version or "not installed", advice))
    return findings


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _machine() -> list[Finding]:
    usable, present = usable_cores(), os.cpu_count() or 1
    cores = f"{usable:g}" if usable == present else f"{usable:g} usable of {present}"
    total, free = memory()
    findings = [
        Finding("platform", platform.platform()),
        Finding("cores", cores),
        Finding("memory", f"{free / _GIB:.1f} GiB free of {total / _GIB:.1f} GiB"),
    ]
    try:
        import torch
    except Exception as error:  # a broken torch raises whatever its libraries do
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        return [*findings, Finding("torch import", said, "install torch again for this machine")]
    gpus = [
        f"{torch.cuda.get_device_name(index)}, "
        f"{torch.cuda.get_device_properties(index).total_memory / _GIB:.0f} GiB"
        for index in range(torch.cuda.device_count())
    ]
    named = os.environ.get("OMP_NUM_THREADS")
    threads = str(torch.get_num_threads()) + (f" (OMP_NUM_THREADS={named})" if named else "")
    too_many = torch.get_num_threads() > usable
    return [
        *findings,
        Finding(
            "gpu",
            "; ".join(gpus) or "none",
            "" if gpus else "models of a billion parameters and more want one; small ones do not",
        ),
        Finding(
            "threads",
            threads,
            f"more than the {usable:g} cores: set OMP_NUM_THREADS" if too_many else "",
        ),
    ]


def usable_cores() -> float:
    """Cores that this process may use: its affinity, and its control group's quota."""
    try:
        allowed: float = len(os.sched_getaffinity(0))
    except AttributeError:
        allowed = os.cpu_count() or 1
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").partition(" ")
    if quota.isdigit() and period.strip().isdigit():
        allowed = min(allowed, int(quota) / int(period))
    return allowed


def memory() -> tuple[int, int]:
    """Bytes this process may use in all, and bytes that are free now."""
    fields = dict(
        line.partition(":")[::2] for line in _read("/proc/meminfo").splitlines() if ":" in line
    )
    total, free = (
        int(fields.get(name, "0").split()[0]) * 1024 for name in ("MemTotal", "MemAvailable")
    )
    limit, used = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdigit() and used.isdigit():
        total, free = min(total, int(limit)), min(free, max(0, int(limit) - int(used)))
    return total, free


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _sandbox() -> list[Finding]:
    from corl.evaluation.sandbox import describe

    try:
        report = describe()
    except CorlError as error:
        return [
            Finding("sandbox", f"no program can run: {error}", "code benchmarks need Linux 5.13+")
        ]
    user = "a uid of its own per run" if report.own_uid else "the user who starts it"
    advice = {
        "bubblewrap": "",
        "landlock": "contains hostile code; bubblewrap adds namespaces (docs/sandbox.md)",
        "limits": "does NOT contain hostile code: code is not graded here. Install bubblewrap, or "
        "use a kernel with Landlock (Linux 5.13)",
    }[report.level]
    return [
        Finding("sandbox", f"{report.level}, runs as {user}", advice),
        Finding("sandbox python", f"{report.interpreter} (Python {report.version})"),
        *(Finding(f"no {level}", reason) for level, reason in report.missing.items()),
    ]
