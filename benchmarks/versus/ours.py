"""Co-RL's side: one agent of the cohort as `corl train` builds it, one step a command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from versus.work import Work, recipe_of


def prepare(work: Work, folder: Path) -> None:
    """Make the run directory that the agents' processes read."""
    from corl.config import parse_recipe
    from corl.launch.preflight import preflight
    from corl.run.directory import RunDirectory, RunFacts

    recipe = parse_recipe(recipe_of(work), source="vs_trl")
    checked = preflight(recipe)
    facts = RunFacts("vs-trl", checked.threads, checked.launcher, checked.steps)
    RunDirectory.create(folder, recipe, facts)


def run(pipe: Connection, work: Work, folder: Path, name: str, port: int) -> None:
    """The body of one agent's process."""
    import torch
    from torch.distributed import TCPStore

    from corl.exchange.store import StoreExchange
    from corl.launch.assembly import build_agent, run_agents
    from corl.launch.preflight import load_all_prompts
    from corl.run.directory import RunDirectory
    from versus.gate import Gate

    torch.set_num_threads(work.threads)
    directory = RunDirectory(folder)
    recipe, facts = directory.load()
    prompts = load_all_prompts(recipe)[name]
    with _never_ending(not work.is_ragged):
        agent = build_agent(
            name,
            recipe=recipe,
            run=directory,
            facts=facts,
            prompts=prompts,
            done_step=0,
            device=work.device,
        )
    store = TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    gate = Gate(pipe, device=work.device)
    journal = directory.journal(name)

    class Control:
        def ends_before(self, step: int, names: Sequence[str]) -> bool:
            return not gate.step_begins()

    def report() -> None:
        gate.step_ends(**_figures(json.loads(journal.read_text().splitlines()[-1]), work))

    run_agents(
        [agent],
        StoreExchange(store, num_agents=len(work.names), timeout_s=600.0),
        recipe=recipe,
        run=directory,
        facts=facts,
        num_rows=len(prompts.rows),
        done_step=0,
        control=Control(),
        report=report,
    )


def _figures(record: dict[str, Any], work: Work) -> dict[str, float]:
    time = record["time"]
    return {
        "sample_s": time["sample"],
        "learn_s": time["learn"],
        "wait_s": time["wait"],
        "tokens": round(record["length_mean"] * work.rows),
    }


class _never_ending:
    """While an agent is built: its policy stops at no token, so that every length is the cap."""

    def __init__(self, is_on: bool) -> None:
        self._is_on = is_on

    def __enter__(self) -> None:
        from corl.launch import assembly

        self._load = assembly.load_policy
        if self._is_on:
            assembly.load_policy = lambda *args, **kwargs: replace(
                self._load(*args, **kwargs), stop_ids=frozenset()
            )

    def __exit__(self, *_: object) -> None:
        from corl.launch import assembly

        assembly.load_policy = self._load
