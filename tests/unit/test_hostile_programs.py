"""More hostile programs, each in a run of its own: none escapes, hogs a limit or forges a pass.

test_sandbox.py and test_sandbox_forgery.py hold the first of each kind (files, sockets, forks,
bombs, always-equal objects, frames). Here stand the ways around those: other calls to the same
end, races, hidden disk use, raw system calls, and lies in the protocol.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from corl.evaluation.sandbox import Level, Limits, RunResult, Verdict, check_tests, run_program
from corl.evaluation.sandbox.levels import why_not
from corl.evaluation.sandbox.workspace import UIDS, removed_bytes

T = TypeVar("T")
SECRET = "the-secret-7306"
LEVELS: tuple[Level, ...] = ("landlock", "bubblewrap")

ESCAPES = {
    # files: other roads out
    "climb_by_descriptor": "os.open('../../..' + ARENA + '/secret', 0, dir_fd=os.open('.', PATH))",
    "open_by_descriptor": "os.open('secret', 0, dir_fd=os.open(ARENA, PATH))",
    "reopen_path_descriptor": "open('/proc/self/fd/%d' % os.open(ARENA + '/secret', PATH)).read()",
    "work_in_arena": "os.chdir(ARENA); print(open('secret').read())",
    "root_of_self": "print(open('/proc/self/root' + ARENA + '/secret').read())",
    "root_of_first": "print(open('/proc/1/root' + ARENA + '/secret').read())",
    "cwd_of_parent": "os.listdir(f'/proc/{os.getppid()}/cwd')",
    "descriptors_of_parent": "os.listdir(f'/proc/{os.getppid()}/fd')",
    "memory_map_of_parent": "open(f'/proc/{os.getppid()}/maps').read()",
    "environ_at_start": "assert SECRET_NAME in open('/proc/self/environ').read()",
    "environ_of_victim": "print(open(f'/proc/{VICTIM}/environ').read())",
    "environ_of_anyone": "assert any(open(f'/proc/{p}/environ').read() for p in others())",
    "score_of_parent": "open(f'/proc/{os.getppid()}/oom_score_adj', 'w').write('1000')",
    "kernel_setting": "open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/x')",
    "core_pattern_by_crash": "open('/proc/self/coredump_filter', 'w').write('0xff')",
    "overwrite_interpreter": "open(os.path.realpath(sys.executable), 'r+b')",
    "change_library": "open(os.__file__, 'a').write('#')",
    "plant_sitecustomize": "open(os.path.dirname(os.__file__) + '/sitecustomize.py', 'w')",
    "plant_beside_interpreter": "open(os.path.dirname(sys.executable) + '/pyvenv.cfg', 'w')",
    "preload": "open('/etc/ld.so.preload', 'w').write('x')",
    "symlink_outside": "os.symlink('/etc/passwd', ARENA + '/link')",
    "symlink_chain": "os.symlink('/', 'a'); os.symlink('a' + ARENA, 'b'); open('b/new', 'w')",
    "symlink_of_own_directory": "os.rename(os.getcwd(), ARENA + '/run')",
    "replace_own_directory": "d = os.getcwd(); os.rmdir(d); os.symlink(ARENA, d)",
    "rename_into": "os.rename('own', ARENA + '/own')",
    "exchange": "syscall(316, AT, b'own', AT, (ARENA + '/secret').encode(), 2)",
    "hard_link_outward": "os.link('own', ARENA + '/own')",
    "hard_link_by_descriptor": "os.link('/proc/self/fd/0', 'mine', follow_symlinks=True)",
    "remove_all": "shutil.rmtree(ARENA)",
    "remove_directory": "os.rmdir(ARENA + '/empty')",
    "fifo_outside": "os.mkfifo(ARENA + '/fifo')",
    "device": "os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(8, 0))",
    "raw_memory": "open('/dev/mem', 'rb').read(1)",
    "raw_disk": "open('/dev/sda', 'rb').read(1)",
    "kernel_log": "open('/dev/kmsg', 'w').write('x')",
    "terminal": "open('/dev/tty', 'w').write('x')",
    "fuse": "open('/dev/fuse', 'r+b')",
    "setuid_bit": "os.chmod('own', 0o4755)",
    "mode_by_descriptor": "os.fchmod(os.open('own', os.O_RDWR), 0o4755)",
    "attribute": "os.setxattr('own', 'user.x', b'1')",
    "attribute_names": "os.listxattr(ARENA + '/secret')",
    "attribute_value": "no_attribute(lambda: os.getxattr(ARENA + '/secret', 'user.x'))",
    "file_handle": "call('name_to_handle_at', AT, b'own', bytes(200), bytes(8), 0)",
    "watch_outside": "call('inotify_add_watch', call('inotify_init1', 0), ARENA.encode(), 4095)",
    "swap": "call('swapon', b'own', 0)",
    # limits
    "sparse_file": "os.truncate('own', 1 << 40)",
    "allocated_file": "os.posix_fallocate(os.open('own', os.O_RDWR), 0, 1 << 30)",
    "grow_stdin": "os.ftruncate(0, 1 << 30)",
    "write_stdin": "os.lseek(0, 0, 0); os.write(0, b'x')",
    "reopen_stdin": "os.write(os.open('/proc/self/fd/0', os.O_RDWR), b'x')",
    "unseal_stdin": "fcntl.fcntl(0, 1033, 8)",
    "more_memory": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "more_descriptors": "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))",
    "larger_files": "resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))",
    "core_files": "resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))",
    "lock_memory": "call('mlockall', 3)",
    "priority": "os.nice(-5)",
    "real_time": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "idle_parent": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
    "idle_victim": "os.setpriority(os.PRIO_PROCESS, VICTIM, 19)",
    "pin_victim": "os.sched_setaffinity(VICTIM, {0})",
    # network
    "web": "urllib.request.urlopen(f'http://127.0.0.1:{TCP}', timeout=1)",
    "tcp_to_all": "socket.create_connection(('0.0.0.0', TCP), 1)",
    "tcp6": "socket.socket(socket.AF_INET6).connect(('::1', TCP))",
    "udp_datagram": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
    "raw_icmp": "socket.socket(type=socket.SOCK_RAW, proto=1)",
    "packet": "socket.socket(17, socket.SOCK_RAW)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "vsock": "socket.socket(40, socket.SOCK_STREAM)",
    "kernel_crypto": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "inherited_socket": "assert any(is_socket(n) for n in range(64))",
    "unix_datagram": "socket.socket(1, socket.SOCK_DGRAM).sendto(b'x', ARENA + '/socket')",
    "socket_by_number": "syscall(SOCKET, 2, 1, 0)",
    # processes
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "popen": "assert os.popen('echo 1').read() == '1\\n'",
    "multiprocessing": "multiprocessing.get_context('fork').Process(target=print).start()",
    "pool": "multiprocessing.Pool(1)",
    "terminal_child": "pty.fork()",
    "raw_fork": "syscall(CLONE, 17, 0, 0, 0, 0)",
    "raw_clone3": "syscall(435, bytes(64), 64)",
    "shared_clone": "syscall(CLONE, 0x100 | 17, 0, 0, 0, 0)",
    "namespace_clone": "syscall(CLONE, 0x10000000 | 17, 0, 0, 0, 0)",
    "exec_descriptor": "os.execve(os.open(sys.executable, 0), ['x', '-c', SAY], {})",
    "exec_loader": "os.execv('/lib64/ld-linux-x86-64.so.2', ['x', '/bin/true'])",
    "own_group": "os.setpgid(0, 0)",
    "kill_victim": "os.kill(VICTIM, 9)",
    "kill_first": "assert os.getpid() != 1; os.kill(1, 9)",
    "kill_own_group": "os.kill(0, 15)",
    "thread_kill": "syscall(TGKILL, VICTIM, VICTIM, 9)",
    "queue_signal": "call('sigqueue', VICTIM, 9, 0)",
    "signal_by_handle": "signal.pidfd_send_signal(os.pidfd_open(VICTIM), 9)",
    "signal_on_input": "fcntl.fcntl(0, 15, struct.pack('ii', 1, VICTIM))",
    "trace_me": "call('ptrace', 0, 0, 0, 0)",
    "trace_victim": "call('ptrace', 16, VICTIM, 0, 0)",
    "write_victim_memory": "call('process_vm_writev', VICTIM, 0, 0, 0, 0, 0)",
    "limit_victim": "resource.prlimit(VICTIM, resource.RLIMIT_CPU, (0, 0))",
    # privileges and kernel doors
    "all_uids": "os.setresuid(0, 0, 0)",
    "groups": "os.setgroups([0])",
    "capabilities": "call('prctl', 47, 2, 0, 0, 0)",
    "drop_filter": "call('prctl', 22, 0, 0, 0, 0)",
    "undump": "call('prctl', 4, 1, 0, 0, 0)",
    "second_filter": "syscall(317, 1, 0, 0)",
    "new_network": "call('unshare', 0x40000000)",
    "new_mounts": "call('unshare', 0x20000)",
    "enter_namespace": "call('setns', 0, 0)",
    "bind_mount": "call('mount', ARENA.encode(), os.getcwd().encode(), b'', 4096, 0)",
    "unmount": "call('umount2', b'/proc', 2)",
    "change_root": "call('pivot_root', b'.', b'.')",
    "personality": "call('personality', 0x0040000)",
    "new_key": "syscall(248, b'user', b'x', b'y', 1, -3)",
    "performance_counters": "syscall(298, bytes(128), 0, -1, -1, 0)",
    "page_faults": "syscall(323, 0)",
    "host_name": "socket.sethostname('x')",
    "clock": "time.clock_settime(time.CLOCK_REALTIME, time.time())",
    "semaphores": "call('semget', 0, 1, 0o1600)",
    "messages": "call('msgget', 0, 0o1600)",
    "shared_block": "multiprocessing.shared_memory.SharedMemory(create=True, size=10)",
    "named_semaphore": "multiprocessing.Semaphore()",
}  # fmt: skip

PRELUDE = """
import ctypes, errno, fcntl, multiprocessing, multiprocessing.shared_memory, os, platform
import pty, resource
import shutil, signal, socket, stat, struct, sys, threading, time, urllib.request
ARENA, TCP, UDP, VICTIM, SECRET_NAME = {arena!r}, {tcp}, {udp}, {victim}, "CORL_HOSTILE_SECRET"
PATH, AT, SAY = os.O_PATH, -100, "print('ESC' + 'APED')"
IS_X86 = platform.machine() == "x86_64"
SOCKET, CLONE, TGKILL = (41, 56, 234) if IS_X86 else (198, 220, 131)
LIBC = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    result = getattr(LIBC, name)(*arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return result
def syscall(number, *arguments):
    return call("syscall", number, *arguments)
def is_socket(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False
def no_attribute(read):
    try:
        read()
    except OSError as error:
        if error.errno not in (errno.ENODATA, errno.ENOTSUP):
            raise
def others():
    return [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
open("own", "w").close()
print("started", flush=True)
try:
    exec({attack!r})
except Exception as error:
    print("refused:", type(error).__name__, error)
else:
    print("ESCAPED", flush=True)
    os._exit(0)
"""

# Machine code that forks by the old 32-bit gate, and by the x32 table.
GATES = {
    "fork_by_32_bit_gate": "b8 02 00 00 00 cd 80 c3",
    "fork_by_x32_table": "b8 39 00 00 40 0f 05 c3",
    "fork_by_machine_code": "b8 39 00 00 00 0f 05 c3",
    "exec_by_32_bit_gate": "b8 0b 00 00 00 31 db cd 80 c3",
    "socket_by_32_bit_gate": "b8 67 01 00 00 bb 02 00 00 00 b9 01 00 00 00 31 d2 cd 80 c3",
}
MACHINE_CODE = """
import ctypes, mmap, os
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex({code!r}))
print("started", flush=True)
run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print("ESCAPED" if run() >= 0 else "refused", flush=True)
os._exit(0)
"""

# A directory that flips between a real one and a link outward, while a thread writes through it.
RACE = """
import os, threading, time
ARENA = {arena!r}
print("started", flush=True)
os.mkdir("real"); os.symlink(ARENA, "link")
ends = time.monotonic() + 0.3
def flip():
    while time.monotonic() < ends:
        for name in ("real", "link"):
            os.rename(name, "d"); os.rename("d", name)
threading.Thread(target=flip).start()
while time.monotonic() < ends:
    try:
        open("d/secret", "a").write("x")
        if os.path.islink("d"): pass
    except OSError:
        pass
"""

# Ends with links and races in its directory, so that what cleans up after it meets them.
TRAPS = """
import os, threading
print("started", flush=True)
ARENA = {arena!r}
os.mkdir("d")
for n in range(20):
    os.symlink(ARENA, f"d/{{n}}"); os.symlink(ARENA + "/secret", f"f{{n}}")
os.symlink("..", "up"); os.symlink("loop", "loop"); os.symlink("/proc/self/cwd", "self")
os.mkdir("shut", 0); os.mkdir("1"); os.symlink(ARENA, "2")
def flip():
    while True:
        os.rename("d", "e"); os.symlink(ARENA, "d"); os.unlink("d"); os.rename("e", "d")
for _ in range(2): threading.Thread(target=flip).start()
"""

FAST = {"cpu_s": 0.4, "wall_s": 8.0, "memory_mb": 128}
SLEEPY = {**FAST, "wall_s": 0.5}
CLOSED = "import os, time\nos.close(0); os.close(1); os.close(2)\n"

# name: (program, the statuses that may end it, its limits)
HOGS: dict[str, tuple[str, set[str], dict]] = {
    "unlinked_files": (
        "import os, time\nkept = []\nfor n in range(40):\n"
        " kept.append(open('x', 'wb')); os.unlink('x')\n"
        " kept[-1].write(bytes(8 << 20)); kept[-1].flush(); time.sleep(0.01)",
        {"output_limit"}, FAST,
    ),
    "unlinked_files_of_a_thread": (
        "import os, threading, time\ndef fill():\n kept = []\n for n in range(40):\n"
        "  kept.append(os.open('x', os.O_CREAT | os.O_RDWR)); os.unlink('x')\n"
        "  os.write(kept[-1], bytes(8 << 20)); time.sleep(0.01)\n"
        "threading.Thread(target=fill).start()",
        {"output_limit"}, FAST,
    ),
    "many_links": (
        "import os, time\nfor n in range(10**6): os.symlink('/', str(n))", {"output_limit"}, FAST,
    ),
    "many_hard_links": (
        "import os\nopen('x', 'w').close()\nfor n in range(10**6): os.link('x', str(n))",
        {"output_limit"}, FAST,
    ),
    "closed_streams_busy": (CLOSED + "while True: pass", {"timeout"}, FAST),
    "closed_streams_asleep": (CLOSED + "time.sleep(60)", {"timeout"}, SLEEPY),
    "waits_for_itself": (
        "import os\nr, w = os.pipe()\nos.read(r, 1)", {"timeout"}, SLEEPY,
    ),
    "thread_that_stays": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
        {"timeout"}, SLEEPY,
    ),
    "exit_that_stays": (
        "import atexit, time\natexit.register(time.sleep, 60)", {"timeout"}, SLEEPY,
    ),
    "exit_that_works": (
        "import atexit\ndef f():\n while True: pass\natexit.register(f)", {"timeout"}, FAST,
    ),
    "finalizer_that_works": (
        "class A:\n def __del__(self):\n  while True: pass\na = A()", {"timeout"}, FAST,
    ),
    "swallowed_exit": (
        "import sys\nwhile True:\n try: sys.exit(0)\n except BaseException: pass",
        {"timeout"}, FAST,
    ),
    "generator_that_refuses_to_close": (
        "def f():\n while True:\n  try: yield\n  except GeneratorExit: pass\n"
        "g = f(); next(g)\nwhile True:\n try: g.close()\n except RuntimeError: pass",
        {"timeout"}, FAST,
    ),
    "timer_storm": (
        "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\n"
        "signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)\nwhile True: pass",
        {"timeout"}, FAST,
    ),
    "no_thread_switch": (
        "import sys, threading\nsys.setswitchinterval(1000)\n"
        "def f():\n while True: pass\nthreading.Thread(target=f).start()\nf()",
        {"timeout"}, FAST,
    ),
    "endless_sum": ("import itertools\nsum(itertools.count())", {"timeout"}, FAST),
    "endless_list": ("import itertools\nlist(itertools.repeat(0))", {"memory", "timeout"}, FAST),
    "factorial": ("import math\nmath.factorial(10**9)", {"timeout", "memory"}, FAST),
    "shift": ("x = 1 << (1 << 40)", {"memory", "error"}, FAST),
    "number_from_text": (
        "import sys\ngetattr(sys, 'set_int_max_str_digits', id)(0)\nint('9' * 10**7)",
        {"timeout", "memory"}, FAST,
    ),
    "decimal_digits": (
        "import decimal\ndecimal.getcontext().prec = 10**9\n"
        "decimal.Decimal(1) / decimal.Decimal(7)",
        {"timeout", "memory", "error"}, FAST,
    ),
    "wide_format": ("x = '%*d' % (2**31 - 1, 1)", {"memory"}, FAST),
    "wide_format_by_text": ("x = f'{1:{2**31 - 1}}'", {"memory", "error"}, FAST),
    "unpacked_archive": (
        "import zlib\ndata = zlib.compress(bytes(1 << 24))\n"
        "data = zlib.decompress(data * 1) * 64",
        {"memory"}, FAST,
    ),
    "nested_json": ("import json\njson.loads('[' * 10**6)", {"error", "memory"}, FAST),
    "hash_collisions": (
        "m = 2**61 - 1\nd = {n * m: 0 for n in range(10**6)}", {"timeout"}, FAST,
    ),
    "permutations": (
        "import itertools\nx = list(itertools.permutations(range(12)))", {"memory", "timeout"},
        FAST,
    ),
    "anonymous_map": ("import mmap\nmmap.mmap(-1, 1 << 40)", {"error", "memory"}, FAST),
    "raw_allocation": (
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.malloc.restype = ctypes.c_void_p\n"
        "while True:\n p = libc.malloc(1 << 22)\n if p: ctypes.memset(p, 1, 1 << 22)",
        {"timeout"}, FAST,
    ),
    "read_zeros": ("open('/dev/zero', 'rb').read()", {"memory", "error", "timeout"}, FAST),
    "large_stacks": (
        "import threading, time\nthreading.stack_size(1 << 26)\n"
        "for _ in range(64): threading.Thread(target=time.sleep, args=(60,)).start()",
        {"error", "memory", "timeout"}, SLEEPY,
    ),
    "chained_errors": (
        "e = None\nwhile True:\n try: raise ValueError(e) from e\n"
        " except ValueError as error: e = error",
        {"memory", "timeout", "error"}, FAST,
    ),
    "repr_of_itself": (
        "class A:\n def __repr__(self): return repr(self)\nprint(A())", {"error"}, FAST,
    ),
    "one_endless_line": (
        "import os\nwhile True: os.write(1, b'x' * 65536)", {"output_limit"}, FAST,
    ),
    "output_of_threads": (
        "import os, threading\ndef f():\n while True: os.write(2, os.urandom(4096))\n"
        "for _ in range(4): threading.Thread(target=f).start()",
        {"output_limit"}, FAST,
    ),
    "abort": ("import os\nos.abort()", {"error"}, FAST),
    # Process 1 of a namespace gets no signal of its own.
    "kills_itself": ("import os\nos.kill(os.getpid(), 9)", {"error", "ok"}, FAST),
    "huge_literal": ("x = " + "9" * 100_000, {"error"}, FAST),
    "folded_constants": ("x = " + "(" * 50 + "'a' * 4096" + ") * 4096" * 50, {"memory", "error"},
                         FAST),
    "long_chain": ("x = 1" + " + 1" * 50_000, {"ok", "error", "memory"}, FAST),
}  # fmt: skip

EQUAL = "assert inc(1) == 2\n"
WIRE = "import sys\nwire = sys.modules['corl.evaluation.sandbox.child.wire']\n"
SEND = WIRE + (
    "def say(message):\n    for n in range(3, 64):\n"
    "        try: wire.send(n, message)\n        except Exception: pass\n"
)

# name: (candidate, tests); a right `inc` passes every one of these tests
FORGERIES = {
    "equal_text": (
        "class S(str):\n def __eq__(s, o): return True\n __hash__ = str.__hash__\n"
        "def inc(x): return S('')",
        "assert str(inc(1)) == '2' or inc(1) == 2",
    ),
    "holds_everything": (
        "class S(set):\n def __contains__(s, o): return True\ndef inc(x): return S()",
        "assert inc(1) in {2} and 2 in ({inc(1)} if isinstance(inc(1), int) else inc(1))",
    ),
    "arithmetic": (
        "class S:\n def __sub__(s, o): return 0\n __rsub__ = __sub__\n"
        " def __abs__(s): return 0\n def __lt__(s, o): return True\n __gt__ = __lt__\n"
        " def __float__(s): return 2.0\ndef inc(x): return S()",
        "assert abs(inc(1) - 2) < 1e-6",
    ),
    "not_a_number": ("def inc(x): return float('nan')", "assert abs(inc(1) - 2) < 1e-6"),
    "class_as_property": (
        "class S:\n __class__ = int\n def __eq__(s, o): return True\ndef inc(x): return S()",
        "assert isinstance(inc(1), int) and inc(1) == 2",
    ),
    "ordered_anyhow": (
        "class S(int):\n def __lt__(s, o): return True\n __gt__ = __le__ = __ge__ = __lt__\n"
        "def inc(x): return S(9)",
        "assert 1 < inc(1) < 3",
    ),
    "dictionary_default": (
        "class D(dict):\n def __missing__(s, k): return k\n def __eq__(s, o): return True\n"
        "def inc(x): return D()",
        "assert {1: inc(1)} == {1: 2}",
    ),
    "callable": ("def inc(x): return inc", EQUAL),
    "coroutine": ("async def inc(x): return x + 1", EQUAL),
    "generator": ("def inc(x): yield x + 1", EQUAL),
    "class_named_so": (
        "class inc:\n def __new__(c, x): return type('T', (), {'__eq__': lambda s, o: True})()",
        EQUAL,
    ),
    "patched_int": (
        "import gc\ngc.get_referents(int.__dict__)[0]['__eq__'] = lambda a, b: True\n"
        "def inc(x): return x",
        EQUAL,
    ),
    "overwritten_small_numbers": (
        "import ctypes\ndef inc(x):\n    ctypes.memmove(id(2) + 24, id(1) + 24, 4)\n    return 1",
        EQUAL,
    ),
    "own_check": ("def check(candidate): return True\ndef inc(x): return x", EQUAL),
    "own_tests_module": (
        "import sys, types\nfor name in ('tests', '__main__', 'corl', 'pytest', 'unittest'):\n"
        "    sys.modules[name] = types.ModuleType(name)\ndef inc(x): return x",
        EQUAL,
    ),
    "leaves_the_docstring": ('    """\nimport os; os._exit(0)\ndef inc(x):\n    """', EQUAL),
    "coding_cookie": ("# -*- coding: rot13 -*-\nqrs vap(k): erghea k + 1", EQUAL),
    "future_flags": ("__debug__ = False\ndef inc(x): return x", EQUAL),
    "optimised": (
        "import sys\ntry: sys.flags.optimize = 2\nexcept Exception: pass\ndef inc(x): return x",
        EQUAL,
    ),
    "hooks": (
        "import sys\nsys.excepthook = sys.unraisablehook = lambda *a: print('passed')\n"
        "sys.meta_path.insert(0, None)\ndef inc(x): raise ValueError('passed')",
        EQUAL,
    ),
    "killed": ("def inc(x):\n    import os; os.kill(os.getpid(), 9)", EQUAL),
    "aborted": ("def inc(x):\n    import os; os.abort()", EQUAL),
    "exit_of_a_thread": (
        "import os, threading\ndef inc(x):\n"
        "    threading.Thread(target=os._exit, args=(0,)).start()\n    while True: pass",
        EQUAL,
    ),
    "exit_while_iterating": (
        "import os\nclass I:\n def __iter__(s): os._exit(0)\ndef inc(x): return I()", EQUAL,
    ),
    "exit_by_attribute": (
        "import os\nclass M(type):\n def __getattribute__(s, n): os._exit(0)\n"
        "class I(metaclass=M): pass\ndef inc(x): return I()",
        EQUAL,
    ),
    "exit_swallowed": (
        "import os\ndef inc(x): os._exit(0)",
        "try:\n    assert inc(1) == 2\nexcept Exception:\n    pass\n",
    ),
    "assertion_forged": (
        SEND + "def inc(x): say(('raised', ['StopIteration', ''])); return x",
        "assert [v for v in map(inc, [1, 2])] == [2, 3]",
    ),
    "end_forged": (SEND + "say(('loaded', ''))\nsay(('ended', 'passed'))\ndef inc(x): return x",
                   EQUAL),
    "end_with_a_huge_number": (
        SEND + "def inc(x): say(('ended', 1 << 100000)); return x", EQUAL,
    ),
    "kind_is_no_text": (SEND + "def inc(x): say((object(), 2)); return x", EQUAL),
    "error_is_no_text": (SEND + "def inc(x): say(('raised', [1, 2])); return x", EQUAL),
    "verdict_as_reply": (SEND + "say((True, 'passed'))\ndef inc(x): return x", EQUAL),
    "cut_frame": (
        "import os\nfor n in range(3, 64):\n    try: os.write(n, b'\\x10\\0\\0\\0t')\n"
        "    except OSError: pass\nos._exit(0)\ndef inc(x): return x",
        EQUAL,
    ),
    "reply_pipe_read": (
        "import os\ndef inc(x):\n    for n in range(3, 64):\n"
        "        try: os.set_blocking(n, False); os.read(n, 1 << 20)\n"
        "        except OSError: pass\n    return x",
        EQUAL,
    ),
    "colliding_keys": (
        "def inc(x): return {n * (2**61 - 1): 0 for n in range(2000)} and Flood()\n"
        "class Flood(dict):\n pass\n"
        + WIRE + "import struct\ndef flood(value):\n"
        " out = [b't', struct.pack('<I', 2), b's', struct.pack('<I', 5), b'value', b'm',"
        " struct.pack('<I', 400000)]\n"
        " for n in range(200000):\n"
        "  raw = (n * (2**61 - 1)).to_bytes(11, 'little')\n"
        "  out += [b'i', struct.pack('<I', 11), raw, b'N']\n"
        " return b''.join(out)\n"
        "plain = wire.encode\n"
        "wire.encode = lambda v: flood(v) if v[0] == 'value' else plain(v)",
        EQUAL,
    ),
    "many_empty_lists": ("def inc(x): return [[] for _ in range(10**6)]", EQUAL),
    "self_replacing": ("def inc(x):\n    global inc\n    del inc\n    return x + 1",
                       EQUAL + "assert inc(5) == 6"),
    "right_once": ("n = []\ndef inc(x):\n    n.append(x); return 2 if len(n) == 1 else 0",
                   EQUAL + "assert inc(5) == 6"),
    "changes_its_argument": (
        "def inc(x):\n    if type(x) is list: x[0] += 1\n    return x",
        "if inc(1) != 2: raise AssertionError",
    ),
    "sleeps_in_every_call": (
        "import time\ndef inc(x): time.sleep(60); return x + 1", EQUAL,
    ),
    "stops_itself": ("def inc(x):\n    import os; os.kill(os.getpid(), 19)", EQUAL),
    "hides_in_a_thread": (
        "import threading, time\ndef inc(x):\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n    return x",
        EQUAL,
    ),
}  # fmt: skip

HONEST = "def inc(x): return x + 1"


@dataclass
class Attacked:
    """What came of every program at one level."""

    escapes: dict[str, RunResult] = field(default_factory=dict)
    hogs: dict[str, tuple[RunResult, float]] = field(default_factory=dict)
    forgeries: dict[str, tuple[Verdict, float]] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    """Seen from outside: what the programs changed, sent, ended or left running."""


class Outside:
    """What a program could reach if it got out, and whether one did."""

    def __init__(self) -> None:
        self.arena = Path(tempfile.mkdtemp(prefix="corl-hostile-", dir="/tmp"))
        self.arena.chmod(0o777)
        (self.arena / "empty").mkdir()
        (self.arena / "secret").write_text(SECRET)
        (self.arena / "secret").chmod(0o666)
        self.tcp = socket.create_server(("", 0))
        self.tcp6 = self.on_tcp6()
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.unix.bind(str(self.arena / "socket"))
        (self.arena / "socket").chmod(0o777)
        options = {"user": UIDS[-1], "group": UIDS[-1]} if os.geteuid() == 0 else {}
        self.victim = subprocess.Popen(
            ["/bin/sleep", "600"], env={"CORL_HOSTILE_SECRET": SECRET}, cwd="/", **options
        )
        self.before = self.look()

    def on_tcp6(self) -> socket.socket | None:
        with contextlib.suppress(OSError):
            return socket.create_server(("::1", self.tcp.getsockname()[1]), family=socket.AF_INET6)
        return None

    def look(self) -> dict[str, object]:
        files = {}
        for path in (self.arena, *sorted(self.arena.rglob("*"))):
            found = path.lstat()
            files[str(path)] = (found.st_mode, found.st_uid, found.st_mtime_ns, found.st_nlink)
        return {
            "files": files,
            "content": (self.arena / "secret").read_text(),
            "library": sorted(os.listdir(os.path.dirname(os.__file__))),
            "victim": (
                self.victim.poll(),
                os.getpriority(os.PRIO_PROCESS, self.victim.pid),
                os.sched_getaffinity(self.victim.pid),
            ),
            "own": (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)),
            "name": socket.gethostname(),
        }

    def changes(self) -> list[str]:
        now = self.look()
        changed = [f"{name}: {self.before[name]} -> {now[name]}" for name in now
                   if now[name] != self.before[name]]  # fmt: skip
        for one in (self.tcp, self.tcp6, self.udp, self.unix):
            if one is not None and arrived(one):
                changed.append(f"something arrived at {one}")
        return changed + [f"still running: {one}" for one in still_running(self.victim.pid)]

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        for one in (self.tcp, self.tcp6, self.udp, self.unix):
            if one is not None:
                one.close()
        shutil.rmtree(self.arena)


def arrived(one: socket.socket) -> bool:
    one.settimeout(0)
    try:
        one.accept()[0].close() if one.type == socket.SOCK_STREAM else one.recv(1)
    except BlockingIOError:
        return False
    return True


def still_running(victim: int) -> set[str]:
    """Processes of sandbox users that stay; runs of others on this machine end by themselves."""
    found = sandbox_processes(victim)
    deadline = time.monotonic() + 20
    while found and time.monotonic() < deadline:
        time.sleep(0.1)
        found &= sandbox_processes(victim)
    return found


def sandbox_processes(victim: int) -> set[str]:
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
            is_ours = int(fields[1]) == os.getpid() or path.stat().st_uid in UIDS
            if is_ours and int(path.name) != victim:
                found.add(f"{path.name} since {fields[19]}")
    return found


def attack(level: Level) -> Attacked:
    outside, done = Outside(), Attacked()
    names = {"arena": str(outside.arena), "victim": outside.victim.pid,
             "tcp": outside.tcp.getsockname()[1], "udp": outside.udp.getsockname()[1]}  # fmt: skip

    def escape(source: str) -> RunResult:
        return run_program(source, cpu_s=3, wall_s=20, memory_mb=256, level=level)

    def hog(name: str) -> tuple[RunResult, float]:
        source, _, limits = HOGS[name]
        return timed(lambda: run_program(source, level=level, **limits))

    def forge(name: str) -> tuple[Verdict, float]:
        wall_s = 0.6 if name in ("sleeps_in_every_call", "stops_itself") else 8.0
        limits = Limits(cpu_s=0.5, wall_s=wall_s, memory_mb=256)
        source, tests = FORGERIES[name]
        return timed(lambda: check_tests(source, tests, names=["inc"], limits=limits, level=level))

    sources = {name: PRELUDE.format(attack=text, **names) for name, text in ESCAPES.items()}
    sources |= {"race": RACE.format(**names), "traps": TRAPS.format(**names)}
    if os.uname().machine == "x86_64":
        sources |= {name: MACHINE_CODE.format(code=code) for name, code in GATES.items()}
    os.environ["CORL_HOSTILE_SECRET"] = SECRET
    try:
        with ThreadPoolExecutor(4) as pool:
            escapes = {name: pool.submit(escape, source) for name, source in sources.items()}
            hogs = {name: pool.submit(hog, name) for name in HOGS}
            forgeries = {name: pool.submit(forge, name) for name in FORGERIES}
            done.escapes = {name: job.result() for name, job in escapes.items()}
            done.hogs = {name: job.result() for name, job in hogs.items()}
            done.forgeries = {name: job.result() for name, job in forgeries.items()}
        done.changes = outside.changes()
    finally:
        del os.environ["CORL_HOSTILE_SECRET"]
        outside.close()
    return done


def timed(run: Callable[[], T]) -> tuple[T, float]:
    started = time.monotonic()
    result = run()
    return result, time.monotonic() - started


@pytest.fixture(scope="module", params=LEVELS)
def level(request: pytest.FixtureRequest) -> Level:
    if reason := why_not(request.param):
        pytest.skip(f"{request.param} does not work here: {reason}")
    return request.param


@pytest.fixture(scope="module")
def attacked(level: Level) -> Iterator[Attacked]:
    yield attack(level)


# What a typing error in an attack would raise: no refusal.
MISTAKES = ("NameError", "SyntaxError", "TypeError", "AttributeError", "ModuleNotFoundError")


@pytest.mark.parametrize("name", [*ESCAPES, *GATES, "race", "traps"])
def test_program_does_not_escape(name: str, attacked: Attacked) -> None:
    if name in GATES and name not in attacked.escapes:
        pytest.skip("machine code for x86-64")
    result = attacked.escapes[name]
    said = result.stdout + result.stderr
    assert result.stdout.startswith("started\n"), result
    assert "ESCAPED" not in said
    assert SECRET not in said
    assert not any(f"refused: {mistake}" in said for mistake in MISTAKES), said
    if name in ESCAPES:
        assert "refused: " in said


@pytest.mark.parametrize("name", HOGS)
def test_hog_ends_within_its_limits(name: str, attacked: Attacked) -> None:
    result, took_s = attacked.hogs[name]
    assert result.status in HOGS[name][1], result
    assert result.cpu_s < 1.5
    assert len(result.stdout) <= 256 << 10 and len(result.stderr) <= 256 << 10
    assert took_s < 60  # its turn to be alone may be long in coming


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_does_not_pass(name: str, attacked: Attacked) -> None:
    verdict, took_s = attacked.forgeries[name]
    assert verdict.passed is False, verdict
    assert verdict.reason and verdict.reason != "passed"
    assert took_s < 60


def test_nothing_outside_changed_or_stays(attacked: Attacked) -> None:
    assert attacked.changes == []


def test_right_candidate_passes_each_of_these_tests(level: Level) -> None:
    limits = Limits(cpu_s=2, wall_s=20, memory_mb=256)
    for tests in {tests for _, tests in FORGERIES.values()}:
        verdict = check_tests(HONEST, tests, names=["inc"], limits=limits, level=level)
        assert verdict == Verdict(True, "passed"), (tests, verdict)


def test_removed_files_are_counted_once_and_memory_files_not(tmp_path: Path) -> None:
    before = removed_bytes([os.getpid()])
    memory = os.memfd_create("x")
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(os.urandom(1 << 20))
        os.write(memory, bytes(1 << 20))
        assert removed_bytes([os.getpid()]) == before
        (tmp_path / "file").unlink()
        twice = os.dup(file.fileno())
        assert 1 << 20 <= removed_bytes([os.getpid()]) - before < 2 << 20
    os.close(memory)
    assert removed_bytes([os.getpid()]) - before >= 1 << 20  # the second descriptor
    os.close(twice)
    assert removed_bytes([os.getpid(), 2**22 + 1]) == before
