"""Ask a policy a benchmark's items and grade what it says. Touches no exchange and no training.

Shapes: P items, K completions of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from corl.errors import PromptError
from corl.evaluation.benchmarks import Benchmark, Item
from corl.evaluation.completions import Asking, complete
from corl.evaluation.graders import Grader, Response, grader_of

if TYPE_CHECKING:
    from corl.evaluation.suite.scores import Score
    from corl.policy import Policy


@dataclass(frozen=True, slots=True)
class Record:
    """One completion, graded: a line of `samples.jsonl` (see `corl.evaluation.samples`)."""

    id: str
    sample: int
    completion: str
    truncated: bool
    answer: str | None
    """As written; None where none was stated, and for code."""
    key: str | None
    """What equal answers share."""
    right: bool
    verdict: str

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, line: dict[str, Any]) -> Self:
        """Raises KeyError or TypeError for what `to_json` does not write."""
        return cls(**{name: line[name] for name in cls.__slots__})


def evaluate_policy(
    policy: Policy,
    benchmark: Benchmark,
    items: Sequence[Item],
    asking: Asking,
    *,
    samples: int | None = None,
    greedy: bool = False,
    seed: int = 0,
    grader: Grader | None = None,
) -> Score:
    """Score a loaded policy, without files: what training on a schedule calls.

    samples: completions of an item; left out: the benchmark's own number. greedy: also take the
    most probable completion. grader: one to keep between calls.
    """
    from corl.evaluation.suite.scores import score

    if grader is None:
        with grader_of(benchmark) as own:
            return evaluate_policy(
                policy, benchmark, items, asking,
                samples=samples, greedy=greedy, seed=seed, grader=own,
            )  # fmt: skip
    require_sight(benchmark, items, sees_images=policy.processor is not None)
    num_samples = benchmark.samples if samples is None else samples
    passes = {"sampled": (num_samples, asking)}
    if greedy or benchmark.metric == "greedy":
        passes["greedy"] = (1, replace(asking, temperature=0.0))
    records = {
        name: answer_items(policy, items, asked, grader, completions=count, seed=seed)
        for name, (count, asked) in passes.items()
        if count
    }
    return score(benchmark, items, records.get("sampled", []), records.get("greedy", []))


def answer_items(
    policy: Policy,
    items: Sequence[Item],
    asking: Asking,
    grader: Grader,
    *,
    completions: int,
    seed: int,
) -> list[Record]:
    """P x K records, the completions of an item together.

    Draws depend on the seed, the item's place in its data set and the completion's number.
    """
    has_template = bool(getattr(policy.tokenizer, "chat_template", None))
    is_chat = asking.chat != "never" and has_template
    drawn = complete(
        policy,
        [item.row(chat=is_chat) for item in items],
        asking,
        completions=completions,
        seed=seed,
        places=[item.place for item in items],
    )
    return grade_all(
        grader,
        [
            (item, number, one.text, one.truncated)
            for item, group in zip(items, drawn, strict=True)
            for number, one in enumerate(group)
        ],
    )


def grade_all(grader: Grader, said: Sequence[tuple[Item, int, str, bool]]) -> list[Record]:
    """Records of completions: (item, number, text, truncated)."""
    results = grader.grade([Response(item, text, cut) for item, _, text, cut in said])
    return [
        Record(
            id=item.id,
            sample=number,
            completion=text,
            truncated=cut,
            answer=result.answer,
            key=result.key,
            right=result.right,
            verdict=result.verdict,
        )
        for (item, number, text, cut), result in zip(said, results, strict=True)
    ]


def require_sight(benchmark: Benchmark, items: Sequence[Item], *, sees_images: bool) -> None:
    """Raise PromptError for pictures that a model cannot see, or that the data do not hold."""
    if not benchmark.has_images:
        return
    if not sees_images:
        raise PromptError(
            f"benchmark {benchmark.name} shows pictures, and the model reads text alone. Name a "
            "vision-language model, or grade completions made elsewhere: --completions"
        )
    for item in items:
        if not item.images:
            raise PromptError(
                f"benchmark {benchmark.name}, row {item.id!r} has no picture. Copy the benchmark's "
                "file, set `fields.image`, and name that file"
            )
