"""Does a rewrite ask the same problem in other words? Pure: texts in, faults out.

The checks read wording alone. They cannot see that "more than" became "less than"; votes of a
solver on both wordings can (`corl rephrase --solver`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corl.diversity.rephrase.copies import copy_fault, length_fault
from corl.diversity.rephrase.drawings import drawing_fault
from corl.diversity.rephrase.endings import ending_faults
from corl.diversity.rephrase.languages import language_fault
from corl.diversity.rephrase.listed_options import option_faults
from corl.diversity.rephrase.numbers import number_faults
from corl.diversity.rephrase.quantities import MAX_CHARACTERS
from corl.diversity.rephrase.solutions import solution_faults

CHECKS = (
    "empty",
    "cut off",
    "numbers",
    "drawing",
    "options",
    "solution",
    "copy",
    "language",
    "length",
)
"""Names of the checks, in the order in which faults are listed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason to refuse a rewrite."""

    check: str
    """One of `CHECKS`."""
    seen: str

    def __str__(self) -> str:
        return f"{self.check}: {self.seen}"


def faults(original: str, rewritten: str, *, kind: str = "math") -> list[Fault]:
    """Every reason to refuse a rewrite; empty accepts it.

    kind: the row's answer kind (math, choice, ...), by which a stated answer is read.
    """
    if not rewritten.strip():
        return [Fault("empty", "no text")]
    if max(len(original), len(rewritten)) > MAX_CHARACTERS:
        return [Fault("length", f"more than {MAX_CHARACTERS} characters are not read")]
    seen: dict[str, Sequence[str | None]] = {
        "cut off": ending_faults(original, rewritten),
        "numbers": number_faults(original, rewritten),
        "drawing": [drawing_fault(original, rewritten)],
        "options": option_faults(original, rewritten),
        "solution": solution_faults(original, rewritten, kind=kind),
        "copy": [copy_fault(original, rewritten)],
        "language": [language_fault(original, rewritten)],
        "length": [length_fault(original, rewritten)],
    }
    return [Fault(check, one) for check, found in seen.items() for one in found if one]
