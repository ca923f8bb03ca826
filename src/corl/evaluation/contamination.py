"""Which benchmark problems a training set holds already, word for word or nearly.

Texts are compared as sets of three consecutive tokens (words, numbers and symbols; case and white
space aside) by their Jaccard similarity: shared triples over all triples. Benchmarks are full of
siblings, one wording with other numbers, which a similarity of wording cannot tell from a copy. So
where both sides state an answer it decides: similar and of one answer is a near-duplicate, similar
and of different answers is a sibling.

Only the benchmark is indexed; training rows pass by one at a time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

_TOKEN = re.compile(r"\d+|[^\W\d_]+|[^\w\s]")
_SHINGLE = 3
_MAX_TOKENS = 20_000
"""Tokens of a text that are read."""

SIMILARITY = 0.7
"""From here on two wordings are similar."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A prompt, and the key of its answer where there is one."""

    id: str
    text: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A training prompt and a benchmark problem that are alike."""

    train_id: str
    benchmark_id: str
    similarity: float
    """Jaccard similarity of their token triples, 0 to 1."""
    train_text: str
    benchmark_text: str


@dataclass(frozen=True, slots=True)
class Contamination:
    """What a training set shares with a benchmark; matches from the most alike on."""

    exact: tuple[Match, ...]
    """The same tokens."""
    near: tuple[Match, ...]
    """Similar, and not known to have different answers."""
    siblings: tuple[Match, ...]
    """Similar, but the answers differ: another problem in the same words."""
    problems: int
    """Problems of the benchmark."""

    @property
    def exact_problems(self) -> int:
        """Benchmark problems that stand in the training set word for word."""
        return len({match.benchmark_id for match in self.exact})

    @property
    def near_problems(self) -> int:
        """Further ones that stand there nearly."""
        exact = {match.benchmark_id for match in self.exact}
        return len({match.benchmark_id for match in self.near} - exact)

    def to_json(self) -> dict[str, Any]:
        return {
            "problems": self.problems,
            "exact_problems": self.exact_problems,
            "near_problems": self.near_problems,
            **{
                kind: [asdict(match) for match in getattr(self, kind)]
                for kind in ("exact", "near", "siblings")
            },
        }


def overlap(
    training: Iterable[Problem], benchmark: Sequence[Problem], *, similarity: float = SIMILARITY
) -> Contamination:
    """Find every benchmark problem that is in the training set, or much like a prompt of it.

    similarity: in (0, 1], the least Jaccard similarity of a match.
    """
    if not 0 < similarity <= 1:
        raise ValueError(f"similarity {similarity} must be above 0 and at most 1")
    index: dict[str, list[int]] = defaultdict(list)
    tokens = [_tokens(problem.text) for problem in benchmark]
    sizes = []
    for place, words in enumerate(tokens):
        triples = _triples(words)
        sizes.append(len(triples))
        for triple in triples:
            index[triple].append(place)
    exact: list[Match] = []
    near: list[Match] = []
    siblings: list[Match] = []
    for problem in training:
        words = _tokens(problem.text)
        triples = _triples(words)
        shared = Counter(place for triple in triples for place in index.get(triple, ()))
        for place, count in shared.items():
            alike = count / (len(triples) + sizes[place] - count)
            if alike < similarity:
                continue
            other = benchmark[place]
            match = Match(problem.id, other.id, round(alike, 4), problem.text, other.text)
            if words == tokens[place]:
                exact.append(match)
            elif None not in (problem.key, other.key) and problem.key != other.key:
                siblings.append(match)
            else:
                near.append(match)
    return Contamination(_sorted(exact), _sorted(near), _sorted(siblings), len(benchmark))


def _tokens(text: str) -> list[str]:
    return [match[0] for match in islice(_TOKEN.finditer(text.lower()), _MAX_TOKENS)]


def _triples(words: Sequence[str]) -> set[str]:
    count = max(1, len(words) - _SHINGLE + 1)
    return {" ".join(words[start : start + _SHINGLE]) for start in range(count)}


def _sorted(matches: Iterable[Match]) -> tuple[Match, ...]:
    return tuple(sorted(matches, key=lambda one: (-one.similarity, one.benchmark_id, one.train_id)))
