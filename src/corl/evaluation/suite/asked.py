"""One model on all benchmarks, sampled and graded chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corl.evaluation.benchmarks import Benchmark, Item
from corl.evaluation.graders import Grader, grader_of
from corl.evaluation.sandbox import Level
from corl.evaluation.suite.answering import Record, answer_items
from corl.evaluation.suite.chunks import SampleFile, rows_per_chunk
from corl.evaluation.suite.identity import graded_by
from corl.evaluation.suite.progress import EvalProgress
from corl.evaluation.suite.scores import Score, score
from corl.evaluation.suite.settings import EvalSettings
from corl.evaluation.suite.subjects import Subject, fingerprint

if TYPE_CHECKING:
    from corl.policy import Policy


@dataclass(frozen=True, slots=True)
class Pass:
    """One way to ask a benchmark's rows."""

    folder: str
    """Under MODEL/BENCHMARK/."""
    completions: int
    temperature: float


def passes_of(settings: EvalSettings, benchmark: Benchmark) -> list[Pass]:
    """The sampled completions and the most probable one, as far as they are wanted."""
    passes = []
    if count := settings.samples_of(benchmark):
        passes.append(Pass("", count, settings.temperature))
    if settings.is_greedy_on(benchmark):
        passes.append(Pass("greedy", 1, 0.0))
    return passes


class ModelEvaluation:
    """A model, which is loaded when the first row is not on disk yet."""

    def __init__(
        self,
        subject: Subject,
        settings: EvalSettings,
        root: Path,
        *,
        minimum: Level,
        progress: EvalProgress,
    ) -> None:
        """root: where the model's samples go. minimum: weakest isolation of generated code."""
        self._subject, self._settings, self._root = subject, settings, root
        self._minimum, self._progress = minimum, progress
        self._fingerprint = fingerprint(subject.source)
        self._policy: Policy | None = None

    def scores(self, work: Sequence[tuple[Benchmark, Sequence[Item]]]) -> list[Score]:
        """Scores in the order of the benchmarks."""
        return [self._score(benchmark, items) for benchmark, items in work]

    def _score(self, benchmark: Benchmark, items: Sequence[Item]) -> Score:
        with grader_of(benchmark, minimum=self._minimum) as grader:
            records = {
                one.folder: self._records(benchmark, items, grader, one)
                for one in passes_of(self._settings, benchmark)
            }
        return score(benchmark, items, records.get("", []), records.get("greedy", []))

    def _records(
        self, benchmark: Benchmark, items: Sequence[Item], grader: Grader, asked: Pass
    ) -> list[Record]:
        count = asked.completions
        rows = rows_per_chunk(count, self._settings.batch_rows)
        folder = self._root / benchmark.name / asked.folder
        file = SampleFile(folder, items, samples=count, rows_per_chunk=rows)
        file.open(
            {
                **graded_by(benchmark, items),
                "model": self._fingerprint,
                "asked": self._subject.asked(),
                **asdict(asked),
                "top_p": self._settings.top_p,
                "max_tokens": self._settings.max_tokens,
                "seed": self._settings.seed,
                "rows_per_chunk": rows,
                "batch_rows": self._settings.batch_rows,
            }
        )
        self._progress.skip(file.done_rows * count)
        for chunk in file.chunks():
            policy = self._loaded()
            asking = self._subject.asking(
                self._settings,
                benchmark,
                temperature=asked.temperature,
                chat=self._subject.asks_by_chat(policy.tokenizer),
            )
            seed = self._settings.seed
            file.append(answer_items(policy, chunk, asking, grader, completions=count, seed=seed))
            self._progress.advance(len(chunk) * count, f"{self._subject.name}, {benchmark.name}")
        return file.read()

    def _loaded(self) -> Policy:
        if self._policy is None:
            from corl.policy import load_policy

            self._policy = load_policy(
                self._subject.source,
                dtype=self._subject.dtype,
                device=self._subject.device,
                trust_remote_code=self._subject.trust_remote_code,
            )
        return self._policy
