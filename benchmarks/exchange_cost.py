"""What one step's exchange costs, by carrier and number of agents, and what stragglers cost.

    python benchmarks/exchange_cost.py
    python benchmarks/exchange_cost.py --redis /path/to/redis-server

The first table is measured: threads that each hold a ballot of 128 votes and want their peer's, all
started at once, so it is the exchange with nobody to wait for. The second is simulated: agents in a
ring whose sampling and learning times vary, and how much of the pace of a lone agent is left.
"""

from __future__ import annotations

import argparse
import heapq
import random
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from corl.exchange import Ballot, LocalExchange, rows_digest
from corl.exchange.broker import BrokerExchange
from corl.exchange.signing import Signer, Verifier
from corl.exchange.store import StoreExchange

AGENTS = (2, 4, 8, 16, 64)
VOTES = 128
STEPS = 30
SAMPLE_SHARE = 0.7
"""Of a step; the rest is learning."""
SIMULATED_STEPS = 300


def ballot(name: str, step: int) -> Ballot:
    """A step's ballot with answers of a few characters."""
    digest = rows_digest(str(row) for row in range(VOTES))
    votes = tuple(f"number:{(row * 7919 + step) % 1000}" for row in range(VOTES))
    return Ballot("bench", step, name, "policy", digest, votes)


def ring(names: list[str]) -> dict[str, list[str]]:
    """Each is graded by the one before it."""
    return {name: [names[index - 1]] for index, name in enumerate(names)}


def measure(make: Callable[[str], Any], names: list[str]) -> float:
    """Median seconds from having a ballot to having the peer's, over agents and steps."""
    graders, seen = ring(names), []
    exchanges = {name: make(name) for name in names}
    for step in range(1, STEPS + 1):
        gate = threading.Barrier(len(names))

        def one(name: str, step: int = step, gate: Any = gate) -> None:
            own = ballot(name, step)
            gate.wait()
            started = time.perf_counter()
            exchanges[name].swap([own], graders={name: graders[name]})
            seen.append(time.perf_counter() - started)

        threads = [threading.Thread(target=one, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for exchange in exchanges.values():
        if isinstance(exchange, BrokerExchange):
            exchange.close()
    return statistics.median(seen)


def local(names: list[str]) -> float:
    """Median seconds of a step's exchange in one process."""
    graders, seen = ring(names), []
    for step in range(1, STEPS + 1):
        ballots = [ballot(name, step) for name in names]
        started = time.perf_counter()
        LocalExchange().swap(ballots, graders=graders)
        seen.append(time.perf_counter() - started)
    return statistics.median(seen)


def by_store(names: list[str]) -> float:
    """Through torch's TCPStore, a client an agent."""
    from torch.distributed import TCPStore

    host = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def make(name: str) -> StoreExchange:
        client = TCPStore("127.0.0.1", host.port, is_master=False, wait_for_workers=False)
        return StoreExchange(client, num_agents=len(names), timeout_s=60)

    return measure(make, names)


def by_broker(names: list[str], port: int, folder: Path) -> float:
    """Through a Redis server, signed, a client and a key an agent."""
    import redis

    redis.Redis(port=port).flushall()
    write_keys(folder, names)
    graders = ring(names)

    def make(name: str) -> BrokerExchange:
        return BrokerExchange(
            redis.Redis(port=port),
            signer=Signer(folder / f"{name}.pem"),
            verifiers={peer: Verifier(folder / f"{peer}.pub") for peer in graders[name]},
            timeout_s=60,
            keep_s=600,
            max_bytes=1 << 20,
            on_refusal=print,
        )

    return measure(make, names)


def write_keys(folder: Path, names: list[str]) -> None:
    """A key pair for each name."""
    from cryptography.hazmat.primitives import serialization as ser
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for name in names:
        key = Ed25519PrivateKey.generate()
        (folder / f"{name}.pem").write_bytes(
            key.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, ser.NoEncryption())
        )
        (folder / f"{name}.pub").write_bytes(
            key.public_key().public_bytes(ser.Encoding.PEM, ser.PublicFormat.SubjectPublicKeyInfo)
        )


def pace(num_agents: int, *, spread: float, ahead: int, slow: float, seed: int = 0) -> float:
    """Steps per mean step of a lone ordinary agent: 1 where waiting costs nothing.

    spread: sigma of the log-normal factor on each phase. ahead: as `sites.ahead`. slow: how much
    longer the first agent takes. The rules are those of `corl.cohort.train`.
    """
    rng = random.Random(seed)

    def length(agent: int, share: float) -> float:
        return share * (slow if agent == 0 else 1.0) * rng.lognormvariate(-(spread**2) / 2, spread)

    posted: list[dict[int, float]] = [{} for _ in range(num_agents)]
    waiting: list[deque[int]] = [deque() for _ in range(num_agents)]
    sampled = [0] * num_agents
    learned = [0] * num_agents
    due = [(0.0, agent) for agent in range(num_agents)]
    blocked: dict[int, float] = {}
    end = 0.0
    while due:
        now, agent = heapq.heappop(due)
        peer = (agent - 1) % num_agents
        oldest = waiting[agent][0] if waiting[agent] else None
        arrival = posted[peer].get(oldest) if oldest is not None else None
        is_last = sampled[agent] == SIMULATED_STEPS
        if oldest is not None and arrival is not None and arrival <= now:
            waiting[agent].popleft()
            learned[agent] += 1
            now += length(agent, 1 - SAMPLE_SHARE)
            end = max(end, now)
        elif oldest is not None and (len(waiting[agent]) > ahead or is_last):
            if arrival is None:
                blocked[agent] = now
                continue
            now = arrival
        elif is_last:
            continue
        else:
            now += length(agent, SAMPLE_SHARE)
            sampled[agent] += 1
            waiting[agent].append(sampled[agent])
            posted[agent][sampled[agent]] = now
            grades = (agent + 1) % num_agents
            if grades in blocked:
                heapq.heappush(due, (max(blocked.pop(grades), now), grades))
        heapq.heappush(due, (now, agent))
    return SIMULATED_STEPS / end


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redis", type=Path, help="a redis-server binary; left out: no such row")
    typed = parser.parse_args()
    console = Console(width=110)
    cost = Table(title=f"milliseconds from own ballot to the peer's, {VOTES} votes, one machine")
    cost.add_column("carrier")
    for count in AGENTS:
        cost.add_column(f"N={count}", justify="right")
    names = {count: [f"agent{index}" for index in range(count)] for count in AGENTS}

    def row(title: str, timed: Callable[[list[str]], float]) -> None:
        cost.add_row(title, *(f"{1000 * timed(names[count]):.2f}" for count in AGENTS))

    row("in one process (all agents)", local)
    row("TCPStore (processes)", by_store)
    if typed.redis:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen(
            [typed.redis, "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL
        )
        try:
            time.sleep(1)
            with tempfile.TemporaryDirectory() as folder:
                row("Redis, signed (sites)", lambda n: by_broker(n, port, Path(folder)))
        finally:
            server.kill()
    console.print(cost)
    console.print(f"a sealed ballot has {_sealed_bytes():,} bytes")

    left = Table(title="simulated pace of a ring; 1 is an agent that never waits")
    for title in ("agents", "spread of a phase", "slow agent"):
        left.add_column(title, justify="right")
    for ahead in (0, 1, 3):
        left.add_column(f"ahead {ahead}", justify="right")
    for spread, slow in ((0.1, 1.0), (0.3, 1.0), (0.1, 1.5)):
        for count in (2, 8, 64):
            paces = [
                statistics.mean(
                    pace(count, spread=spread, ahead=ahead, slow=slow, seed=seed)
                    for seed in range(5)
                )
                for ahead in (0, 1, 3)
            ]
            left.add_row(
                str(count), f"{spread:.0%}", f"x {slow:g}", *(f"{each:.2f}" for each in paces)
            )
    console.print(left)


def _sealed_bytes() -> int:
    with tempfile.TemporaryDirectory() as folder:
        write_keys(Path(folder), ["one"])
        return len(Signer(Path(folder) / "one.pem").seal(ballot("one", 1)))


if __name__ == "__main__":
    main()
