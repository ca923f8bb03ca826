"""Each agent a Ray actor in a placement group of its own, ballots through a named actor.

Agents may differ in everything: CPUs, GPUs, resources of the cluster's own,
runtime environment, node. The run directory has to lie on a file system that
the launcher and every agent's node share; that is checked before a weight is
loaded. This is the only file that imports Ray.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from corl import __version__
from corl.config import AgentConfig, Recipe
from corl.errors import AgentFailed, CorlError, ExchangeLost, RecipeError
from corl.exchange.ray import BallotBox, BoxStore
from corl.launch.agent_task import AgentTask, Ending, run_agent
from corl.launch.cluster import check_fits, describe, requests_per_agent
from corl.launch.control import StopRequest
from corl.launch.job import Job
from corl.launch.watch import lost, watch
from corl.run.directory import RunDirectory

_NAMESPACE = "corl"
_CALL_S = 60.0
"""Longest wait for one call of the ballot box."""
_LEAST_WAIT_S = 60.0
"""For resources that the cluster has and others hold."""
_COME_UP_S = 600.0
"""For an agent's process to start: a runtime environment may have packages to install."""
_SEEN_S = 15.0
"""For a network file system to show one machine what another wrote."""
_POLL_S = 0.2
_VERDICT_S = 15.0
"""For the cluster to notice that a node is gone."""


def check_cluster(recipe: Recipe, *, threads: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """Join the cluster and hold what the agents ask for against what it has.

    Returns each agent's request. Raises RecipeError where Ray is absent, the
    cluster cannot be reached, a runtime environment is malformed or a request
    cannot be met.
    """
    ray = _connect(recipe)
    for agent in recipe.agents:
        _runtime_env(agent, threads=threads[agent.name])
    deadline = time.monotonic() + recipe.ray.wait_s
    while True:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        has_gpus = any(node.get("GPU") for node in nodes)
        requests = requests_per_agent(recipe, threads=threads, has_gpus=has_gpus)
        try:
            check_fits(requests, nodes, where=f"the Ray cluster at {_address(ray)}")
        except RecipeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)
        else:
            return requests


def run_in_ray(job: Job, *, stop: StopRequest, report: Callable[[], None]) -> int:
    """Train each agent in an actor of its own. Returns the last step done.

    Raises AgentFailed naming the first agent that ended with an error, could
    not be placed, or sits where it does not see the run directory.
    """
    ray = _connect(job.recipe)
    start = _Start(ray, job, stop)
    try:
        workers = start.place()
        last_step = watch(job, workers, start.store, stop=stop, report=report)
    except ExchangeLost as error:
        raise lost(job, str(error), "") from None
    finally:
        start.take_down()
    report()
    return last_step


@dataclass(frozen=True, slots=True)
class _Sight:
    """What an agent's node sees of the run, and who it is."""

    run_id: str | None
    """Of the run directory's run.json; None where there is none."""
    host: str
    pid: int
    version: str


class _AgentActor:
    """An agent's process on whatever node it was given."""

    def look(self, root: Path, name: str, run_id: str, mark: str) -> _Sight:
        """Read the run's id, and leave a mark that the launcher has to find."""
        run, deadline = RunDirectory(root), time.monotonic() + _SEEN_S
        while (seen := _run_id(run)) != run_id and time.monotonic() < deadline:
            time.sleep(0.2)
        if seen == run_id:
            (run.agent(name) / mark).touch()
        return _Sight(seen, socket.gethostname(), os.getpid(), __version__)

    def train(self, task: AgentTask, box: str) -> Ending:
        """The agent's whole training."""
        return run_agent(task, partial(_store_of, box))


@dataclass(frozen=True, slots=True)
class _Worker:
    """An agent's actor, as the launcher holds it."""

    job: Job
    name: str
    actor: Any
    trains: Any
    """The promise of its `Ending`."""
    node: str
    place: str
    """Host and process, for a person."""

    def ending(self) -> Ending | None:
        """See `Worker.ending`."""
        import ray

        if not ray.wait([self.trains], timeout=0)[0]:
            return None
        try:
            ending: Ending = ray.get(self.trains)
            return ending
        except ray.exceptions.RayError as error:
            raise _lost_on(ray, self.job, self.name, self.node, self.place, error) from None


class _Start:
    """One start of the cohort on the cluster: what was placed, and how to take it down."""

    def __init__(self, ray: Any, job: Job, stop: StopRequest) -> None:
        self._ray, self._job, self._stop = ray, job, stop
        self._token = secrets.token_hex(4)
        self._requests = requests_per_agent(
            job.recipe,
            threads=job.facts.threads,
            # As it was checked: what a lost node had comes back, or is waited for.
            has_gpus=any(device != "cpu" for device in job.devices.values()),
        )
        self._groups: dict[str, Any] = {}
        self._actors: dict[str, Any] = {}
        self._box: Any = None
        self._box_name = f"ballots-{job.facts.run_id}-{self._token}"

    @property
    def store(self) -> BoxStore:
        """The launcher's hold of the ballot box."""
        return BoxStore(partial(_call, self._box))

    def place(self) -> list[_Worker]:
        """Reserve, start and look around, then let every agent train."""
        ray, job = self._ray, self._job
        self._reserve()
        # The box lies beside the launcher: the cohort needs both.
        here = ray.get_runtime_context().get_node_id()
        self._box = (
            ray.remote(BallotBox)
            .options(
                name=self._box_name,
                namespace=_NAMESPACE,
                num_cpus=0,
                scheduling_strategy=_on_node(here),
            )
            .remote(len(job.names))
        )
        for name in job.names:
            self._actors[name] = self._agent(name)
        sights = self._look_around()
        _call(self._box, "check", [])
        root = job.run.root.absolute()
        workers = []
        for name, (node, sight) in sights.items():
            task = AgentTask(root, name, job.done_step, job.devices[name])
            trains = self._actors[name].train.remote(task, self._box_name)
            place = f"{sight.host}, process {sight.pid}"
            workers.append(_Worker(job, name, self._actors[name], trains, node, place))
        return workers

    def take_down(self) -> None:
        """End every actor and give every reservation back; nothing here may hide an error."""
        ray = self._ray
        for actor in (*self._actors.values(), self._box):
            if actor is not None:
                with suppress(Exception):
                    ray.kill(actor, no_restart=True)
        for group in self._groups.values():
            with suppress(Exception):
                ray.util.remove_placement_group(group)

    def _reserve(self) -> None:
        ray, job = self._ray, self._job
        for name, asked in self._requests.items():
            self._groups[name] = ray.util.placement_group(
                [asked], strategy="STRICT_PACK", name=f"{job.facts.run_id}-{name}-{self._token}"
            )
        wait_s = job.recipe.restarts.wait_s if job.restarts else job.recipe.ray.wait_s
        deadline = time.monotonic() + max(wait_s, _LEAST_WAIT_S)
        waiting = dict(self._groups)
        while waiting:
            waiting = {
                name: group for name, group in waiting.items() if not group.wait(timeout_seconds=0)
            }
            if waiting and (self._stop.requested or time.monotonic() > deadline):
                name = next(iter(waiting))
                free = describe(ray.available_resources())
                why = "a stop was asked for" if self._stop.requested else "none was free in time"
                raise AgentFailed(
                    f"agent {name!r} found no node for {describe(self._requests[name])}: {why} "
                    f"(free now: {free}). `corl resume {job.run.root}` tries again"
                )
            time.sleep(_POLL_S)

    def _agent(self, name: str) -> Any:
        asked, job = dict(self._requests[name]), self._job
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        return (
            self._ray.remote(_AgentActor)
            .options(
                name=f"agent-{name}-{job.facts.run_id}-{self._token}",
                namespace=_NAMESPACE,
                num_cpus=asked.pop("CPU", 0),
                num_gpus=asked.pop("GPU", 0),
                memory=asked.pop("memory", None),
                resources=asked,
                max_restarts=0,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    placement_group=self._groups[name], placement_group_bundle_index=0
                ),
                runtime_env=_runtime_env(job.recipe.agent(name), threads=job.facts.threads[name]),
            )
            .remote()
        )

    def _look_around(self) -> dict[str, tuple[str, _Sight]]:
        """Node and sight of each agent. Raises AgentFailed where one does not see the run."""
        ray, job = self._ray, self._job
        mark = f".seen-{self._token}"
        looks = {
            name: actor.look.remote(job.run.root.absolute(), name, job.facts.run_id, mark)
            for name, actor in self._actors.items()
        }
        deadline = time.monotonic() + _COME_UP_S
        found = {}
        for name, look in looks.items():
            while not ray.wait([look], timeout=_POLL_S)[0]:
                if time.monotonic() > deadline:
                    raise lost(
                        job,
                        f"agent {name!r} did not come up on its node within {_COME_UP_S:.0f} s",
                        " (look at the node's own logs)",
                    )
            node = _node_of(self._groups[name], ray)
            try:
                sight: _Sight = ray.get(look)
            except ray.exceptions.RuntimeEnvSetupError as error:
                raise AgentFailed(
                    f"agent {name!r}: its runtime_env cannot be set up: {_line(error)}"
                ) from None
            except ray.exceptions.RayTaskError as error:
                raise AgentFailed(
                    f"agent {name!r} cannot begin on node {node}: {_line(error.cause)}; every node "
                    "needs corl, or the agent's runtime_env brings it"
                ) from None
            except ray.exceptions.RayError as error:
                if "creation task" in str(error):
                    why = str(error).strip().splitlines()[-1].strip()
                    raise AgentFailed(
                        f"agent {name!r} cannot begin on node {node}: {why}; every node needs "
                        "corl, or the agent's runtime_env brings it"
                    ) from None
                raise _lost_on(ray, job, name, node, "unknown", error) from None
            self._check_sight(name, sight, job.run.agent(name) / mark)
            found[name] = (node, sight)
        return found

    def _check_sight(self, name: str, sight: _Sight, mark: Path) -> None:
        root = self._job.run.root.absolute()
        where = f"agent {name!r} was placed on {sight.host}, which"
        share = "put the run on a file system that the launcher and every node share (--out)"
        if sight.run_id != self._job.facts.run_id:
            seen = f"another run ({sight.run_id})" if sight.run_id else "no run"
            raise AgentFailed(f"{where} sees {seen} at {root}; {share}")
        deadline = time.monotonic() + _SEEN_S
        while not mark.exists():
            if time.monotonic() > deadline:
                raise AgentFailed(f"{where} writes to another {root} than this one; {share}")
            time.sleep(0.2)
        mark.unlink()
        if sight.version != __version__:
            raise AgentFailed(
                f"{where} has corl {sight.version}, but the launcher has {__version__}; install "
                "one version on all nodes"
            )


def _connect(recipe: Recipe) -> Any:
    """Ray, joined to a cluster. It stays joined until this process ends."""
    try:
        import ray
    except ImportError:
        raise RecipeError("launch: ray needs corl[ray]; install that extra") from None
    if ray.is_initialized():
        return ray
    options: dict[str, Any] = {
        "namespace": _NAMESPACE,
        "log_to_driver": False,
        "logging_level": "ERROR",
    }
    address = recipe.ray.address
    try:
        if address != "local":
            try:
                ray.init(address=address or "auto", **options)
                return ray
            except ConnectionError:
                if address or os.environ.get("RAY_ADDRESS"):
                    raise
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(address="local", include_dashboard=False, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        named = address or os.environ.get("RAY_ADDRESS") or "this machine"
        raise RecipeError(
            f"the Ray cluster at {named} cannot be joined: {_line(error)}; start one with "
            "`ray start --head`, or correct ray.address or RAY_ADDRESS"
        ) from None
    return ray


def _runtime_env(agent: AgentConfig, *, threads: int) -> dict[str, Any]:
    """The agent's runtime environment, with its thread count. Raises RecipeError."""
    from ray.runtime_env import RuntimeEnv

    own = dict(agent.runtime_env)
    variables = own.pop("env_vars", {})
    try:
        made = RuntimeEnv(
            **own,
            env_vars={
                "OMP_NUM_THREADS": str(threads),
                "TORCH_CPP_LOG_LEVEL": "ERROR",
                **{key: str(value) for key, value in dict(variables).items()},
            },
        )
    except Exception as error:
        raise RecipeError(f"agent {agent.name!r}: runtime_env: {_line(error)}") from None
    return dict(made)


def _store_of(box: str) -> BoxStore:
    import ray

    try:
        return BoxStore(partial(_call, ray.get_actor(box, namespace=_NAMESPACE)))
    except ValueError:
        raise ExchangeLost(f"the ballot box {box} is gone") from None


def _call(box: Any, method: str, *arguments: Any) -> Any:
    """One call of the ballot box. Raises ExchangeLost where it cannot be reached."""
    import ray

    try:
        return ray.get(getattr(box, method).remote(*arguments), timeout=_CALL_S)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, CorlError):
            raise error.cause from None
        raise
    except ray.exceptions.GetTimeoutError:
        raise ExchangeLost(f"the ballot box did not answer within {_CALL_S:.0f} s") from None
    except ray.exceptions.RayError as error:
        raise ExchangeLost(f"the ballot box is gone: {_line(error)}") from None


def _lost_on(ray: Any, job: Job, name: str, node: str, place: str, error: Exception) -> CorlError:
    """The error of an agent whose actor died."""
    log = job.run.agent(name) / "log.txt"
    what = "its process died; out of memory is a common cause"
    if "its node has died" in str(error) or _has_died(ray, node, error):
        what = "its node died"
    return lost(
        job,
        f"agent {name!r} on {place} was lost: {what}",
        f" (its log: {log}; Ray says: {_line(error)})",
    )


def _has_died(ray: Any, node: str, error: Exception) -> bool:
    """Whether the cluster counts the node as dead.

    It learns of a node that is gone by missed heartbeats, later than of a call that broke off.
    """
    is_open = isinstance(error, ray.exceptions.ActorUnavailableError)
    deadline = time.monotonic() + (_VERDICT_S if is_open else 0.0)
    while True:
        if any(one["NodeID"] == node and not one["Alive"] for one in ray.nodes()):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)


def _node_of(group: Any, ray: Any) -> str:
    table = ray.util.placement_group_table(group)
    return str(next(iter(table["bundles_to_node_id"].values()), ""))


def _on_node(node: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id=node, soft=False)


def _address(ray: Any) -> str:
    return str(ray.get_runtime_context().gcs_address)


def _run_id(run: RunDirectory) -> str | None:
    try:
        return run.load()[1].run_id
    except CorlError:
        return None


def _line(error: object) -> str:
    lines: Sequence[str] = str(error).strip().splitlines()
    return " ".join(line.strip() for line in lines[:3]) if lines else type(error).__name__
