"""A run's own directory and user: made before it, removed after it.

When started as root every run gets a uid of its own, so that candidates can
neither signal nor read each other, and the kernel counts threads per run. A
lease on a uid is an abstract socket: the kernel frees it with its holder.
"""

import contextlib
import errno
import functools
import os
import socket
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from corl.evaluation.sandbox.records import SandboxError

# Inside systemd's range for dynamic users: no account of a distribution lives there.
UIDS = range(61_184, 65_520)


@dataclass(slots=True)
class Workspace:
    """A private directory, and the uid that owns it (None: the caller's own)."""

    directory: Path
    uid: int | None
    lease: socket.socket | None = field(default=None, repr=False)

    def close(self) -> None:
        """Remove the directory, whatever the candidate built in it, and free the uid."""
        remove_tree(self.directory)
        self.directory.parent.rmdir()
        if self.lease is not None:
            self.lease.close()


def open_workspace() -> Workspace:
    """Make a directory that only the run's user can enter."""
    uid, lease = _lease_uid() if drops_uid() else (None, None)
    outer = Path(tempfile.mkdtemp(prefix="corl-sandbox-", dir=scratch_base(uid is not None)))
    directory = outer / "run"
    directory.mkdir(mode=0o700)
    if uid is not None:
        outer.chmod(0o711)  # entered by the run's user, listed and changed only by us
        os.chown(directory, uid, uid)
    return Workspace(directory, uid, lease)


def drops_uid() -> bool:
    """Say whether runs get a uid of their own: as root, where those uids exist."""
    if os.geteuid() != 0:
        return False
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return True
    spans = [(int(line.split()[0]), int(line.split()[2])) for line in lines]
    return any(first <= UIDS[0] and UIDS[-1] < first + count for first, count in spans)


def scratch_base(other_user: bool) -> str:
    """Return the temporary directory, or /tmp where another user cannot reach that one."""
    base = Path(tempfile.gettempdir()).resolve()
    if other_user and not all(path.stat().st_mode & stat.S_IXOTH for path in (base, *base.parents)):
        return "/tmp"
    return str(base)


def _lease_uid() -> tuple[int, socket.socket]:
    start = os.getpid() % len(UIDS)
    for offset in range(len(UIDS)):
        uid = UIDS[(start + offset) % len(UIDS)]
        lease = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            lease.bind(f"\0corl-sandbox-uid-{uid}")
        except OSError as error:
            lease.close()
            if error.errno != errno.EADDRINUSE:
                raise
            continue
        return uid, lease
    raise SandboxError(
        f"all {len(UIDS)} sandbox uids are taken; end other sandboxed runs on this machine first."
    )


def remove_tree(top: Path) -> None:
    """Remove a directory of any depth and any modes, following no link.

    Nested directories are moved beside `top` before they are emptied, so that no
    path grows longer than the system's limit and nothing recurses. The directory
    around `top` must be ours alone.
    """
    serial = 0
    pending = [str(top)]
    while pending:
        directory = pending.pop()
        os.chmod(directory, 0o700)
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    serial += 1
                    os.chmod(entry.path, 0o700)
                    moved = str(top.parent / f"{serial}")
                    os.rename(entry.path, moved)
                    pending.append(moved)
                else:
                    os.unlink(entry.path)
        os.rmdir(directory)


def removed_bytes(pids: Iterable[int]) -> int:
    """Return the disk space of removed files that processes still hold open, in bytes.

    Each thread may have descriptors of its own. A removed file that is mapped and closed is not
    seen here; the memory limit bounds it.
    """
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                _add_removed(f"/proc/{pid}/task/{thread}/fd", found)
    return sum(found.values())


def _add_removed(descriptors: str, found: dict[tuple[int, int], int]) -> None:
    with contextlib.suppress(OSError):
        for number in os.listdir(descriptors):
            with contextlib.suppress(OSError):
                file = os.stat(f"{descriptors}/{number}")
                if stat.S_ISREG(file.st_mode) and not file.st_nlink:
                    found[file.st_dev, file.st_ino] = file.st_blocks * 512
    for key in [key for key in found if key[0] == _memory_device()]:
        del found[key]  # our own sealed files; a program can make none


@functools.cache
def _memory_device() -> int:
    descriptor = os.memfd_create("corl", os.MFD_CLOEXEC)
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


def exceeds(directory: Path, *, num_bytes: int, num_files: int, beside: int = 0) -> bool:
    """Say whether a directory holds more than allowed; looks at `num_files` entries at most.

    beside: bytes that count and are not in the directory.
    """
    pending, seen, size = [str(directory)], 0, beside
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > num_files:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue  # the program is changing its tree while we look
        if size > num_bytes:
            return True
    return False
