"""Run generated code that nobody has read, and judge it so that it cannot forge a pass.

`run_program` runs a whole program; its status describes how the program ended,
and is no verdict. `check_humaneval` and `check_tests` give verdicts: tests and
candidate live in two processes that exchange plain values only.
"""

from corl.evaluation.sandbox.assemble import assemble
from corl.evaluation.sandbox.check import Outcome, check_humaneval, check_tests, run_calls
from corl.evaluation.sandbox.levels import SandboxReport, describe, isolation_level
from corl.evaluation.sandbox.program import run_program
from corl.evaluation.sandbox.records import LEVELS, Level, Limits, RunResult, SandboxError, Verdict

__all__ = [
    "LEVELS", "Level", "Limits", "Outcome", "RunResult", "SandboxError", "SandboxReport",
    "Verdict", "assemble", "check_humaneval", "check_tests", "describe", "isolation_level",
    "run_calls", "run_program",
]  # fmt: skip
