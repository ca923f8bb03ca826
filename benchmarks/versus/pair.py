"""Two workers of one side, driven step by step."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from versus import ours, theirs
from versus.work import Work

SIDES: dict[str, Callable[..., None]] = {"corl": ours.run, "trl": theirs.run}


class Pair(AbstractContextManager["Pair"]):
    """The two agents of one side, each in a process of its own, kept loaded between steps."""

    def __init__(self, side: str, work: Work) -> None:
        from torch.distributed import TCPStore

        self._folder = Path(tempfile.mkdtemp(prefix=f"vs-{side}-"))
        if side == "corl":
            ours.prepare(work, self._folder)
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        context = multiprocessing.get_context("spawn")
        self._pipes, self._processes = [], []
        os.environ["OMP_NUM_THREADS"] = str(work.threads)
        for name in work.names:
            mine, yours = context.Pipe()
            process = context.Process(
                target=SIDES[side],
                args=(yours, work, self._folder, name, self._store.port),
                daemon=True,
            )
            process.start()
            yours.close()
            self._pipes.append(mine)
            self._processes.append(process)
        for pipe in self._pipes:
            assert pipe.recv() == {"ready": True}

    def step(self) -> list[dict[str, float]]:
        """Train one step; the figures of both agents. The pair's time is the longer one's."""
        for pipe in self._pipes:
            pipe.send("step")
        figures = [pipe.recv() for pipe in self._pipes]
        for pipe in self._pipes:
            assert pipe.recv() == {"ready": True}
        return figures

    def memory(self) -> list[dict[str, float]]:
        """End both workers; their memory."""
        for pipe in self._pipes:
            pipe.send("stop")
        return [pipe.recv() for pipe in self._pipes]

    def __exit__(self, *_: Any) -> None:
        for process in self._processes:
            process.kill()
            process.join()
        shutil.rmtree(self._folder, ignore_errors=True)
