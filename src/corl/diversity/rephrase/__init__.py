"""Prompts in another wording that keeps their answers: `corl rephrase`. Imports no torch."""

from corl.diversity.rephrase.chat import EndpointError
from corl.diversity.rephrase.checks import CHECKS, Fault, faults
from corl.diversity.rephrase.endpoint import EndpointSettings
from corl.diversity.rephrase.job import Outcome, rephrase
from corl.diversity.rephrase.local import LocalSettings
from corl.diversity.rephrase.options import asked_rewriter, asked_solver
from corl.diversity.rephrase.solver import SolverSettings

__all__ = [
    "CHECKS",
    "EndpointError",
    "EndpointSettings",
    "Fault",
    "LocalSettings",
    "Outcome",
    "SolverSettings",
    "asked_rewriter",
    "asked_solver",
    "faults",
    "rephrase",
]
