"""The layout of a run on disk, its identity, and the lock that keeps it to one owner.

RUN/recipe.yaml            the resolved recipe
RUN/run.json               run id, thread count, launcher: fixed when the run is made
RUN/environment.json       machine and versions of the latest start
RUN/contamination.json     what training shares with the benchmarks that are measured
RUN/metrics.jsonl          one line a step and agent, in that order
RUN/agents/NAME/step-N/    checkpoint after step N: a Hugging Face directory + training/
RUN/agents/NAME/final/     the trained model: an ordinary Hugging Face directory
RUN/agents/NAME/evaluations.jsonl   benchmarks measured while training, where the recipe asks
RUN/agents/NAME/journal.jsonl, pages/, log.txt
RUN/restarts.jsonl         one line each time the cohort went on by itself after a loss
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from corl.config import Recipe, load_recipe
from corl.errors import CheckpointError
from corl.run.files import write_atomically


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run keeps from its first start, so that a resumed one is the same run."""

    run_id: str
    threads: dict[str, int]
    """CPU threads of each agent."""
    launch: str
    """in_process, processes, ray or site."""
    steps: int
    """Steps of the whole run."""
    prompts: dict[str, str] = field(default_factory=dict)
    """Digest of each agent's rows, wording included: a resumed run reads the same file."""


class RunDirectory:
    """Paths and identity of one run."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.metrics = self.root / "metrics.jsonl"

    @property
    def recipe_file(self) -> Path:
        """The resolved recipe."""
        return self.root / "recipe.yaml"

    @property
    def facts_file(self) -> Path:
        """The run's identity."""
        return self.root / "run.json"

    @property
    def contamination(self) -> Path:
        """What the training prompts share with the benchmarks that are measured."""
        return self.root / "contamination.json"

    def agent(self, name: str) -> Path:
        """Everything of one agent."""
        return self.root / "agents" / name

    def checkpoint(self, name: str, step: int) -> Path:
        """The agent's checkpoint after a step."""
        return self.agent(name) / f"step-{step}"

    def final(self, name: str) -> Path:
        """The agent's trained model."""
        return self.agent(name) / "final"

    def journal(self, name: str) -> Path:
        """The agent's own metrics, from which `metrics.jsonl` is assembled."""
        return self.agent(name) / "journal.jsonl"

    def evaluations(self, name: str) -> Path:
        """Benchmarks measured on the agent while it trained."""
        return self.agent(name) / "evaluations.jsonl"

    @classmethod
    def create(cls, root: str | Path, recipe: Recipe, facts: RunFacts) -> RunDirectory:
        """Make a new run. Raises CheckpointError where one is already, or it cannot be written."""
        run = cls(root)
        run.require_new()
        try:
            for agent in recipe.agents:
                run.agent(agent.name).mkdir(parents=True, exist_ok=True)
            write_atomically(run.recipe_file, recipe.to_yaml())
            write_atomically(run.facts_file, json.dumps(asdict(facts), indent=1))
        except OSError as error:
            raise CheckpointError(f"run directory {run.root} cannot be written: {error}") from None
        return run

    def require_new(self) -> None:
        """Raise CheckpointError unless a run can be made here."""
        if self.facts_file.exists():
            raise CheckpointError(
                f"{self.root} already holds a run; continue it with `corl resume {self.root}` "
                "or give another --out"
            )
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            probe = self.root / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise CheckpointError(
                f"output {self.root} cannot be written: {error.strerror}; give another --out"
            ) from None

    def load(self) -> tuple[Recipe, RunFacts]:
        """Recipe and identity of an existing run. Raises CheckpointError where there is none."""
        try:
            facts = RunFacts(**json.loads(self.facts_file.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise CheckpointError(f"{self.root} is not a run of corl: {error}") from None
        return load_recipe(self.recipe_file), facts

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this directory meanwhile."""
        with (self.root / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CheckpointError(
                    f"another process is training in {self.root}; stop it first"
                ) from None
            yield

    @contextmanager
    def agent_locked(self, name: str, *, wait_s: float = 60.0) -> Iterator[None]:
        """Keep other processes from training this agent here meanwhile.

        A record lock: it is dropped with the process that holds it, its children do not
        inherit it, and network file systems keep it between machines. Raises
        CheckpointError naming the holder where it is not free within `wait_s` seconds.
        """
        deadline = time.monotonic() + wait_s
        with (self.agent(name) / ".lock").open("a+") as lock:
            while True:
                try:
                    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if error.errno not in (errno.EACCES, errno.EAGAIN):
                        raise
                if time.monotonic() > deadline:
                    lock.seek(0)
                    raise CheckpointError(
                        f"an earlier process of agent {name!r} still holds {lock.name}: "
                        f"{lock.read().strip() or 'it left no name'}; end it first"
                    )
                time.sleep(0.1)
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            lock.flush()
            yield


def new_run_id() -> str:
    """A random id: ballots of one run can never be taken for another's."""
    return secrets.token_hex(8)
