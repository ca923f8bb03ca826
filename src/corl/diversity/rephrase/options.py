"""From the command's options to settings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corl.diversity.rephrase.endpoint import EndpointSettings
from corl.diversity.rephrase.local import LocalSettings
from corl.diversity.rephrase.rewriter import RewriterSettings
from corl.diversity.rephrase.solver import SolverSettings
from corl.errors import RecipeError


def asked_rewriter(
    *,
    endpoint: str | None,
    model: str | None,
    api_key_env: str | None,
    extra: str | None,
    local: Path | None,
    temperature: float,
    max_tokens: int,
    concurrency: int,
    per_minute: float | None,
    attempts: int,
    timeout: float,
    seed: int,
) -> RewriterSettings:
    """The rewriter that was asked for. Raises RecipeError where none was, or two were."""
    if (endpoint is None) == (local is None):
        raise RecipeError("name one rewriter: --endpoint URL --model NAME, or --local DIR")
    if local is not None:
        if model or api_key_env or extra:
            raise RecipeError("--model, --api-key-env and --extra-body belong to --endpoint")
        return LocalSettings(model=local, temperature=temperature, max_tokens=max_tokens, seed=seed)
    if endpoint is None or not model:
        raise RecipeError("--endpoint needs --model NAME, as the endpoint calls it")
    return EndpointSettings(
        url=endpoint,
        model=model,
        key=_key(api_key_env),
        extra=_extra(extra),
        temperature=temperature,
        max_tokens=max_tokens,
        concurrency=concurrency,
        per_minute=per_minute,
        attempts=attempts,
        timeout=timeout,
    )


def asked_solver(
    model: Path | None, *, votes: int, max_tokens: int, seed: int
) -> SolverSettings | None:
    """The solver that was asked for, or None."""
    if model is None:
        return None
    return SolverSettings(model=model, votes=votes, max_tokens=max_tokens, seed=seed)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise RecipeError(f"the environment variable {variable!r} holds no key; export it first")
    return key


def _extra(text: str | None) -> Mapping[str, Any]:
    try:
        extra = {} if text is None else json.loads(text)
    except ValueError as error:
        raise RecipeError(f"--extra-body is not JSON: {error}") from None
    if not isinstance(extra, dict):
        raise RecipeError('--extra-body must be a JSON object, such as {"top_p": 0.9}')
    return extra
