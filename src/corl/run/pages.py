"""A page of completions with their answers, votes and rewards, for a person to open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corl.answers import Answer, Vote
from corl.data.prompts import PromptRow
from corl.supervision import Rewards


def write_page(
    path: Path,
    *,
    step: int,
    agent: str,
    graded_by: str,
    rows: Sequence[PromptRow],
    texts: Sequence[Sequence[str]],
    answers: Sequence[Sequence[Answer | None]],
    votes: Sequence[Vote | None],
    rewards: Rewards,
) -> None:
    """Write the first `len(rows)` prompts of a step as Markdown."""
    parts = [f"# Step {step}, agent {agent}\n\nGraded by {graded_by}.\n"]
    for index, row in enumerate(rows):
        vote = votes[index]
        own = "no vote" if vote is None else f"{vote.answer.key} ({vote.count} of {vote.total})"
        parts.append(
            f"\n## Prompt {row.id}\n\n{_fenced(row.text)}\n"
            f"\nOwn vote: {_code(own)}. Label: {_code(str(rewards.labels[index]))}.\n"
        )
        for text, answer, reward in zip(
            texts[index], answers[index], rewards.rewards[index], strict=True
        ):
            read = "no answer" if answer is None else answer.key
            parts.append(f"\nReward {reward:g}, answer {_code(read)}\n\n{_fenced(text)}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(parts), encoding="utf-8")


def _fenced(text: str) -> str:
    """A code block that the text cannot close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _code(text: str) -> str:
    line = " ".join(text.split())[:200]
    fence = "`"
    while fence in line:
        fence += "`"
    return f"{fence} {line} {fence}" if len(fence) > 1 else f"`{line}`"
