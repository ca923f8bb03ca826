"""The sandbox's pure parts: assembling completions, the wire, the filter, removal, the gate."""

import os
import random
import struct
import threading
import time
from pathlib import Path

import pytest

from corl.evaluation.sandbox.assemble import assemble, compiles, stub
from corl.evaluation.sandbox.child.wire import MAX_DEPTH, Opaque, WireError, decode, encode
from corl.evaluation.sandbox.program import _Gate
from corl.evaluation.sandbox.seccomp import OWN_PID, build_filter
from corl.evaluation.sandbox.workspace import exceeds, open_workspace

PROMPT = "import math\n\n\ndef half(x):\n    return x / 2\n\n\ndef area(r):\n    '''Area.'''\n"


@pytest.mark.parametrize(
    "completion",
    [
        "    return math.pi * half(r) * 2 * r\n",
        "def area(r):\n    return math.pi * half(r) * 2 * r\n",
        "```python\ndef area(r):\n    return math.pi * half(r) * 2 * r\n```",
        PROMPT + "    return math.pi * half(r) * 2 * r\n",
    ],
    ids=["body", "whole", "fenced", "prompt_again"],
)
def test_completion_keeps_the_prompts_imports_and_helpers(completion: str) -> None:
    space: dict = {}
    exec(assemble(PROMPT, completion, "area"), space)
    assert space["area"](2) == pytest.approx(12.566370614)


def test_text_after_the_body_is_cut_and_code_before_it_is_kept() -> None:
    completion = "    x = 2\n    return x\n\nNote: this is (unbalanced prose\n"
    source = assemble(PROMPT, completion, "area")
    assert source == PROMPT + "    x = 2\n    return x\n\n"


def test_hopeless_completion_is_returned_and_does_not_compile() -> None:
    assert not compiles(assemble(PROMPT, "    return (\n", "area"))
    assert stub("This is prose, no module:") == ""


HOSTILE_SOURCES = [
    "(" * 60_000, "-" * 60_000 + "1", "1" + "+1" * 60_000, "a" + ".b" * 60_000,
    "lambda:" * 20_000 + "1", "not " * 40_000 + "1", "f" + "()" * 60_000, "x=" * 60_000 + "1",
    "a if b else " * 15_000 + "1", "if 1:pass\n" + "elif 1:pass\n" * 15_000, "\0", "\ud800",
    "\n".join(" " * depth + "if 1:" for depth in range(500)), "x = '" + "a" * 300_000 + "'",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE_SOURCES)))
def test_hostile_source_neither_crashes_nor_hangs_the_parent(number: int) -> None:
    started = time.monotonic()
    assert isinstance(compiles(HOSTILE_SOURCES[number]), bool)
    assemble(PROMPT, HOSTILE_SOURCES[number], "area")
    assert time.monotonic() - started < 15


class _Same(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


def test_only_plain_values_cross_the_wire() -> None:
    assert type(decode(encode(_Same(5)))) is int
    assert decode(encode([_Same(5)])) != [6]
    assert isinstance(decode(encode(object())), Opaque)
    assert decode(encode(object())) != decode(encode(object()))
    assert list(decode(encode(range(3)))) == [0, 1, 2]


def test_malformed_bytes_are_refused_and_execute_nothing() -> None:
    draw = random.Random(0)
    whole = encode({"a": [1, (2.5, None)], "b": {"x", "y"}})
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            decode(bytes(data[: draw.randint(0, len(data))]))
        except WireError:
            continue


def test_wire_depth_is_bounded_both_ways() -> None:
    value: list = []
    for _ in range(MAX_DEPTH + 2):
        value = [value]
    with pytest.raises(WireError, match="deep"):
        encode(value)
    with pytest.raises(WireError, match="deep"):
        decode((b"l" + struct.pack("<I", 1)) * (MAX_DEPTH + 5) + b"N")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filter_jumps_stay_inside_and_it_ends_by_allowing(machine: str) -> None:
    program = build_filter(machine)
    assert program is not None
    for at, (_, yes, no, _) in enumerate(program[:-1]):
        assert at + 1 + max(yes, no) < len(program)
    assert program[-1] == (0x06, 0, 0, 0x7FFF0000)
    assert sum(value == OWN_PID for *_, value in program) == 3
    assert build_filter("riscv64") is None


def decide(machine: str, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Interpret the filter for one call, as the kernel would, for the process with pid 77."""
    arch = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine]
    data = struct.pack("<IIQ6Q", number, arch, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    loaded, at, program = 0, 0, build_filter(machine) or []
    while True:
        code, yes, no, value = program[at]
        value = 77 if value == OWN_PID else value
        if code == 0x06:
            return value
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        else:
            test = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}
            at += yes if test[code] else no
        at += 1


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filter_decides_by_call_and_argument(machine: str) -> None:
    allow, deny, missing = 0x7FFF0000, 0x00050001, 0x00050026
    read, clone, clone3, kill, tgkill, prctl, prlimit, fcntl, socket = {
        "x86_64": (0, 56, 435, 62, 234, 157, 302, 72, 41),
        "aarch64": (63, 220, 435, 129, 131, 167, 261, 25, 198),
    }[machine]
    table = [
        (read, (), allow), (socket, (1, 1), deny), (clone3, (), missing), (500, (), missing),
        (clone, (0x3D0F00,), allow), (clone, (17,), deny), (kill, (77,), allow),
        (kill, (1,), deny), (kill, (2**32 - 1,), deny), (kill, (0,), deny),
        (tgkill, (77, 5), allow), (tgkill, (5, 5), deny),
        (prctl, (15,), allow), (prctl, (1,), deny), (prctl, (22,), deny),
        (prlimit, (0,), allow), (prlimit, (77,), allow), (prlimit, (5,), deny),
        (fcntl, (3, 1), allow), (fcntl, (3, 8), deny), (fcntl, (3, 10), deny),
    ]  # fmt: skip
    for number, arguments, expected in table:
        assert decide(machine, number, arguments) == expected, (number, arguments)


def test_workspace_of_any_shape_is_removed(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    workspace = open_workspace()
    here = os.open(workspace.directory, os.O_RDONLY)
    try:
        for _ in range(40):  # deeper than any path may be long
            os.mkdir("a" * 200, dir_fd=here)
            deeper = os.open("a" * 200, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = deeper
        os.symlink(tmp_path, "link", dir_fd=here)
        os.mkfifo("pipe", dir_fd=here)
        os.mkdir("locked", 0, dir_fd=here)
    finally:
        os.close(here)
    workspace.close()
    assert not workspace.directory.parent.exists()
    assert (tmp_path / "kept").read_text() == "x"


def test_size_of_a_directory_is_bounded(tmp_path: Path) -> None:
    assert not exceeds(tmp_path, num_bytes=10_000, num_files=3)
    (tmp_path / "a").write_bytes(bytes(50_000))
    assert exceeds(tmp_path, num_bytes=10_000, num_files=3)
    for name in "bcd":
        (tmp_path / name).touch()
    assert exceeds(tmp_path, num_bytes=10**9, num_files=3)


def test_one_alone_waits_for_the_others_and_keeps_them_out() -> None:
    gate, seen = _Gate(), []

    def enter(name: str, alone: bool, hold_s: float) -> None:
        with gate.enter(alone=alone):
            seen.append(name)
            time.sleep(hold_s)
            seen.append(f"{name} left")

    plans = [("first", False, 0.3), ("alone", True, 0.2), ("late", False, 0.0)]
    threads = [threading.Thread(target=enter, args=plan) for plan in plans]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert seen == ["first", "first left", "alone", "alone left", "late", "late left"]
