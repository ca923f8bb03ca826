"""Which interpreter the sandbox runs, what it may read, and its command line.

The interpreter is tried as the very user that will run it: a Python under a home
of mode 0700 is on the path and still cannot be executed by another uid.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corl.evaluation.sandbox.records import Level, SandboxError
from corl.evaluation.sandbox.workspace import Workspace, open_workspace

# A fixed hash seed: the order of a printed set must not change between runs, because
# votes on code compare outputs. It is the only variable, and is gone before the program.
ENVIRONMENT = {"PYTHONHASHSEED": "0"}
FLAGS = ["-s", "-S", "-B", "-X", "utf8", "-c"]

_SYSTEM_PATHS = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/etc/localtime",
    "/usr/share/zoneinfo",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")

_INTERPRETER_PROBE = """
import ctypes, json, marshal, os, resource, sys
with open("/proc/self/maps") as file:
    mapped = {line.split(None, 5)[5].strip() for line in file if len(line.split(None, 5)) > 5}
folders = {os.path.dirname(path) for path in mapped if ".so" in path and path[0] == "/"}
paths = sorted(folders | {path for path in sys.path if path})
print(json.dumps(["%d.%d.%d" % sys.version_info[:3], paths]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that the sandbox's user can execute, and what it must read to start."""

    path: str
    version: str
    read_paths: tuple[str, ...]


def bubblewrap() -> str | None:
    """Return the path of bwrap."""
    return shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")


@functools.cache
def find_interpreter() -> Interpreter:
    """Return the first Python that the sandbox's user can execute.

    This process's own comes first. Raises `SandboxError` with every reason.
    """
    names = [sys.executable, f"/usr/local/bin/python3.{sys.version_info[1]}"]
    names += [f"/usr/bin/python3.{sys.version_info[1]}", "/usr/local/bin/python3"]
    names += ["/usr/bin/python3", shutil.which("python3") or ""]
    tried: dict[str, str] = {}
    for path in (str(Path(name).resolve()) for name in names if name):
        if path in tried:
            continue
        found, tried[path] = _probe_interpreter(path)
        if found is not None:
            return found
    reasons = "; ".join(f"{path}: {reason}" for path, reason in tried.items())
    raise SandboxError(
        f"no Python that the sandbox's user can execute ({reasons}). Install one for all users, "
        "for example the distribution's python3."
    )


def _probe_interpreter(path: str) -> tuple[Interpreter | None, str]:
    workspace = open_workspace()
    try:
        done = subprocess.run(
            [path, *FLAGS, _INTERPRETER_PROBE],
            env=ENVIRONMENT,
            cwd=workspace.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=20,
            **user_options(workspace),
        )
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"{type(error).__name__}: {error}"
    finally:
        workspace.close()
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["it failed without a message"])[-1]
    version, paths = json.loads(done.stdout)
    return Interpreter(path, version, tuple(paths)), ""


def user_options(workspace: Workspace) -> dict[str, Any]:
    """Return subprocess options that drop the uid, the gid and all other groups."""
    if workspace.uid is None:
        return {}
    return {"user": workspace.uid, "group": workspace.uid, "extra_groups": []}


def read_paths(interpreter: Interpreter) -> list[str]:
    """Return every path that a sandboxed program may read."""
    found = [*_SYSTEM_PATHS, *_DEVICES, *interpreter.read_paths]
    return [path for path in dict.fromkeys(found) if os.path.exists(path)]


def wrap(command: list[str], level: Level, workspace: Workspace) -> list[str]:
    """Put bubblewrap before a command where the level asks for it.

    The command is process 1 of its namespace: bwrap then reaps it itself, instead
    of leaving a zombie to the machine's init, and all else in there dies with it.
    All namespaces are new; only what the interpreter reads is mounted, and no
    /proc. The lock-down in the child is the same as without bubblewrap.
    """
    bwrap = bubblewrap()
    if level != "bubblewrap" or bwrap is None:
        return command
    interpreter = find_interpreter()
    options = ["--unshare-all", "--as-pid-1", "--die-with-parent", "--new-session"]
    options += ["--cap-drop", "ALL"]
    options += ["--dev", "/dev", "--ro-bind", interpreter.path, interpreter.path]
    for path in read_paths(interpreter):
        if not path.startswith("/dev/"):
            options += ["--ro-bind", path, path]
    directory = str(workspace.directory)
    options += ["--bind", directory, directory, "--remount-ro", "/dev", "--remount-ro", "/"]
    return [bwrap, *options, "--chdir", directory, "--", *command]
