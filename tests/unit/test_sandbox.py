"""Hostile programs: none escapes, none outlives its limit, at each isolation level.

A program prints ESCAPED when its attack worked. Files under test are readable and
writable by everybody, so that only the sandbox can refuse.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from corl.evaluation.sandbox import (
    Level,
    RunResult,
    SandboxError,
    describe,
    isolation_level,
    run_calls,
    run_program,
)
from corl.evaluation.sandbox import levels as levels_module
from corl.evaluation.sandbox.levels import choose_level, why_not
from corl.evaluation.sandbox.workspace import UIDS

SECRET = "the-secret-9421"
SOURCE_ROOT = Path(__file__).parents[2] / "src"


@pytest.fixture(params=["landlock", "bubblewrap"])
def level(request: pytest.FixtureRequest) -> Level:
    if reason := why_not(request.param):
        pytest.skip(f"{request.param} does not work here: {reason}")
    return request.param


ESCAPES = {
    "inherited_files": "[os.fstat(n) for n in range(3, 64) if try_fstat(n)][0]",
    "write_outside": "open(ARENA + '/new', 'w').write('x')",
    "append_outside": "open(ARENA + '/secret', 'a').write('x')",
    "truncate_outside": "os.truncate(ARENA + '/secret', 0)",
    "remove_outside": "os.remove(ARENA + '/secret')",
    "rename_outside": "os.rename(ARENA + '/secret', ARENA + '/other')",
    "make_dir_outside": "os.mkdir(ARENA + '/dir')",
    "write_beside": "open(os.path.dirname(os.getcwd()) + '/beside', 'w').write('x')",
    "read_secret": "print(open(ARENA + '/secret').read())",
    "read_passwd": "open('/etc/passwd').read()",
    "list_outside": "os.listdir(ARENA)",
    "list_tmp": "assert len(os.listdir('/tmp')) > 1",
    "write_shared_memory": "open('/dev/shm/x', 'w').write('x')",
    "write_root": "open('/x', 'w').write('x')",
    "read_parent_environ": "open(f'/proc/{os.getppid()}/environ').read()",
    "write_parent_memory": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
    "environment": "assert os.environ.get('CORL_TEST_SECRET') or len(os.environ)",
    "symlink_read": "os.symlink(ARENA + '/secret', 'l'); print(open('l').read())",
    "symlink_write": "os.symlink(ARENA, 'd'); open('d/new', 'w').write('x')",
    "hard_link": "os.link(ARENA + '/secret', 'h'); print(open('h').read())",
    "chmod_outside": "os.chmod(ARENA + '/secret', 0)",
    "chown_outside": "os.chown(ARENA + '/secret', os.getuid(), -1)",
    "touch_outside": "os.utime(ARENA + '/secret', (0, 0))",
    "become_root": "os.setuid(0)",
    "keep_groups": "assert 0 in os.getgroups()",
    "tcp": "socket.create_connection(('127.0.0.1', TCP), 1)",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', TCP))",
    "listen": "socket.socket().bind(('127.0.0.1', 0))",
    "unix_socket": "socket.socket(socket.AF_UNIX).connect(ARENA + '/socket')",
    "abstract_socket": "socket.socket(socket.AF_UNIX).bind('\\0corl-test')",
    "socket_pair": "socket.socketpair()",
    "signal_parent": "os.kill(os.getppid(), 15)",
    "signal_everyone": "os.kill(-1, 9)",
    "signal_group_of_parent": "os.killpg(os.getpgid(os.getppid()), 15)",
    "signal_by_owner": "r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())",
    "limit_parent": "resource.prlimit(os.getppid() or 2**22, resource.RLIMIT_CPU, (0, 0))",
    "lift_own_limit": "resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))",
    "fork": "os.fork()",
    "exec": "os.execv('/bin/sh', ['sh', '-c', 'echo ESCAPED'])",
    "shell": "assert os.system('true') == 0",
    "spawn": "subprocess.run(['/bin/true'])",
    "daemon": "\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  time.sleep(9)\n",
    "new_session": "os.setsid()",
    "ptrace_parent": "ctypes_call('ptrace', 16, os.getppid(), 0, 0)",
    "read_parent_memory": "ctypes_call('process_vm_readv', os.getppid(), 0, 0, 0, 0, 0)",
    "new_user_namespace": "ctypes_call('unshare', 0x10000000)",
    "mount": "ctypes_call('mount', b'none', os.getcwd().encode(), b'tmpfs', 0, 0)",
    "chroot": "os.chroot('.')",
    "memory_file": "os.memfd_create('x')",
    "shared_memory": "ctypes_call('shmget', 0, 4096, 0o1600)",
    "death_signal": "ctypes_call('prctl', 1, 0, 0, 0, 0)",
    "io_uring": "ctypes_call('syscall', 425, 1, 0)",
    "keyring": "ctypes_call('syscall', 250, 0, -3, 1)",
    "large_file": "open('big', 'wb').write(bytes(40 << 20))",
    "many_descriptors": "kept = [open('/dev/null') for _ in range(200)]",
}

PRELUDE = """
import ctypes, fcntl, os, resource, signal, socket, subprocess, sys, time
ARENA, TCP = {arena!r}, {port}
def ctypes_call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")
def try_fstat(number):
    try:
        return os.fstat(number)
    except OSError:
        return None
"""


RUN_ALL = """
for name, attack in ATTACKS.items():
    try:
        exec(attack)
    except Exception as error:
        print(name, "refused:", type(error).__name__, error, flush=True)
    else:
        print(name, "ESCAPED", flush=True)
"""


@pytest.fixture(scope="module")
def attacked() -> dict[Level, tuple[RunResult, dict[str, str], list[str]]]:
    """Per level: the run of all attacks in one program, its lines, and what changed outside."""
    return {name: attack_all(name) for name in ("landlock", "bubblewrap") if not why_not(name)}


def attack_all(level: Level) -> tuple[RunResult, dict[str, str], list[str]]:
    arena = make_arena()
    listener, local = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
    local.bind(str(arena / "socket"))
    local.listen()
    (arena / "socket").chmod(0o777)
    before = [(arena / "secret").stat(), (arena / "secret").read_text(), os.listdir(arena)]
    prelude = PRELUDE.format(arena=str(arena), port=listener.getsockname()[1])
    os.environ["CORL_TEST_SECRET"] = SECRET
    try:
        source = f"{prelude}\nATTACKS = {ESCAPES!r}\n{RUN_ALL}"
        result = run_program(source, cpu_s=5, level=level, memory_mb=256)
        changed = [] if arrived(listener) + arrived(local) == 0 else ["a connection arrived"]
        after = [(arena / "secret").stat(), (arena / "secret").read_text(), os.listdir(arena)]
        for old, new in zip(before, after, strict=True):
            if (getattr(old, "st_mode", old), getattr(old, "st_mtime", 0)) != (
                getattr(new, "st_mode", new), getattr(new, "st_mtime", 0),
            ):  # fmt: skip
                changed.append(f"{old} became {new}")
    finally:
        del os.environ["CORL_TEST_SECRET"]
        listener.close()
        local.close()
        shutil.rmtree(arena)
    lines = dict(line.split(" ", 1) for line in result.stdout.splitlines() if " " in line)
    return result, lines, changed


def make_arena() -> Path:
    """Make a directory that every user may change, with a secret that every user may read."""
    directory = Path(tempfile.mkdtemp(prefix="corl-arena-", dir="/tmp"))
    directory.chmod(0o777)
    (directory / "secret").write_text(SECRET)
    (directory / "secret").chmod(0o666)
    return directory


def arrived(listener: socket.socket) -> int:
    listener.settimeout(0)
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return 0
    return 1


@pytest.mark.parametrize("name", ESCAPES)
def test_attack_is_refused(name: str, level: Level, attacked: dict) -> None:
    assert attacked[level][1].get(name, "was not reached").startswith("refused"), attacked[level]


def test_attacks_change_and_show_nothing_outside(level: Level, attacked: dict) -> None:
    result, _, changed = attacked[level]
    assert changed == []
    assert result.status == "ok"
    assert SECRET not in result.stdout + result.stderr


# name: (program, the statuses that may end it)
BOMBS = {
    "busy_loop": ("while True:\n    pass", {"timeout"}),
    "busy_threads": (
        "import threading\ndef f():\n while True: pass\n"
        "for _ in range(4): threading.Thread(target=f).start()",
        {"timeout"},
    ),
    "fork_bomb": ("import os\nwhile True:\n os.fork()", {"error"}),
    "stubborn_fork_bomb": (
        "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
        {"timeout"},
    ),
    "thread_bomb": (
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        {"error", "memory", "timeout"},
    ),
    "memory_at_once": ("x = bytearray(10**10)", {"memory"}),
    "memory_piecewise": ("x = []\nwhile True: x.append(bytes(1 << 20))", {"memory"}),
    "memory_stubborn": (
        "x = []\nwhile True:\n try: x.append(bytearray(1 << 22))\n except MemoryError: pass",
        {"timeout"},
    ),
    "endless_output": ("while True: print('x' * 1000)", {"output_limit"}),
    "endless_errors": (
        "import sys\nwhile True: print('x' * 1000, file=sys.stderr)",
        {"output_limit"},
    ),
    "swallowed_signals": (
        "import signal\nfor s in set(signal.Signals) - {9, 19}:\n"
        " try: signal.signal(s, signal.SIG_IGN)\n except (OSError, ValueError): pass\n"
        "signal.alarm(0)\nwhile True:\n try:\n  while True: pass\n except BaseException: pass",
        {"timeout"},
    ),
    "huge_power": ("x = 2 ** 30 ** 5\nprint(len(str(x)))", {"error", "timeout"}),
    "huge_power_as_text": (
        "import sys\ngetattr(sys, 'set_int_max_str_digits', id)(0)\nprint(str(2 ** 30 ** 5))",
        {"timeout", "memory"},
    ),
    "power_tower": ("9 ** 9 ** 9", {"timeout", "memory"}),
    "recursion": ("def f(n): return f(n + 1)\nf(0)", {"error"}),
    "unlimited_recursion": (
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nf(0)",
        {"error", "memory", "timeout"},
    ),
    "deep_repr": (
        "import sys\nsys.setrecursionlimit(10**9)\nx = []\nfor _ in range(10**6): x = [x]\nrepr(x)",
        {"error", "memory", "timeout"},
    ),
    "deep_source": ("(" * 5000 + ")" * 5000, {"error", "memory"}),
    "regex": ("import re\nre.match('(a*)*b', 'a' * 40)", {"timeout"}),
    "crash": ("import ctypes\nctypes.string_at(0)", {"error"}),
    "many_files": ("for n in range(10**6): open(str(n), 'w').close()", {"output_limit"}),
    "full_disk": (
        "import itertools\nfor n in itertools.count(): open(str(n), 'wb').write(bytes(1 << 22))",
        {"output_limit"},
    ),
    "deep_directories": (
        "import os\nfor _ in range(100): os.mkdir('d'); os.chdir('d')\nos.mkdir('last', 0)",
        {"ok", "output_limit"},
    ),
    "locked_directory": (
        "import os\nos.mkdir('d'); open('d/f', 'w').close()\nos.mkdir('e', 0o000)",
        {"ok"},
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_ends_within_its_limits(name: str, level: Level) -> None:
    source, allowed = BOMBS[name]
    started = time.monotonic()
    result = run_program(source, cpu_s=0.4, wall_s=10, memory_mb=128, level=level)
    assert result.status in allowed, result
    assert result.cpu_s < 1.5
    assert time.monotonic() - started < 20
    assert len(result.stdout) <= 256 << 10


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(60)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nsignal.pause()",
    ],
    ids=["sleeper", "stopped"],
)
def test_sleeper_is_ended_by_the_wall_after_one_retry(source: str, level: Level) -> None:
    started = time.monotonic()
    result = run_program(source, cpu_s=2, wall_s=0.4, level=level)
    assert result.status == "timeout"
    assert result.cpu_s < 0.4
    assert 0.8 <= time.monotonic() - started < 6


def test_nothing_is_left_behind(level: Level) -> None:
    zombies = count_zombies()
    source = "import os, time\nprint(os.getcwd(), flush=True)\nos.mkdir('d')\ntime.sleep(60)"
    result = run_program(source, wall_s=0.3, level=level)
    directory = Path(result.stdout.strip())
    assert directory.parent.name.startswith("corl-sandbox-")
    assert not directory.parent.exists()
    with pytest.raises(ChildProcessError):  # no zombie, and nothing running
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    deadline = time.monotonic() + 2  # other runs on this machine may be ending just now
    while count_zombies() > zombies and time.monotonic() < deadline:
        time.sleep(0.05)
    assert count_zombies() <= zombies


def count_zombies() -> int:
    """Count zombies of sandbox uids on the whole machine, orphans included."""
    count = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid in UIDS:
                count += ") Z" in (path / "stat").read_text()
        except OSError:
            continue
    return count


def test_honest_program_gets_its_input_and_its_output_back(level: Level) -> None:
    source = "import sys, math, json, collections, decimal\nprint(sum(map(int, sys.stdin)))\nexit()"
    result = run_program(source, stdin="3\n4\n5\n", level=level)
    assert (result.status, result.stdout, result.stderr) == ("ok", "12\n", "")
    assert 0 < result.cpu_s < 2


def test_threads_and_own_files_are_allowed(level: Level) -> None:
    source = (
        "import threading, os\ndef f(): open('a', 'w').write('7')\n"
        "t = threading.Thread(target=f); t.start(); t.join()\n"
        "os.mkdir('d'); os.rename('a', 'd/b'); print(open('d/b').read())\n"
    )
    assert run_program(source, level=level).stdout == "7\n"


def test_exit_code_and_exception_are_errors(level: Level) -> None:
    assert run_program("import sys; sys.exit(3)", level=level).status == "error"
    result = run_program("1 / 0", level=level)
    assert result.status == "error"
    assert "ZeroDivisionError" in result.stderr


def test_set_order_is_the_same_in_every_run(level: Level) -> None:
    source = "print({'a', 'b', 'c', 'd'}, hash('x'))"
    assert len({run_program(source, level=level).stdout for _ in range(3)}) == 1


def test_any_text_is_a_program_that_ends() -> None:
    for source in ("", "\0", "\ud800", "def", "\ufeffprint(1)", "x = '\udcff'"):
        assert run_program(source, minimum="limits").status in ("ok", "error")


def test_calls_return_plain_values(level: Level) -> None:
    source = (
        "import sys\nclass Solution:\n    def twice(self, x): return x * 2\n"
        "def pair(a, b): return (a, [b])\n"
        "def bad(): raise KeyError('k')\ndef leave(): sys.exit(0)\n"
        "class Same:\n    __eq__ = lambda self, other: True\ndef same(): return Same()\n"
    )
    calls = [("pair", (1, 2.5)), ("Solution.twice", ("ab",)), ("bad", ()), ("nothing", ()),
             ("same", ()), ("leave", ()), ("pair", (1, 2))]  # fmt: skip
    outcomes = run_calls(source, calls, level=level)
    assert outcomes[0].value == (1, [2.5])
    assert outcomes[1].value == "abab"
    assert outcomes[2].kind == "raised" and "KeyError" in outcomes[2].value
    assert outcomes[3].kind == "raised" and "NameError" in outcomes[3].value
    assert outcomes[4].value != 1 and outcomes[4].value != "anything"
    assert [outcome.kind for outcome in outcomes[5:]] == ["none", "none"]


def test_level_and_interpreter_are_named() -> None:
    report = describe()
    assert report.level == isolation_level()
    assert Path(report.interpreter).is_file()
    assert any(report.interpreter in line for line in report.lines())
    assert report.own_uid == (os.geteuid() == 0)


def test_interpreter_under_a_private_home_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from corl.evaluation.sandbox.interpreter import find_interpreter

    if os.geteuid() != 0:
        pytest.skip("only a root parent runs candidates as another user")
    private = tmp_path / "home"
    private.mkdir(mode=0o700)
    (private / "python3").symlink_to(sys.executable)
    copy = private / "python"
    copy.write_bytes(Path(os.path.realpath(sys.executable)).read_bytes())
    copy.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(copy))
    try:
        find_interpreter.cache_clear()
        assert find_interpreter().path != str(copy)
    finally:
        find_interpreter.cache_clear()


def test_weaker_isolation_than_required_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {"limits": "", "landlock": "kernel 4.4 has none", "bubblewrap": "not installed"}
    monkeypatch.setattr(levels_module, "why_not", reasons.__getitem__)
    assert choose_level(None, "limits") == "limits"
    with pytest.raises(SandboxError, match=r"'landlock' is required.*'limits'.*kernel 4\.4"):
        choose_level(None, "landlock")
    with pytest.raises(SandboxError, match="not installed"):
        choose_level("bubblewrap", "limits")
    with pytest.raises(SandboxError, match="no isolation level"):
        choose_level("docker", "limits")  # type: ignore[arg-type]


def test_lockdown_failure_is_an_error_and_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from corl.evaluation.sandbox import launcher

    monkeypatch.setattr(launcher, "build_filter", lambda: [(0xFFFF, 0, 0, 0)])
    if why_not("landlock"):
        pytest.skip(why_not("landlock"))
    with pytest.raises(SandboxError, match="could not be locked down"):
        run_program("print('ESCAPED')", level="landlock")


def test_limits_must_be_positive() -> None:
    with pytest.raises(ValueError, match="cpu_s"):
        run_program("", cpu_s=0, minimum="limits")


AS_NOBODY = """
import os, sys
from corl.evaluation.sandbox import run_program, check_humaneval, isolation_level, LEVELS
from corl.evaluation.sandbox.levels import why_not
assert os.getuid() == 65534
for level in LEVELS[1:]:
    if why_not(level):
        print("skipped", level, why_not(level)); continue
    assert run_program("print(1)", level=level).stdout == "1\\n"
    for attack in ("open('/etc/passwd')", "os.kill(os.getppid(), 15)", "os.fork()",
                   "open('/proc/%d/environ' % os.getppid())", "socket.socket()",
                   "os.chmod(sys.argv[0] and '%s', 0)" % sys.argv[1]):
        result = run_program("import os, socket, sys\\n" + attack, level=level)
        assert result.status == "error", (level, attack, result)
    assert check_humaneval("def f():\\n", "    return 1", "def check(c): assert c() == 1", "f",
                           level=level).passed
    print("held", level)
"""


def test_sandbox_holds_without_root(tmp_path: Path) -> None:
    from corl.evaluation.sandbox.interpreter import find_interpreter

    if os.geteuid() != 0:
        pytest.skip("the other tests already run without root")
    target = Path("/tmp") / f"corl-own-{os.getpid()}"
    target.write_text("x")
    os.chown(target, 65534, 65534)
    try:
        done = subprocess.run(
            [find_interpreter().path, "-c", AS_NOBODY, str(target)],
            env={"PYTHONPATH": str(SOURCE_ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd="/", user=65534, group=65534, extra_groups=[], capture_output=True, text=True,
        )  # fmt: skip
        if "No module named 'corl'" in done.stderr:
            pytest.skip("another user cannot read this checkout")
        assert done.returncode == 0, done.stderr
        assert target.stat().st_mode & 0o777
        held = [line for line in done.stdout.splitlines() if line.startswith("held")]
        assert held, done.stdout
    finally:
        target.unlink()


@pytest.mark.skipif(bool(why_not("landlock")), reason=why_not("landlock"))
def test_a_kill_is_no_sign_of_memory_however_large_the_caller_is():
    """A child's peak memory starts at its parent's."""
    ballast = bytearray(600 << 20)
    result = run_program("import os\nos.kill(os.getpid(), 9)", level="landlock")
    assert len(ballast) and result.status == "error"
