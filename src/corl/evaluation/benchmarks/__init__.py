"""Benchmarks as declarative files: one YAML file each, and a user's own beside them."""

from corl.evaluation.benchmarks.items import Item
from corl.evaluation.benchmarks.loading import items_of, load_items
from corl.evaluation.benchmarks.registry import (
    TEXT_SEVEN,
    Chosen,
    choose,
    known_benchmarks,
    load_benchmark,
)
from corl.evaluation.benchmarks.schema import Benchmark

__all__ = [
    "TEXT_SEVEN", "Benchmark", "Chosen", "Item", "choose", "items_of", "known_benchmarks",
    "load_benchmark", "load_items",
]  # fmt: skip
