"""One process an agent, ballots through torch's TCPStore.

The launcher trains nothing: it holds the store, shows progress, passes stops on
and watches the agents. One failing agent ends the run within a second, with its
own error shown; an orphaned agent ends itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from corl.errors import AgentFailed
from corl.launch.control import StopRequest, StoreControl, agree_on_stop
from corl.launch.job import Job
from corl.run.directory import RunDirectory

_HOST = "127.0.0.1"
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class _Task:
    """What an agent's process is told. The rest it reads from the run directory: a process
    that dies before it has read a long message leaves its launcher writing for ever."""

    root: Path
    name: str
    port: int
    done_step: int
    device: str


@dataclass(frozen=True, slots=True)
class _Worker:
    name: str
    process: BaseProcess
    outcome: Connection


def run_in_processes(job: Job, *, stop: StopRequest, report: Callable[[], None]) -> int:
    """Train each agent in a process of its own. Returns the last step done.

    Raises AgentFailed naming the first agent that ended with an error.
    """
    from torch.distributed import TCPStore

    store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False)
    workers = [_start(job, name, store.port) for name in job.names]
    try:
        last_steps = _watch(job, workers, store, stop=stop, report=report)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
    report()
    return min(last_steps)


def _start(job: Job, name: str, port: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    task = _Task(job.run.root.absolute(), name, port, job.done_step, job.devices[name])
    process = context.Process(
        target=_agent_process, args=(task, sender), name=f"corl-{name}", daemon=True
    )
    with _environment(OMP_NUM_THREADS=str(job.facts.threads[name]), TORCH_CPP_LOG_LEVEL="ERROR"):
        process.start()
    sender.close()
    return _Worker(name, process, receiver)


def _watch(
    job: Job,
    workers: list[_Worker],
    store: Any,
    *,
    stop: StopRequest,
    report: Callable[[], None],
) -> list[int]:
    outcomes: dict[str, int] = {}
    stop_passed_on = False
    while len(outcomes) < len(workers):
        for worker in workers:
            if worker.name not in outcomes and (done := _outcome(job, worker)) is not None:
                outcomes[worker.name] = done
        if stop.requested and not stop_passed_on:
            agree_on_stop(store, job.names)
            stop_passed_on = True
        report()
        time.sleep(_POLL_S)
    return list(outcomes.values())


def _outcome(job: Job, worker: _Worker) -> int | None:
    """The last step of an agent that is done, None while it trains."""
    ended = not worker.process.is_alive()
    log = job.run.agent(worker.name) / "log.txt"
    if worker.outcome.poll():
        try:
            kind, value = worker.outcome.recv()
        except EOFError:
            kind, value = "lost", None
        if kind == "done":
            return int(value)
        if kind == "failed":
            raise AgentFailed(f"agent {worker.name!r} failed: {value} (whole story: {log})")
        worker.process.join(timeout=5)
        ended = True
    if ended:
        code = worker.process.exitcode
        died = f"was killed by signal {-code}" if code and code < 0 else f"ended with code {code}"
        raise AgentFailed(
            f"agent {worker.name!r} {died}; out of memory is a common cause (its log: {log}). "
            f"The last checkpoint is whole: corl resume {job.run.root}"
        )
    return None


def _agent_process(task: _Task, outcome: Connection) -> None:
    """The body of an agent's process."""
    # Stops come from the launcher, so that all agents end at one step.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    _log_to(RunDirectory(task.root).agent(task.name) / "log.txt")
    try:
        outcome.send(("done", _train_one(task)))
    except Exception as error:
        traceback.print_exc()
        message = str(error).strip() or type(error).__name__
        outcome.send(("failed", message.splitlines()[0]))
        sys.exit(1)


def _train_one(task: _Task) -> int:
    from torch.distributed import TCPStore

    from corl.exchange.store import StoreExchange
    from corl.launch.assembly import build_agent, run_agents
    from corl.launch.preflight import load_all_prompts

    run = RunDirectory(task.root)
    recipe, facts = run.load()
    prompts = load_all_prompts(recipe)[task.name]
    agent = build_agent(
        task.name,
        recipe=recipe,
        run=run,
        facts=facts,
        prompts=prompts,
        done_step=task.done_step,
        device=task.device,
    )
    store = TCPStore(_HOST, task.port, is_master=False, wait_for_workers=False)
    exchange = StoreExchange(
        store, num_agents=len(recipe.agents), timeout_s=recipe.exchange.timeout_s
    )
    return run_agents(
        [agent],
        exchange,
        recipe=recipe,
        run=run,
        facts=facts,
        num_rows=len(prompts.rows),
        done_step=task.done_step,
        control=StoreControl(store),
    )


def _log_to(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


@contextmanager
def _environment(**values: str) -> Any:
    """Environment variables for the processes started inside."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
