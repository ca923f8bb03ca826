"""Choose a checkpoint without a label.

The score of agent i's checkpoint after step t, from unlabeled held-out prompts:

    score(i, t) = F * (A0^2 * A1 * S)^(1/4)

F   answered share: completions that state an answer
A0  agreement with the *frozen* peers: share of prompts where i's vote is the vote of the peer as
    it was at step 0, over prompts where that peer voted; mean over peers. An abstention disagrees.
A1  the same with the peers' current checkpoints, after the same step
S   vote support: mean share of completions behind the vote, 0 where there is none

A1 and S alone prefer a pair that has collapsed together: it agrees with itself, loudly. The frozen
peers cannot follow it there, so they weigh double; they are weaker teachers, so alone they stop
rewarding progress early. The geometric mean lets no figure near zero be made good by another.
What the score cannot see: errors that the frozen peers share (docs/study.md says how often it was
wrong). Step 0, not to train at all, is a candidate like any other.

Everything here is pure. Shapes: P prompts, K completions per prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from corl.evaluation.accuracy import AnswerSheet, Key, majority_key

FROZEN_WEIGHT = 2.0
"""Weight of the frozen peers' agreement, against 1 each for the current peers' and support."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of one checkpoint without a label; shares in [0, 1]."""

    step: int
    frozen_agreement: float | None
    """A0; None where the cohort has no other agent, or no frozen peer voted at all."""
    current_agreement: float | None
    """A1; likewise."""
    vote_support: float
    answered_share: float

    @property
    def score(self) -> float:
        """The label-free score; factors that do not exist are left out of the mean."""
        factors = [
            (self.frozen_agreement, FROZEN_WEIGHT),
            (self.current_agreement, 1.0),
            (self.vote_support, 1.0),
        ]
        known = [(value, weight) for value, weight in factors if value is not None]
        product = 1.0
        for value, weight in known:
            product *= value**weight
        return self.answered_share * product ** (1.0 / sum(weight for _, weight in known))

    def to_json(self) -> dict[str, Any]:
        """Plain numbers by name, the score among them."""
        return {**asdict(self), "score": round(self.score, 6)}


def checkpoint_signals(
    step: int,
    own: AnswerSheet,
    *,
    frozen_peers: Sequence[AnswerSheet],
    current_peers: Sequence[AnswerSheet],
) -> Signals:
    """The signals of one checkpoint from answer sheets over the same unlabeled prompts."""
    votes, supports = zip(*(majority_key(group) for group in own.sampled), strict=True)
    answers = [key is not None for group in own.sampled for key in group]
    return Signals(
        step=step,
        frozen_agreement=_agreement(votes, frozen_peers),
        current_agreement=_agreement(votes, current_peers),
        vote_support=fmean(supports),
        answered_share=fmean(answers),
    )


def cohort_signals(
    sheets: Mapping[int, Mapping[str, AnswerSheet]],
) -> dict[str, list[Signals]]:
    """Signals of every agent at every step, oldest first.

    sheets: step -> agent -> its sheet; step 0 holds the untrained agents.
    """
    frozen = sheets[0]
    return {
        name: [
            checkpoint_signals(
                step,
                sheets[step][name],
                frozen_peers=[sheet for peer, sheet in frozen.items() if peer != name],
                current_peers=[sheet for peer, sheet in sheets[step].items() if peer != name],
            )
            for step in sorted(sheets)
        ]
        for name in frozen
    }


def pick_checkpoint(signals: Sequence[Signals], *, first_alarm: int | None = None) -> int:
    """The step with the highest score; the earliest of equals.

    first_alarm: step of the first health alarm. Later checkpoints are not considered: what a
    collapsed policy agrees on is no evidence.
    """
    healthy = [s for s in signals if first_alarm is None or s.step < first_alarm]
    candidates = healthy or [min(signals, key=lambda s: s.step)]
    return max(candidates, key=lambda s: (s.score, -s.step)).step


def pick_by_labels(accuracy_by_step: Mapping[int, float]) -> int:
    """The step with the highest labelled accuracy: the upper bound. The earliest of equals."""
    return max(accuracy_by_step, key=lambda step: (accuracy_by_step[step], -step))


def _agreement(votes: Sequence[Key], peers: Sequence[AnswerSheet]) -> float | None:
    shares = []
    for peer in peers:
        peer_votes = [majority_key(group)[0] for group in peer.sampled]
        both = [
            own is not None and own == other
            for own, other in zip(votes, peer_votes, strict=True)
            if other is not None
        ]
        if both:
            shares.append(fmean(both))
    return fmean(shares) if shares else None
