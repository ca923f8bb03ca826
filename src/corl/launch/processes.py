"""One process an agent, ballots through torch's TCPStore.

The launcher holds the store. One failing agent ends the run within a second,
with its own error shown; an orphaned agent ends itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from corl.launch.agent_task import AgentTask, Ending, run_agent
from corl.launch.control import StopRequest
from corl.launch.job import Job
from corl.launch.watch import lost, watch

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class _Worker:
    name: str
    process: BaseProcess
    outcome: Connection
    job: Job

    def ending(self) -> Ending | None:
        """See `Worker.ending`."""
        ended = not self.process.is_alive()
        if self.outcome.poll():
            try:
                ending: Ending = self.outcome.recv()
                return ending
            except EOFError:
                self.process.join(timeout=5)
                ended = True
        if not ended:
            return None
        code = self.process.exitcode
        died = f"was killed by signal {-code}" if code and code < 0 else f"ended with code {code}"
        log = self.job.run.agent(self.name) / "log.txt"
        raise lost(
            self.job,
            f"agent {self.name!r} {died}",
            f"; out of memory is a common cause (its log: {log})",
        )


def run_in_processes(job: Job, *, stop: StopRequest, report: Callable[[], None]) -> int:
    """Train each agent in a process of its own. Returns the last step done.

    Raises AgentFailed naming the first agent that ended with an error.
    """
    from torch.distributed import TCPStore

    store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False)
    workers = [_start(job, name, store.port) for name in job.names]
    try:
        last_step = watch(job, workers, store, stop=stop, report=report)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
    report()
    return last_step


def _start(job: Job, name: str, port: int) -> _Worker:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    task = AgentTask(job.run.root.absolute(), name, job.done_step, job.devices[name])
    process = context.Process(
        target=_agent_process, args=(task, port, sender), name=f"corl-{name}", daemon=True
    )
    with _environment(OMP_NUM_THREADS=str(job.facts.threads[name]), TORCH_CPP_LOG_LEVEL="ERROR"):
        process.start()
    sender.close()
    return _Worker(name, process, receiver, job)


def _agent_process(task: AgentTask, port: int, outcome: Connection) -> None:
    """The body of an agent's process."""
    # Stops come from the launcher, so that all agents end at one step.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    ending = run_agent(task, partial(_store_at, port))
    outcome.send(ending)
    if ending.last_step is None:
        sys.exit(1)


def _store_at(port: int) -> Any:
    from torch.distributed import TCPStore

    return TCPStore(_HOST, port, is_master=False, wait_for_workers=False)


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
