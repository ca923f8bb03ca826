"""The vote of one group: its most common answer, or none.

Abstentions never win and stay in the denominator of the support. Nothing
depends on the order of the completions: neither the winner of a tie nor the
text that represents the winner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corl.answers.answer import Answer, digest
from corl.errors import RecipeError

_TIE_RANK: dict[str, Callable[[str], str]] = {
    "smallest_key": lambda key: key,
    # Favours no kind of answer, and falls the same way in every process.
    "hashed": digest,
}

TIES = ("abstain", *_TIE_RANK)
"""What a shared first place can give; docs/answers.md says what each means."""


@dataclass(frozen=True, slots=True)
class Vote:
    """The winning answer of one group and how it won."""

    answer: Answer
    """The winner; its text is the shortest among its voters, then the smallest."""

    count: int
    """Completions that gave the winner."""

    voters: int
    """Completions that gave any answer."""

    total: int
    """Completions in the group, abstentions included."""

    margin: int
    """The winner's count minus the runner-up's; the runner-up of a sole answer has 0."""

    @property
    def support(self) -> float:
        """Share of all completions that gave the winner, in (0, 1]."""
        return self.count / self.total


def majority(
    answers: Sequence[Answer | None], *, ties: str = "abstain", min_support: float = 0.0
) -> Vote | None:
    """The most common answer of a group.

    answers: one entry a completion, None where it abstains. ties: one of `TIES`.
    min_support: share of the whole group, abstentions included, that the winner
    must reach, 0 to 1. Returns None when nobody answers, when the support is too
    small, or on a tie under "abstain". Raises RecipeError (a ValueError) for an
    unknown tie policy or a share out of range.
    """
    if ties not in TIES:
        raise RecipeError(f"tie policy {ties!r} is not known; use one of: {', '.join(TIES)}")
    if not 0.0 <= min_support <= 1.0:
        raise RecipeError(
            f"min_support is {min_support}, but it is a share between 0 and 1; "
            "for sixty percent write 0.6"
        )
    counts: dict[str, int] = {}
    texts: dict[str, str] = {}
    for answer in answers:
        if answer is None:
            continue
        key, text = answer.key, answer.text
        counts[key] = counts.get(key, 0) + 1
        known = texts.get(key)
        if known is None or (len(text), text) < (len(known), known):
            texts[key] = text
    if not counts:
        return None
    best = max(counts.values())
    tied = [key for key, count in counts.items() if count == best]
    if best / len(answers) < min_support or (len(tied) > 1 and ties == "abstain"):
        return None
    winner = tied[0] if len(tied) == 1 else min(tied, key=_TIE_RANK[ties])
    runner_up = max((count for key, count in counts.items() if key != winner), default=0)
    return Vote(
        answer=Answer(text=texts[winner], key=winner),
        count=best,
        voters=sum(counts.values()),
        total=len(answers),
        margin=best - runner_up,
    )
