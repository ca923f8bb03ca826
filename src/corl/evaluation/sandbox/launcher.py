"""Start a sandboxed process: its files, its plan of limits, its command.

What runs inside is text from `child/`, handed over in nameless sealed files:
nothing is written where a candidate could change it, and the sandbox's user
needs no access to this package.
"""

import contextlib
import fcntl
import functools
import marshal
import math
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from corl.evaluation.sandbox import interpreter
from corl.evaluation.sandbox.records import Level, Limits, SandboxError
from corl.evaluation.sandbox.seccomp import build_filter
from corl.evaluation.sandbox.watcher import Child
from corl.evaluation.sandbox.workspace import Workspace, open_workspace

_CHILD_FILES = Path(__file__).with_name("child")
_PREAMBLE = "import sys\nsys.path = [path for path in sys.path if path]\n"


def start(
    runtime: tuple[str, ...],
    payload: dict[str, Any],
    *,
    level: Level,
    limits: Limits,
    stdin: bytes = b"",
    descriptors: Iterable[int] = (),
    reply: bool = False,
) -> Child:
    """Start a process that locks itself down and then runs modules of `child/`.

    runtime: module names; the last one's `main(payload)` is called.
    descriptors: more file descriptors that the process keeps, under their numbers.
    reply: give the process a pipe back to us; its number is `payload["reply"]`.
    The caller hands the child to `watch`, which ends it in any case.
    """
    workspace = open_workspace()
    try:
        with contextlib.ExitStack() as ours:
            control, control_write = _pipe(ours)
            kept = [control_write, *descriptors]
            replies = None
            if reply:
                replies, payload["reply"] = _pipe(ours)
                kept.append(payload["reply"])
            modules = [(f"corl.evaluation.sandbox.child.{name}", _text(name)) for name in runtime]
            source = _sealed_file(marshal.dumps({**payload, "modules": modules}, 2), ours)
            plan = _plan(level, limits, workspace, control_write, source)
            kept.append(source)
            process = _spawn(plan, level, workspace, _sealed_file(stdin, ours), kept)
            return Child(
                process, limits, level, workspace,
                control_file=os.fdopen(os.dup(control), "rb", buffering=0),
                reply_file=None if replies is None else os.fdopen(os.dup(replies), "rb", 0),
            )  # fmt: skip
    except BaseException:
        workspace.close()
        raise


def _spawn(
    plan: str, level: Level, workspace: Workspace, stdin: int, kept: list[int]
) -> subprocess.Popen[bytes]:
    python = interpreter.find_interpreter().path
    command = [python, *interpreter.FLAGS, _PREAMBLE + _text("lock"), plan]
    try:
        return subprocess.Popen(
            interpreter.wrap(command, level, workspace),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=interpreter.ENVIRONMENT,
            cwd=workspace.directory,
            pass_fds=kept,
            start_new_session=True,
            **interpreter.user_options(workspace),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxError(f"cannot start {python} in the sandbox: {error}") from error


@functools.cache
def _text(name: str) -> str:
    return _CHILD_FILES.joinpath(f"{name}.py").read_text(encoding="utf-8")


def _pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    """Return a pipe whose two ends close with the stack."""
    ends = os.pipe()
    for end in ends:
        stack.callback(os.close, end)
    return ends


def _sealed_file(data: bytes, stack: contextlib.ExitStack) -> int:
    """Return a descriptor of a nameless file at its start; nobody can change it."""
    descriptor = os.memfd_create("corl", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, descriptor)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def _plan(level: Level, limits: Limits, workspace: Workspace, control: int, source: int) -> str:
    cpu = math.ceil(limits.cpu_s) + 1  # whole seconds: a backstop behind our own clock
    rlimits = [
        ("RLIMIT_CPU", cpu), ("RLIMIT_AS", limits.memory_mb << 20), ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", limits.file_mb << 20), ("RLIMIT_NOFILE", 64),
        ("RLIMIT_MSGQUEUE", 0), ("RLIMIT_MEMLOCK", 0),
    ]  # fmt: skip
    if workspace.uid is not None:  # otherwise the user's other processes would count
        rlimits.append(("RLIMIT_NPROC", limits.num_threads))
    elif level == "limits":
        rlimits.append(("RLIMIT_NPROC", _num_own_threads() + limits.num_threads))
    filter_program = build_filter() if level != "limits" else None
    if level == "landlock" and filter_program is None:
        raise SandboxError(f"no system-call filter is known for {os.uname().machine}")
    plan = {
        "control": control, "payload": source, "rlimits": rlimits, "filter": filter_program,
        "landlock": {"limits": "no", "landlock": "required", "bubblewrap": "wanted"}[level],
        "read": interpreter.read_paths(interpreter.find_interpreter()),
        "write": [str(workspace.directory), "/dev/null"],
    }  # fmt: skip
    return marshal.dumps(plan, 2).hex()


def _num_own_threads() -> int:
    count = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
                count += len(os.listdir(entry / "task"))
    return count
