"""Reading the Markdown pages of completions that a run writes (`corl.run.pages`).

A page is text that a model wrote in part, so only lines outside of code blocks are
read as structure; a block ends at the fence that opened it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_HEAD = re.compile(r"# Step (\d+), agent (.*)")
_FENCE = re.compile(r"`{3,}")
_VOTE = re.compile(r"Own vote: (.*)\. Label: (.*)\.")
_COMPLETION = re.compile(r"Reward (\S+), answer (.*)")
_CODE = re.compile(r"(`+) ?(.*?) ?\1")
_STEP = re.compile(r"step-(\d+)\.md")
_MAX_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled text, how its answer was read, and what it earned."""

    text: str
    answer: str
    reward: str


@dataclass(slots=True)
class Prompt:
    """One prompt of a page with its group of completions."""

    id: str
    text: str = ""
    vote: str = ""
    label: str = ""
    completions: list[Completion] = field(default_factory=list)


@dataclass(slots=True)
class Page:
    """What one agent sampled for some prompts of one step."""

    step: int
    file: Path
    graded_by: str = ""
    prompts: list[Prompt] = field(default_factory=list)


def list_pages(agent_directory: Path) -> list[tuple[int, Path]]:
    """Step and file of every page of an agent, in order of step."""
    found = []
    for file in agent_directory.glob("pages/step-*.md"):
        named = _STEP.fullmatch(file.name)
        if named:
            found.append((int(named[1]), file))
    return sorted(found)


def read_page(file: Path, step: int) -> Page:
    """Parse a page; what does not look like one is skipped. Raises OSError."""
    with file.open("rb") as stream:
        lines = stream.read(_MAX_BYTES).decode("utf-8", "replace").split("\n")
    page = Page(step, file)
    pending: tuple[str, str] | None = None
    position = 0
    while position < len(lines):
        line = lines[position]
        if _FENCE.fullmatch(line):
            end = _end_of_block(lines, position)
            body = "\n".join(lines[position + 1 : end])
            if page.prompts:
                _place(page.prompts[-1], body, pending)
            pending, position = None, end + 1
            continue
        if line.startswith("Graded by ") and not page.prompts:
            page.graded_by = line.removeprefix("Graded by ").removesuffix(".")
        elif line.startswith("## Prompt "):
            page.prompts.append(Prompt(line.removeprefix("## Prompt ")))
        elif page.prompts and (voted := _VOTE.fullmatch(line)):
            page.prompts[-1].vote, page.prompts[-1].label = _code(voted[1]), _code(voted[2])
        elif completed := _COMPLETION.fullmatch(line):
            pending = completed[1], _code(completed[2])
        position += 1
    return page


def plain_answer(key: str) -> str:
    """An answer key without its type and policy version."""
    return re.sub(r"^[\w-]+@\d+:", "", key)


def vote_key(vote: str) -> str:
    """The answer of a vote, without its count."""
    return re.sub(r" \(\d+ of \d+\)$", "", vote)


def _end_of_block(lines: list[str], start: int) -> int:
    fence = lines[start]
    for position in range(start + 1, len(lines)):
        if lines[position] == fence:
            return position
    return len(lines)


def _place(prompt: Prompt, body: str, pending: tuple[str, str] | None) -> None:
    if pending is not None:
        prompt.completions.append(Completion(body, answer=pending[1], reward=pending[0]))
    elif not prompt.text and not prompt.completions:
        prompt.text = body


def _code(text: str) -> str:
    fenced = _CODE.fullmatch(text)
    return fenced[2] if fenced else text
