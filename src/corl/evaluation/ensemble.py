"""Ensembles: one majority over the pooled completions of several agents (paper: 4 from each of 2).

Pure. Shapes: M members, P problems, K completions of a member.
"""

from __future__ import annotations

from collections.abc import Sequence

from corl.evaluation.consistency import Key, leading_answers


def pooled(members: Sequence[Sequence[Key]], votes: int) -> list[tuple[int, Key]]:
    """The completions of one problem that vote, with the member each comes from.

    members: [M][K] answer keys. Each member gives an equal part of `votes`; where that does not
    divide, the first give one more. Members that have as many completions as there are votes give
    other places than those before them, so that no two pooled completions share a draw of noise.
    Raises ValueError where a member has fewer completions than its part.
    """
    if not 1 <= len(members) <= votes:
        raise ValueError(f"{votes} votes cannot come from {len(members)} members")
    part, more = divmod(votes, len(members))
    chosen: list[tuple[int, Key]] = []
    for member, keys in enumerate(members):
        size = part + (member < more)
        if len(keys) < size:
            raise ValueError(f"member {member} has {len(keys)} completions, and {size} are needed")
        start = len(chosen) if len(keys) >= votes else 0
        chosen += [(member, key) for key in keys[start : start + size]]
    return chosen


def ensemble_majority(
    members: Sequence[Sequence[Key]], *, votes: int, weights: Sequence[float] | None = None
) -> Key:
    """The majority of the pooled completions of one problem; None on a tie, or without answers.

    weights: of each member's votes, such as its accuracy; equal where left out.
    """
    chosen = pooled(members, votes)
    if weights is not None and len(weights) != len(members):
        raise ValueError(f"{len(weights)} weights for {len(members)} members; give one for each")
    of_vote = None if weights is None else [weights[member] for member, _ in chosen]
    leaders = leading_answers([key for _, key in chosen], of_vote)
    return leaders[0] if len(leaders) == 1 else None
