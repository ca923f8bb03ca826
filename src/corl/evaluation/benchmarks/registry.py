"""The benchmarks by name, and what `--benchmarks NAME=FILE` means."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from corl.config.files import explain, read_tree
from corl.errors import RecipeError
from corl.evaluation.benchmarks.schema import Benchmark

_FOLDER = Path(__file__).parent

TEXT_SEVEN = (
    "gsm8k", "math500", "amc", "humaneval", "mbpp", "gpqa_diamond", "livecodebench_v6",
)  # fmt: skip
"""The text benchmarks whose plain mean the paper reports."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A benchmark and the file that its rows come from; None reads the hub."""

    benchmark: Benchmark
    data: str | None


def known_benchmarks() -> list[str]:
    """Names of the benchmarks that come with the package."""
    return sorted(file.stem for file in _FOLDER.glob("*.yaml"))


def load_benchmark(name: str | Path) -> Benchmark:
    """A benchmark by name, or a user's own by the path of its YAML file.

    Raises RecipeError naming the nearest known name, or each key that is wrong.
    """
    path = Path(name).expanduser()
    if path.suffix not in (".yaml", ".yml"):
        known = known_benchmarks()
        if str(name) not in known:
            near = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)};"
            raise RecipeError(
                f"no benchmark {str(name)!r}; {hint} Your own is a YAML file, named by its path"
            )
        path = _FOLDER / f"{name}.yaml"
    tree = read_tree(path, kind="benchmark", keys="at least name, fields, grader",
                     error=RecipeError)  # fmt: skip
    try:
        return Benchmark.model_validate(tree)
    except ValidationError as error:
        lines = [explain(Benchmark, problem) for problem in error.errors()]
        raise RecipeError("\n".join(f"{path}: {line}" for line in lines)) from None


def choose(texts: list[str]) -> list[Chosen]:
    """What `NAME`, `NAME=FILE`, `OWN.yaml` and `OWN.yaml=FILE` stand for.

    Raises RecipeError for a name that is not known, stands twice, or a file that is not there.
    """
    chosen = []
    for text in texts:
        name, sign, data = text.partition("=")
        benchmark = load_benchmark(name)
        if sign and not (data and Path(data).expanduser().exists()):
            raise RecipeError(
                f"benchmark {name}: {data or 'its file'} does not exist; write NAME=FILE, or NAME "
                "alone to read the hub"
            )
        chosen.append(Chosen(benchmark, data if sign else None))
    names = [one.benchmark.name for one in chosen]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RecipeError(f"benchmark {twice[0]} stands twice; give each once")
    return chosen
