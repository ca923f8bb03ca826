"""Answer sheets of many checkpoints, in worker processes of one thread each.

Small models leave a core idle when one process measures them in turn; a GPU is filled by one. Each
sheet is a function of checkpoint, prompts and asking alone, so the number of workers changes no
figure. Workers load torch once and serve the whole study.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from types import TracebackType
from typing import Self

from corl.data.prompts import PromptRow
from corl.errors import AgentFailed
from corl.evaluation.accuracy import AnswerSheet, answer_sheet
from corl.evaluation.completions import Asking
from corl.launch.placement import available_cores


@dataclass(frozen=True, slots=True)
class Question:
    """One checkpoint to be asked all prompts of a list."""

    model: str
    """Directory or hub id."""
    asking: Asking
    dtype: str = "auto"
    device: str = "auto"
    trust_remote_code: bool = False


class Measurer:
    """Asks checkpoints; a context manager that ends its workers."""

    def __init__(self, workers: int | None = None) -> None:
        """workers: processes; None: one a core on a CPU, one here where there is a GPU."""
        self._workers = default_workers() if workers is None else workers
        self._pool: ProcessPoolExecutor | None = None
        self._context = get_context("spawn")
        self._abandoned = self._context.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def sheets(self, questions: Sequence[Question], rows: Sequence[PromptRow]) -> list[AnswerSheet]:
        """One sheet a question, in order. Raises AgentFailed where a worker died."""
        if self._workers == 1:
            return [_ask(question, rows) for question in questions]
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._workers,
                mp_context=self._context,
                initializer=_start_worker,
                initargs=(os.getpid(), self._abandoned),
            )
        try:
            asked = [self._pool.submit(_ask, question, rows) for question in questions]
            return [one.result() for one in asked]
        except KeyboardInterrupt:
            self._abandoned.set()  # nobody waits for the answers of a large model any more
            raise
        except BrokenProcessPool:
            self._close()
            raise AgentFailed(
                "a process that measures checkpoints died; out of memory is a common cause: "
                "set evaluate.workers: 1"
            ) from None

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def default_workers() -> int:
    """Processes that measure where the study names no number."""
    import torch

    return 1 if torch.cuda.is_available() else available_cores()


def _start_worker(parent: int, abandoned: Event) -> None:
    # A pool's workers hold both ends of their queue: without this they would outlive a kill.
    threading.Thread(target=_end_early, args=(parent, abandoned), daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the study's business
    import torch

    torch.set_num_threads(1)


def _end_early(parent: int, abandoned: Event) -> None:
    while os.getppid() == parent and not abandoned.wait(0.5):
        pass
    os._exit(1)


def _ask(question: Question, rows: Sequence[PromptRow]) -> AnswerSheet:

    from corl.policy import load_policy

    policy = load_policy(
        Path(question.model) if Path(question.model).exists() else question.model,
        dtype=question.dtype,  # type: ignore[arg-type]
        device=question.device,
        trust_remote_code=question.trust_remote_code,
    )
    return answer_sheet(policy, rows, question.asking)
