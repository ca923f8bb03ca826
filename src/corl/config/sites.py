"""The recipe's `sites` section: agents that live elsewhere, and the broker between them."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, PositiveInt, model_validator

from corl.config.section import Section

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class SitesConfig(Section):
    """A cohort whose agents share nothing but a broker of votes (docs/sites.md)."""

    broker: str
    """redis://HOST:PORT/NUMBER, or rediss:// for TLS. No password: that is read from a variable."""
    cohort: str
    """Name of the common run, the same at every site and new for every run."""
    peers: dict[str, str] = Field(min_length=1)
    """Agents that live elsewhere: name -> file of the Ed25519 public key (PEM) of their site."""
    key: str
    """File of this site's own Ed25519 private key (PEM), which signs its agents' ballots."""
    username: str | None = None
    """Of the broker's account, where it has one."""
    password_variable: str = "CORL_BROKER_PASSWORD"
    """Environment variable that holds the broker's password; unset: none is sent."""
    certificates: str | None = None
    """PEM file of certificates that the broker's own is checked by; left out: the system's."""
    ahead: int = Field(0, ge=0, le=64)
    """Most steps that an agent samples before the ballots of an earlier one have arrived."""
    keep_hours: PositiveInt = 168
    """How long the broker keeps a ballot for late joiners."""
    max_ballot_bytes: PositiveInt = 4 * 2**20
    """Longest ballot that is read."""

    @model_validator(mode="after")
    def _is_well_formed(self) -> Self:
        if not self.broker.startswith(("redis://", "rediss://")):
            raise ValueError(
                f"sites.broker is {self.broker!r}; it begins with redis:// or rediss://"
            )
        if "@" in self.broker:
            raise ValueError(
                "sites.broker holds an account or password, which the run directory would keep; "
                "set sites.username and the variable that sites.password_variable names"
            )
        if "?" in self.broker:
            raise ValueError(
                f"sites.broker is {self.broker!r}; leave the question mark and the rest out: "
                "TLS and accounts have keys of their own"
            )
        if self.certificates is not None and not self.broker.startswith("rediss://"):
            raise ValueError("sites.certificates is for TLS; write the broker as rediss://")
        if not _NAME.fullmatch(self.cohort):
            raise ValueError(
                f"sites.cohort is {self.cohort!r}; use letters, digits, dots, dashes, underscores"
            )
        return self
