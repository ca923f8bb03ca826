"""What models answered to the same labelled problems, several samples each: counts of answer keys.

Read from the `kappa.json` that `corl kappa` writes. A file is untrusted: everything is checked, and
a message names model and problem.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corl.errors import PromptError

FILE_NAME = "kappa.json"
_MAX_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Tally:
    """One model's samples of one problem."""

    counts: Mapping[str, int]
    """Answer key -> samples that gave it."""
    samples: int
    """All samples; those that stated no answer are in no count."""


@dataclass(frozen=True, slots=True)
class ProbedModel:
    """One model's answers to all problems of a probe."""

    name: str
    model: str
    """Directory or hub id, as a recipe names it."""
    tallies: tuple[Tally, ...]
    """[P], in the order of `Probed.ids`."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe of several models on the same labelled problems."""

    ids: tuple[str, ...]
    """[P]"""
    labels: tuple[str, ...]
    """[P] keys of the right answers."""
    models: tuple[ProbedModel, ...]

    def model(self, name: str) -> ProbedModel:
        """The model of that name. Raises PromptError naming those there are."""
        for one in self.models:
            if one.name == name:
                return one
        raise PromptError(
            f"the probe has no model {name!r}; it has {', '.join(m.name for m in self.models)}"
        )

    def accuracy(self, name: str) -> float:
        """Mean share of right samples, 0 to 1."""
        tallies = self.model(name).tallies
        right = [
            tally.counts.get(label, 0) / tally.samples
            for tally, label in zip(tallies, self.labels, strict=True)
        ]
        return sum(right) / len(right)

    @property
    def fewest_samples(self) -> int:
        """Samples of the problem that has fewest."""
        return min(tally.samples for one in self.models for tally in one.tallies)


def read_probe(path: Path) -> Probed:
    """A probe from `kappa.json` or the directory that holds it.

    Raises PromptError for a file that is missing or malformed, where a problem has no label, and
    where models answered different problems.
    """
    file = path / FILE_NAME if path.is_dir() else path
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise PromptError(f"{file} has more than {_MAX_BYTES >> 30} GiB; that is no probe")
        tree = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PromptError(
            f"{file} cannot be read ({error.strerror}); `corl kappa MODEL... --data FILE "
            "--samples 8 --out DIR` writes it"
        ) from None
    except (ValueError, RecursionError) as error:
        raise PromptError(f"{file} is no JSON of `corl kappa`: {error}") from None
    models = tree.get("models") if isinstance(tree, dict) else None
    if not isinstance(models, list) or not models:
        raise PromptError(f"{file} has no list `models`; `corl kappa ... --out DIR` writes one")
    return probe_of(models, source=str(file))


def probe_of(models: Sequence[Any], *, source: str = "the probe") -> Probed:
    """A probe from the `models` of `kappa.json`. Raises PromptError as `read_probe` does."""
    read = [_model(tree, source) for tree in models]
    names = [model.name for model, _ in read]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PromptError(f"{source}: two models are named {twice[0]!r}")
    first = read[0][1]
    for model, problems in read[1:]:
        if [*problems] != [*first]:
            raise PromptError(
                f"{source}: {model.name} and {read[0][0].name} did not answer the same problems "
                "in the same order; probe them together"
            )
        for id_, label in problems.items():
            if label != first[id_]:
                raise PromptError(
                    f"{source}: problem {id_!r} has the label {label!r} for {model.name} and "
                    f"{first[id_]!r} for {read[0][0].name}"
                )
    return Probed(tuple(first), tuple(first.values()), tuple(model for model, _ in read))


def _model(tree: Any, source: str) -> tuple[ProbedModel, dict[str, str]]:
    """A model and its labels by problem id."""
    if not isinstance(tree, dict) or not isinstance(tree.get("name"), str):
        raise PromptError(f"{source}: an entry of `models` has no name")
    name, problems = tree["name"], tree.get("problems")
    if not isinstance(problems, list) or not problems:
        raise PromptError(f"{source}: {name} has no problems")
    labels: dict[str, str] = {}
    tallies = []
    for number, problem in enumerate(problems):
        where = f"{source}: {name}, problem {number}"
        if not isinstance(problem, dict) or "id" not in problem:
            raise PromptError(f"{where} has no id")
        id_ = str(problem["id"])
        if id_ in labels:
            raise PromptError(f"{where}: the id {id_!r} stands twice")
        tally = _tally(problem, where)
        labels[id_] = _label(problem, tally, where)
        tallies.append(tally)
    return ProbedModel(name, str(tree.get("model", name)), tuple(tallies)), labels


def _tally(problem: Mapping[str, Any], where: str) -> Tally:
    counts, samples = problem.get("answers"), problem.get("samples")
    if not isinstance(counts, dict) or not all(_is_count(count) for count in counts.values()):
        raise PromptError(f"{where}: `answers` is not a table of answers and how often each came")
    given = sum(counts.values())
    if not isinstance(samples, int) or not _is_count(samples) or samples < max(given, 1):
        raise PromptError(f"{where}: `samples` is {samples!r}, with {given} answers counted")
    return Tally({str(key): count for key, count in counts.items() if count}, samples)


def _label(problem: Mapping[str, Any], tally: Tally, where: str) -> str:
    label, right = problem.get("label"), problem.get("right")
    if not isinstance(label, str) or right is None:
        raise PromptError(
            f"{where} has no label, and a prediction needs to know which answer is right; "
            "probe problems with labels"
        )
    counted = tally.counts.get(label, 0)
    if isinstance(right, int) and not isinstance(right, bool) and right != counted:
        raise PromptError(
            f"{where}: `right` says {right} samples, but the label {label!r} stands at {counted}"
        )
    return label


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
