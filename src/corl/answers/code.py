"""Code answers: the program in a completion, and what a program does.

The program is the last fenced block that is one; a fence may miss its partner,
name a language or stand inside a docstring, and there may be none. Two programs
give the same answer when they give the same outputs on the prompt's own example
calls. The outputs that the prompt expects are dropped, so nothing is graded.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from corl.answers.answer import Answer, digest
from corl.answers.completion import completion_body
from corl.answers.driver import DRIVER

MAX_OUTPUT = 1_000
"""Characters of one output that are compared as they are; a longer one by its digest."""

FAILED = "!failed"
"""Stands for the output of a call that raised, never returned or was never reached."""

MAX_FENCES = 1_000
"""Fences read in one text."""

MAX_LINES = 5_000
"""Lines of a text without fences that are read."""

MAX_PARSED = 20_000
"""Longest text, in characters, that is tried as one program before it is cut into lines."""

_FENCE = re.compile(r"(?m)(?P<line>^[ \t>]*)?(?P<mark>`{3,}|~{3,})(?P<info>[^\n`]*)")
_LANGUAGE = re.compile(r"\{?\.?(?:python|py)\d?(?:\.\d+)?\b\}?[ \t]*", re.IGNORECASE)
_LANGUAGE_ALONE = re.compile(r"(?:python|py)\d?", re.IGNORECASE)
_SUBSTANCE = re.compile(r"(?m)^[ \t]*(?:def|class|async|import|from|print|return|for|while|if)\b")
_DEFINES = re.compile(r"(?m)^[ \t]*(?:async[ \t]+def|def|class)[ \t]+(\w+)")
_CODE_LINE = re.compile(
    r"(?:async |def |class |import \w|from [\w.]+ import|@\w|#|if .*:\s*(?:#|$)|for .* in .*:|"
    r"while .*:|try:|with .*:|return\b|print\(|assert |raise |pass$|del |global |"
    r"else:|elif .*:|except\b.*:|finally:|\"\"\"|'''|[)\]}]+|"
    r"[A-Za-z_][\w.]*(?:\[[^\]]*\])?(?:, ?[A-Za-z_]\w*)*(?:: ?[\w\[\], .|]+)? ?"
    r"(?:[-+*/%&|^]|//|\*\*|<<|>>)?=(?!=)"
    r"|[A-Za-z_][\w.]*\()"
)
_OPENS_CODE = re.compile(
    r"(?:async def |def \w+ ?\(|class \w+ ?[(:]|import \w|from [\w.]+ import|@\w+|#!|"
    r"if __name__|print\(|[A-Za-z_]\w*(?:, ?[A-Za-z_]\w*)* = )"
)


class RunLike(Protocol):
    """What a runner returns: how the program ended and what it printed."""

    @property
    def status(self) -> str:
        """ "ok", "error", "timeout", "memory" or "output_limit"."""

    @property
    def stdout(self) -> str:
        """What the program printed, as far as it was kept."""


class _Block(NamedTuple):
    """One fenced block."""

    label: str
    body: str
    is_closed: bool


def read_code(text: str, *, entry_point: str | None = None, truncated: bool = False) -> str | None:
    """The program that a completion gives, without fences and prose; None without one.

    entry_point: a function that the program must define; the last block that does is
    taken. truncated: the completion hit its length cap, so an open block abstains.
    """
    body = completion_body(text, is_code=True)
    if body is None or not body.text:
        return None
    source = _with_indentation(text, body.text).replace("\r\n", "\n")
    truncated = truncated and not body.is_cut
    blocks = fenced_blocks(source)
    if not blocks:
        return None if truncated else _unfenced(source)
    if truncated and not blocks[-1].is_closed:
        return None
    block = _program_block(blocks, entry_point)
    return None if block is None else _finished(block.body)


def fenced_blocks(source: str) -> list[_Block]:
    """The fenced blocks of a text in order, without empty ones.

    A first fence that closes what no fence opened ends a block that the prompt
    opened. Fences inside a docstring belong to the program.
    """
    blocks: list[_Block] = []
    opened: re.Match[str] | None = None
    begins_as_code = _OPENS_CODE.match(source.lstrip("\n")) is not None
    start = scanned = num_double = num_single = 0
    for fence in islice(_FENCE.finditer(source), MAX_FENCES):
        if opened is not None or (begins_as_code and not blocks):
            num_double += source.count('"""', scanned, fence.start())
            num_single += source.count("'''", scanned, fence.start())
        scanned = fence.end()
        if num_double % 2 or num_single % 2:
            continue
        num_double = num_single = 0
        info, begins_line = fence["info"].strip(), fence["line"] is not None
        opens = begins_line or _LANGUAGE_ALONE.fullmatch(info) is not None
        if opened is not None:
            switches = begins_line and _LANGUAGE.match(info) is not None
            if fence["mark"][0] != opened["mark"][0] or (info and not switches):
                continue
            blocks.append(_block(source, opened, fence.start()))
            opened, start = (fence if switches else None), fence.end()
        elif not blocks and not info and begins_as_code:
            blocks.append(_Block("", source[: fence.start()], True))
        elif opens:
            opened, start = fence, fence.end()
    if opened is not None and start < len(source):
        blocks.append(_block(source, opened, None))
    return [block for block in blocks if block.body.strip()]


def normal_source(program: str) -> str:
    """The program without comment lines, blank lines, trailing spaces and tabs."""
    lines = (line.rstrip().expandtabs(4) for line in program.replace("\r\n", "\n").split("\n"))
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


def behaviour(program: str, calls: Sequence[str], run: Callable[[str], RunLike]) -> Answer | None:
    """The answer that a program's outputs on some calls make.

    calls: expressions such as "f(3)"; what an example expects ("f(3) == 6",
    "assert f(3) == 6") is dropped. run: executes the source of a program in a
    sandbox. The text lists the outputs, one a line. None where every call fails,
    or none returns anything: such programs would agree with each other for nothing.
    """
    asked = [call_expression(call) for call in calls]
    if not asked or not program.strip():
        return None
    token = digest(json.dumps([program, asked]))
    source = driver_source(program, asked, token)
    outputs = recorded_outputs(run(source).stdout, token, len(asked))
    if all(output in (FAILED, "None") for output in outputs):
        return None
    text = "\n".join(outputs)
    return Answer.of(text[: 4 * MAX_OUTPUT], "behaviour", digest(json.dumps(outputs)))


def call_expression(call: str) -> str:
    """The call of an example, without prompt signs, `assert` and the expected value."""
    text = call.strip().removeprefix(">>>").strip()
    try:
        statement = ast.parse(text).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return text
    node: ast.AST = statement
    if isinstance(statement, ast.Assert):
        node = statement.test
    elif isinstance(statement, ast.Expr):
        node = statement.value
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):
        node = node.left
    return ast.unparse(node)


def driver_source(program: str, calls: Sequence[str], token: str) -> str:
    """A program that runs `program`, evaluates each call and prints one record for each."""
    settings = json.dumps([program, list(calls), token, MAX_OUTPUT])
    return f"{DRIVER}\n_main(*__import__('json').loads({settings!r}))\n"


def recorded_outputs(stdout: str, token: str, num_calls: int) -> list[str]:
    """The output of each call from a driver's records; `FAILED` where there is none.

    A record that comes twice is nobody's: only a program that forges prints one.
    """
    seen: dict[int, list[str]] = {}
    for line in stdout.split("\n"):
        if not line.startswith(token):
            continue
        try:
            index, output = json.loads(line[len(token) :])
        except (ValueError, TypeError):
            continue
        if isinstance(index, int) and isinstance(output, str):
            seen.setdefault(index, []).append(output)
    return [
        seen[index][0] if len(seen.get(index, [])) == 1 else FAILED for index in range(num_calls)
    ]


def _block(source: str, opened: re.Match[str], end: int | None) -> _Block:
    """The block that a fence opens, up to `end`, or to the end of the text where it never closes.

    A list item or quotation indents its block as far as its fence.
    """
    label, body = opened["info"].strip(), source[opened.end() : end]
    if not body.strip():
        return _Block("", _LANGUAGE.sub("", label), end is not None)
    indent = len(opened["line"] or "")
    if indent:
        lines = body.split("\n")
        body = "\n".join(
            line[len(line[:indent]) - len(line[:indent].lstrip(" \t>")) :] for line in lines
        )
    return _Block(label, body, end is not None)


def _program_block(blocks: Sequence[_Block], entry_point: str | None) -> _Block | None:
    """The last block that is a program; not an example of using the one before, nor output."""
    python = [block for block in blocks if not block.label or _LANGUAGE.match(block.label)]
    python = python or [block for block in blocks if _DEFINES.search(block.body)]
    if entry_point is not None:
        for block in reversed(python):
            if entry_point in _DEFINES.findall(block.body):
                return block
    defining = [block for block in python if _DEFINES.search(block.body)]
    for block in reversed(python):
        if block in defining:
            return block
        names = {name for other in defining for name in _DEFINES.findall(other.body)}
        is_usage = any(name in block.body for name in names)
        if _CODE_LINE.match(block.body.lstrip()) and not is_usage:
            return block
    return python[-1] if python and not defining else (defining[-1] if defining else None)


def _unfenced(source: str) -> str | None:
    """The program in a text without fences: all of it, or its last stretch of code."""
    if len(source) <= MAX_PARSED and _SUBSTANCE.search(source) and _parses(source):
        return _finished(source)
    best: str | None = None
    for stretch in _stretches(source):
        if _SUBSTANCE.search(stretch) and (best is None or _DEFINES.search(stretch)):
            best = stretch
    return None if best is None else _finished(best)


def _stretches(source: str) -> Iterator[str]:
    """Runs of lines that are code: from a line that opens code to a line that is prose."""
    lines = source.split("\n")[:MAX_LINES]
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    taken: list[str] = []
    in_docstring = False
    for index, line in enumerate(lines):
        indented = line[:1] in (" ", "\t")
        opens = _OPENS_CODE.match(line) or (
            index == first and indented and _CODE_LINE.match(line.strip())
        )
        stays = in_docstring or not line.strip() or indented or _CODE_LINE.match(line)
        if opens or (taken and stays):
            taken.append(line)
            quotes = line.count('"""') + line.count("'''")
            in_docstring = in_docstring != bool(quotes % 2)
        elif taken:
            yield "\n".join(taken)
            taken = []
    if taken:
        yield "\n".join(taken)


def _parses(source: str) -> bool:
    """Whether the text as a whole is a Python program."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _with_indentation(text: str, visible: str) -> str:
    """The visible text with the indentation of its first line, which belongs to a program."""
    at = text.find(visible)
    line_start = text.rfind("\n", 0, max(at, 0)) + 1
    return text[line_start:at] + visible if at > 0 and text[line_start:at].isspace() else visible


def _finished(program: str) -> str | None:
    """The program without blank lines around it; None for an empty one."""
    return program.strip("\n").rstrip() or None
