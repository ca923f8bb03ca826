"""This site's agents, taking turns in this process; their peers live elsewhere.

Sites share a broker and nothing else: no file system, no clock, no launcher. Each has a run
directory of its own and resumes from it; the ballots it needs wait at the broker.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from corl.config import Recipe
from corl.config.sites import SitesConfig
from corl.errors import RecipeError, first_line
from corl.exchange.broker import BrokerExchange, ballot_key
from corl.exchange.signing import Signer, Verifier
from corl.launch.control import StopRequest
from corl.launch.in_process import train_here
from corl.launch.job import Job
from corl.run.directory import RunDirectory

REFUSED = "refused_ballots.jsonl"
_CONNECT_S = 10.0


def check_sites(recipe: Recipe) -> None:
    """Read the keys and meet the broker. Raises RecipeError where either fails."""
    if recipe.sites is not None:
        _keys(recipe.sites)
        _connect(recipe.sites).close()


def require_new_cohort(recipe: Recipe) -> None:
    """Raise RecipeError where the broker has ballots of this site under the cohort's name.

    A second run of one name would learn from the first one's votes.
    """
    if recipe.sites is None:
        return
    client = _connect(recipe.sites)
    try:
        for agent in recipe.agents:
            if client.exists(ballot_key(recipe.sites.cohort, 1, agent.name)):
                raise RecipeError(
                    f"the broker holds ballots of agent {agent.name!r} in a cohort named "
                    f"{recipe.sites.cohort!r}: choose a new sites.cohort at every site, or go on "
                    "with that run by `corl resume`"
                )
    finally:
        client.close()


def run_at_site(job: Job, *, stop: StopRequest, report: Callable[[], None]) -> int:
    """Train this site's agents. Returns the last step done."""
    sites = job.recipe.sites
    assert sites is not None
    signer, verifiers = _keys(sites)
    client = _connect(sites)
    exchange = BrokerExchange(
        client,
        signer=signer,
        verifiers=verifiers,
        timeout_s=job.recipe.exchange.timeout_s,
        keep_s=sites.keep_hours * 3600,
        max_bytes=sites.max_ballot_bytes,
        on_refusal=_Refusals(job.run).note,
        stops=lambda: stop.requested,
    )
    try:
        return train_here(job, exchange, stop=stop, report=report, ahead=(exchange, sites.ahead))
    finally:
        exchange.close()
        client.close()


class _Refusals:
    """Journals the ballots that were refused, and shows them."""

    def __init__(self, run: RunDirectory) -> None:
        self._path = run.root / REFUSED

    def note(self, what: str) -> None:
        record = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "refused": what}
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
        print(f"ballot refused: {what}", file=sys.stderr, flush=True)


def _keys(sites: SitesConfig) -> tuple[Signer, dict[str, Verifier]]:
    return Signer(sites.key), {name: Verifier(path) for name, path in sites.peers.items()}


def _connect(sites: SitesConfig) -> Any:
    try:
        import redis
    except ImportError:
        raise RecipeError("sites needs corl[sites]; install that extra") from None
    options: dict[str, Any] = {}
    if sites.broker.startswith("rediss://"):
        options = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
        if sites.certificates is not None:
            options["ssl_ca_certs"] = sites.certificates
    try:
        client = redis.Redis.from_url(
            sites.broker,
            username=sites.username,
            password=os.environ.get(sites.password_variable) or None,
            socket_timeout=_CONNECT_S,
            socket_connect_timeout=_CONNECT_S,
            **options,
        )
        client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        raise RecipeError(
            f"the broker at {sites.broker} cannot be used: {first_line(error)}; correct "
            "sites.broker, sites.username, sites.certificates or the password in "
            f"${sites.password_variable}"
        ) from None
    return client
