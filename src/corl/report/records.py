"""What the report knows about runs, read from study and run directories.

Files may be unfinished, older or damaged: a line that cannot be read is left out
and counted in `notes`, which the page shows. Only a path that is neither run nor
study is an error. Weights and checkpoints are never opened.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from corl.errors import CheckpointError

MEASURES = {"avg_at_8": "avg@8", "greedy": "greedy", "maj_at_8": "maj@8", "pass_at_8": "pass@8"}
"""Measures of held-out accuracy, in the order shown."""

POOLED = "ensemble_maj_at_8"
"""The key of a row that holds maj@8 over all agents' completions together."""

BASE = "base"
"""The method of rows that hold the untrained models."""

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentResult:
    """Held-out accuracy of one agent of one run, by measure; None where not measured."""

    name: str
    path: str
    """Where the figures stand inside of the row."""
    before: dict[str, float | None]
    after: dict[str, float | None]

    def has(self, measure: str) -> bool:
        """Whether this measure was taken, before or after."""
        return self.before[measure] is not None or self.after[measure] is not None

    def place(self, phase: str, measure: str) -> str:
        """Where one figure stands inside of the row."""
        return f"{self.path}.{phase}" + ("" if self.is_pooled else f".{measure}")

    @property
    def is_pooled(self) -> bool:
        """The majority of all agents' completions together, which is not any one agent's."""
        return self.path == POOLED


@dataclass(frozen=True, slots=True)
class Alarm:
    """A line of health.jsonl."""

    step: int
    agent: str
    detector: str
    is_alarm: bool
    """False for an information that success also gives."""
    message: str


@dataclass(slots=True)
class Run:
    """One cell of a study, or one run given by itself."""

    method: str
    setting: str
    seed: str
    status: str
    """done, failed, running, or unfinished."""
    root: Path | None
    """None where the run directory is missing."""
    error: str | None = None
    results: tuple[AgentResult, ...] = ()
    results_file: Path | None = None
    row: int | None = None
    """Index of the row in `results_file`."""
    supervision: str = ""
    """The recipe's supervision method; empty where there is no recipe."""
    models: dict[str, str] = field(default_factory=dict)
    """Agents in ring order, and the model that each started from."""
    metrics: dict[str, list[Line]] = field(default_factory=dict)
    evaluations: dict[str, list[Line]] = field(default_factory=dict)
    benchmarks: dict[str, dict[str, list[Line]]] = field(default_factory=dict)
    """Agent -> benchmark measured while training -> its lines, in order of step."""
    alarms: list[Alarm] = field(default_factory=list)
    """What detectors said, infos too."""

    @property
    def label(self) -> str:
        """What the run is called in lists."""
        return " · ".join(part for part in (self.method, self.setting, f"seed {self.seed}") if part)

    @property
    def last_step(self) -> int:
        """The newest step of any agent; 0 without metrics."""
        return max((lines[-1]["step"] for lines in self.metrics.values() if lines), default=0)


@dataclass(slots=True)
class Study:
    """Everything that one report shows."""

    title: str
    runs: list[Run] = field(default_factory=list)
    probes: list[Path] = field(default_factory=list)
    """Directories that `corl kappa` wrote."""
    notes: list[str] = field(default_factory=list)


def load_study(paths: Sequence[Path]) -> Study:
    """Read every path. Raises CheckpointError for one that is no run, study or probe."""
    if not paths:
        raise CheckpointError("a report needs at least one run, study or probe directory")
    names = [Path(path).absolute().name for path in paths]
    study = Study(
        title=" + ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"
    )
    for path in map(Path, paths):
        if (path / "results.json").is_file():
            _load_results(study, path)
        elif (path / "metrics.jsonl").is_file() or (path / "recipe.yaml").is_file():
            study.runs.append(_load_run(study, path))
        elif (path / "kappa.json").is_file():
            study.probes.append(path)
        else:
            raise CheckpointError(
                f"{path} is neither a run (no metrics.jsonl), nor a study (no results.json), nor a "
                "probe (no kappa.json); give the directory that `corl train`, `corl study` or "
                "`corl kappa` wrote"
            )
    _drop_doubles(study)
    return study


def number(value: object) -> float | None:
    """A finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _load_results(study: Study, root: Path) -> None:
    file = root / "results.json"
    try:
        rows = json.loads(file.read_text(encoding="utf-8", errors="replace"))["rows"]
        if not isinstance(rows, list):
            raise ValueError("`rows` is not a list")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(
            f"{file} is not the results of a study: {error}; run `corl study` again to write it"
        ) from None
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            study.notes.append(f"results.json: row {index} is not an object and was left out")
            continue
        run = Run(
            method=str(row.get("method") or "unknown"),
            setting=str(row.get("setting") or ""),
            seed=str(row.get("seed", "–")),
            status=str(row.get("status") or "done"),
            root=None,
            error=None if row.get("error") is None else str(row["error"]),
            results=(*_agent_results(row.get("agents")), *_pooled(row)),
            results_file=file,
            row=index,
        )
        run.root = _cell_directory(study, root, row, run)
        if run.root is not None:
            _read_run_files(study, run, run.root)
        given = row.get("alarms")
        run.alarms = run.alarms or _alarms(given if isinstance(given, list) else [])
        study.runs.append(run)


def _agent_results(agents: object) -> Iterable[AgentResult]:
    for index, agent in enumerate(agents if isinstance(agents, list) else []):
        if isinstance(agent, dict):
            yield AgentResult(
                name=str(agent.get("name", index)),
                path=f"agents[{index}]",
                before=_measures(agent.get("before")),
                after=_measures(agent.get("after")),
            )


def _pooled(row: Line) -> Iterable[AgentResult]:
    values = row.get(POOLED)
    if isinstance(values, dict):
        before, after = (
            _measures({"maj_at_8": values.get(phase)}) for phase in ("before", "after")
        )
        yield AgentResult("votes pooled", POOLED, before, after)


def _measures(values: object) -> dict[str, float | None]:
    named = values if isinstance(values, dict) else {}
    return {key: number(named.get(key)) for key in MEASURES}


def _cell_directory(study: Study, root: Path, row: Line, run: Run) -> Path | None:
    """Where the row's run lies: inside the study, whatever the file says."""
    if run.method == BASE:
        return None
    name = f"{run.method}-{run.setting}-seed{run.seed}"
    given = row.get("run")
    candidates = [str(given)] if given else [f"cells/{name}", name]
    for candidate in candidates:
        relative = Path(candidate.replace("\0", ""))
        if relative.is_absolute() or ".." in relative.parts:
            study.notes.append(f"the run of {run.label} lies outside of its study: {candidate}")
            return None
        if (root / relative).is_dir():
            return root / relative
    if run.status == "done":
        study.notes.append(f"no run directory for {run.label}: {candidates[0]}")
    return None


def _load_run(study: Study, root: Path) -> Run:
    recipe = _recipe(root)
    run = Run(
        method=_supervision(recipe) or "unknown",
        setting=str(recipe.get("name") or root.absolute().name),
        seed=str(recipe.get("seed", "–")),
        status="unfinished",
        root=root,
    )
    _read_run_files(study, run, root)
    if run.models and all((root / "agents" / name / "final").is_dir() for name in run.models):
        run.status = "done"
    return run


def _recipe(root: Path) -> Line:
    try:
        loaded = yaml.safe_load((root / "recipe.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _supervision(recipe: Line) -> str:
    section = recipe.get("supervision")
    return str((section.get("method") if isinstance(section, dict) else section) or "")


def _read_run_files(study: Study, run: Run, root: Path) -> None:
    recipe = _recipe(root)
    run.supervision = _supervision(recipe)
    agents = recipe.get("agents")
    for agent in agents if isinstance(agents, list) else []:
        if isinstance(agent, dict) and "name" in agent:
            run.models[str(agent["name"])] = Path(str(agent.get("model") or "")).name
    run.metrics = _by_agent(_lines(study, root / "metrics.jsonl"))
    run.evaluations = _by_agent(_lines(study, root / "evaluations.jsonl"))
    run.alarms = _alarms(_lines(study, root / "health.jsonl"))
    for name in run.models:
        run.benchmarks[name] = _by_benchmark(_lines(study, _evaluations_file(root, name)))
    for name in run.metrics:
        run.models.setdefault(name, "")
    study.notes += _shared_with_benchmarks(root, run)


def _shared_with_benchmarks(root: Path, run: Run) -> Iterable[str]:
    """What the run's prompts share with the benchmarks that it measured."""
    try:
        shared = json.loads((root / "contamination.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    for name, one in shared.items() if isinstance(shared, dict) else ():
        counts = [
            number(one.get(key)) if isinstance(one, dict) else None
            for key in ("exact_problems", "near_problems", "problems")
        ]
        if any(counts[:2]):
            exact, near, problems = (int(count or 0) for count in counts)
            yield (
                f"{run.label}: of the {problems} problems of benchmark {name} {exact} stand in the "
                f"training prompts word for word and {near} nearly"
            )


def _lines(study: Study, file: Path) -> list[Line]:
    """Objects of a JSON-lines file with a whole step; a file that is not there has none."""
    try:
        raw = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    lines, bad = [], 0
    for entry in raw:
        try:
            line = json.loads(entry)
        except (ValueError, RecursionError):
            line = None
        step = number(line.get("step")) if isinstance(line, dict) else None
        if step is None or not 0 <= step < 1e9:
            bad += bool(entry.strip())
        else:
            lines.append({**line, "step": int(step)})
    if bad:
        study.notes.append(f"{file.parent.name}/{file.name}: {bad} lines could not be read")
    return lines


def _alarms(lines: Iterable[object]) -> list[Alarm]:
    """A results row may name its alarms by text alone."""
    alarms = []
    for line in lines:
        named = line if isinstance(line, dict) else {"message": line}
        alarms.append(
            Alarm(
                step=int(number(named.get("step")) or 0),
                agent=str(named.get("agent") or ""),
                detector=str(named.get("detector") or ""),
                is_alarm=str(named.get("level") or "alarm") == "alarm",
                message=str(named.get("message") or named.get("detector") or "alarm"),
            )
        )
    return alarms


def _by_agent(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Lines per agent in order of step; of a step written twice the later line counts."""
    agents: dict[str, dict[int, Line]] = {}
    for line in lines:
        agents.setdefault(str(line.get("agent", "–")), {})[line["step"]] = line
    return {name: [steps[step] for step in sorted(steps)] for name, steps in agents.items()}


def _evaluations_file(root: Path, agent: str) -> Path:
    """An agent's own file; a name that is no plain folder name leads nowhere."""
    return root / "agents" / Path(agent).name / "evaluations.jsonl"


def _by_benchmark(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, dict[int, Line]] = {}
    for line in lines:
        found.setdefault(str(line.get("benchmark", "–")), {})[line["step"]] = line
    return {name: [steps[step] for step in sorted(steps)] for name, steps in found.items()}


def _drop_doubles(study: Study) -> None:
    """A run given twice counts once; two runs of the same name stay apart."""
    seen_roots: set[Path] = set()
    seen_names: set[tuple[str, str, str]] = set()
    kept = []
    for run in study.runs:
        if run.root is not None:
            resolved = run.root.resolve()
            if resolved in seen_roots:
                continue
            seen_roots.add(resolved)
        if run.method != BASE and (run.method, run.setting, run.seed) in seen_names:
            place = run.root.absolute().name if run.root else f"row {run.row}"
            run.setting = f"{run.setting} ({place})"
        seen_names.add((run.method, run.setting, run.seed))
        kept.append(run)
    study.runs = kept
