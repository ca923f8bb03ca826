"""Lock this process down, say so, and only then read what to run.

Started as `python -s -S -B -c <this text> <marshalled plan>`. Every limit is in
force before a byte of the candidate is read, and a step that fails ends the
process: the parent sees no "ready" and reports the reason instead of a result.
"""

import contextlib
import ctypes
import marshal
import os
import resource
import signal
import struct
import sys
from typing import Any

FAILED = 90
"""Exit code when a limit could not be set."""

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SECCOMP_MODE_FILTER = 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
# Remove, make directories, files and symbolic links, rename within the tree.
_TREE_CHANGES = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 13
_TRUNCATE = 1 << 14
# Rights that each Landlock version knows, of the file system.
_FS_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}


def main() -> None:
    plan = marshal.loads(bytes.fromhex(sys.argv[1]))
    control: int = plan["control"]
    try:
        lock(plan)
    except BaseException as error:
        os.write(control, f"{type(error).__name__}: {error}".encode()[:2000])
        os._exit(FAILED)
    os.write(control, b"ready")
    os.close(control)
    with os.fdopen(plan["payload"], "rb") as file:
        payload = marshal.load(file)
    sys.argv = ["main.py"]
    os.environ.clear()
    run(payload)


def lock(plan: dict[str, Any]) -> None:
    """Apply every limit of the plan, or raise."""
    libc = ctypes.CDLL(None, use_errno=True)
    os.umask(0o077)
    _call(libc.prctl, _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for name, value in plan["rlimits"]:
        number = getattr(resource, name, None)
        if number is not None:
            _lower(number, value)
    _call(libc.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if plan["landlock"] != "no":
        _landlock(libc, plan)
    if plan["filter"] is not None:
        _seccomp(libc, plan["filter"])


def run(payload: dict[str, Any]) -> None:
    """Load the runtime modules of the payload in order and call the last one's `main`."""
    module = sys
    for name, text in payload["modules"]:
        parent = ""
        for part in name.split("."):
            parent = f"{parent}.{part}" if parent else part
            module = sys.modules.setdefault(parent, type(sys)(parent))
        exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    module.main(payload)  # type: ignore[attr-defined]


def _lower(number: int, value: int) -> None:
    hard = resource.getrlimit(number)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(number, (value, value))


def _call(function: Any, *arguments: int) -> int:
    result = int(function(*(ctypes.c_long(value) for value in arguments)))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)} in {arguments[0]}")
    return result


def _landlock(libc: Any, plan: dict[str, Any]) -> None:
    """Allow reading the plan's `read` paths and changing its `write` ones; no TCP."""
    try:
        version = _call(libc.syscall, _CREATE_RULESET, 0, 0, 1)
    except OSError:
        if plan["landlock"] == "wanted":
            return
        raise
    handled = _FS_RIGHTS[max(known for known in _FS_RIGHTS if known <= version)]
    words = [handled]
    if version >= 4:
        words.append(0b11)  # binding and connecting TCP
    if version >= 6:
        words.append(0b11)  # abstract sockets and signals outside of this domain
    attributes = ctypes.create_string_buffer(struct.pack(f"={len(words)}Q", *words))
    size = 8 * len(words)
    ruleset = _call(libc.syscall, _CREATE_RULESET, ctypes.addressof(attributes), size, 0)
    read, change = _READ_FILE | _READ_DIR, _WRITE_FILE | _TREE_CHANGES | _TRUNCATE
    for path in plan["read"]:
        _allow(libc, ruleset, path, read & handled)
    for path in plan["write"]:
        _allow(libc, ruleset, path, (read | change) & handled)
    _call(libc.syscall, _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(libc: Any, ruleset: int, path: str, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not os.path.isdir(path):
            rights &= _READ_FILE | _WRITE_FILE | _TRUNCATE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, target))
        _call(libc.syscall, _ADD_RULE, ruleset, 1, ctypes.addressof(rule), 0)
        os.close(target)


def _seccomp(libc: Any, program: list[tuple[int, int, int, int]]) -> None:
    pid = os.getpid()
    packed = b"".join(
        struct.pack("=HBBI", code, yes, no, pid if value < 0 else value)
        for code, yes, no, value in program
    )
    steps = ctypes.create_string_buffer(packed)
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(steps)))
    address = ctypes.addressof(header)
    _call(libc.prctl, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, address, 0, 0)


if __name__ == "__main__":
    main()
