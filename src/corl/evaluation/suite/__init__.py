"""Evaluation of models on benchmarks: resumable, one record a sample on disk, with intervals."""

from corl.evaluation.suite.answering import Record, evaluate_policy
from corl.evaluation.suite.job import Outcome, run_suite
from corl.evaluation.suite.scores import Figure, Score, score
from corl.evaluation.suite.settings import PRESETS, EvalSettings

__all__ = [
    "PRESETS", "EvalSettings", "Figure", "Outcome", "Record", "Score", "evaluate_policy",
    "run_suite", "score",
]  # fmt: skip
