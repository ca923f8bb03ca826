"""maj@k of several models' pooled completions, beside each of them alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corl.errors import PromptError
from corl.evaluation.ensemble import ensemble_majority
from corl.evaluation.paired import PairedComparison, paired_comparison
from corl.evaluation.suite.answering import Record
from corl.evaluation.suite.recorded import Recorded
from corl.evaluation.suite.scores import Figure, right_keys


@dataclass(frozen=True, slots=True)
class EnsembleScore:
    """One benchmark."""

    benchmark: str
    problems: int
    members: dict[str, Figure]
    """maj@votes of each member alone."""
    ensemble: Figure
    """maj@votes of the pooled completions."""
    against_best: PairedComparison
    """The ensemble minus its best member, paired by problem."""

    def to_json(self) -> dict[str, Any]:
        return {
            "problems": self.problems,
            "members": {name: figure.to_json() for name, figure in self.members.items()},
            "ensemble": self.ensemble.to_json(),
            "against_best": {
                "difference": round(self.against_best.difference, 6),
                "interval": self.against_best.interval,
                "p_value": self.against_best.p_value,
            },
        }


def ensemble_scores(
    recorded: Recorded,
    members: Sequence[str],
    *,
    votes: int = 8,
    weights: Sequence[float] | None = None,
) -> list[EnsembleScore]:
    """Scores on every benchmark that all members answered; ties and silence are wrong.

    members: names of models of the evaluation. weights: of each member's votes.
    Raises PromptError for a member that is not there or has too few completions, and where no
    benchmark is common to all or its answers have nothing to vote by.
    """
    if len(members) < 2 or len(set(members)) < len(members):
        raise PromptError(f"an ensemble has two different members or more, and these are {members}")
    for name in members:
        if name not in recorded:
            raise PromptError(f"no model {name!r} was evaluated here; there are {sorted(recorded)}")
    common = [
        name for name in recorded[members[0]] if all(name in recorded[one] for one in members)
    ]
    scores = [
        _score(name, [recorded[one][name] for one in members], members, votes, weights)
        for name in common
        if any(one.key for group in recorded[members[0]][name].values() for one in group)
    ]
    if not scores:
        raise PromptError(
            f"{' and '.join(members)} have no benchmark in common whose answers can vote"
        )
    return scores


def _score(
    benchmark: str,
    answers: Sequence[dict[str, list[Record]]] | Sequence[Any],
    names: Sequence[str],
    votes: int,
    weights: Sequence[float] | None,
) -> EnsembleScore:
    ids = list(answers[0])
    if any(list(one) != ids for one in answers):
        raise PromptError(f"benchmark {benchmark}: the members answered different rows")
    alone: list[list[float]] = [[] for _ in names]
    together: list[float] = []
    for row in ids:
        groups = [one[row] for one in answers]
        right = right_keys([record for group in groups for record in group])
        keys = [[record.key for record in group] for group in groups]
        try:
            together.append(float(ensemble_majority(keys, votes=votes, weights=weights) in right))
            for member, own in enumerate(keys):
                alone[member].append(float(ensemble_majority([own], votes=votes) in right))
        except ValueError as error:
            raise PromptError(
                f"benchmark {benchmark}, row {row!r}: {error}; lower --votes, or `corl eval` with "
                "more --samples"
            ) from None
    figures = {name: Figure.of(values) for name, values in zip(names, alone, strict=True)}
    best = max(figures.values(), key=lambda figure: figure.mean)
    return EnsembleScore(
        benchmark=benchmark,
        problems=len(ids),
        members=figures,
        ensemble=Figure.of(together),
        against_best=paired_comparison(together, best.values),
    )
