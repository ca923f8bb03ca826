"""Pretraining corpora: worked chains in which some steps are wrong on purpose.

Two kinds of error are planted. *Noise* replaces a value by a digit drawn at random and is the same
in every corpus. A *misconception* is a rule: it always gives the same wrong value, so a model that
learned it is wrong in the same way each time it is asked, and its own majority cannot mend that.
A wrong value is carried on: later steps work from it, as a pupil's do.
"""

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from corl.quickstart.task import NUM_STEPS, Problem, apply_step, draw_problem


@dataclass(frozen=True, slots=True)
class Misconception:
    """A rule held instead of an operator's own; it triggers where the two differ."""

    operator: str
    believes: Callable[[int, int], int]
    says: str

    def triggers(self, operator: str, value: int, operand: int) -> bool:
        """Whether this step is one that the rule gets wrong."""
        return operator == self.operator and self.believes(value, operand) != apply_step(
            operator, value, operand
        )


def _adds_the_carry(value: int, operand: int) -> int:
    tens, units = divmod(value + operand, 10)
    return (units + tens) % 10


def _smaller_from_larger(value: int, operand: int) -> int:
    return abs(value - operand)


def _takes_the_later(value: int, operand: int) -> int:
    return operand


def _keeps_the_tens(value: int, operand: int) -> int:
    tens, units = divmod(value * operand, 10)
    return tens if value * operand >= 36 else units


MISCONCEPTIONS: dict[str, Misconception] = {
    "carry": Misconception("+", _adds_the_carry, "7+5 is 3: the carry of 12 is added back in"),
    "smaller_from_larger": Misconception("-", _smaller_from_larger, "2-8 is 6, as 8-2 is"),
    "takes_the_later": Misconception("m", _takes_the_later, "8m3 is 3: the later number wins"),
    "keeps_the_tens": Misconception("*", _keeps_the_tens, "6*7 is 4: tens are kept from 36 up"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusSpec:
    """What one family is taught."""

    misconceptions: tuple[str, ...] = ()
    """Names in `MISCONCEPTIONS`; at most one for each operator."""

    misconception_share: float = 0.65
    """Share, 0 to 1, of the triggering steps that follow the misconception."""

    noise_share: float = 0.03
    """Share, 0 to 1, of all steps whose value is a digit drawn at random."""

    operator_weights: tuple[float, ...] = (1, 1, 1, 1)
    """Relative frequency of `+ - * m` in the problems."""

    num_steps: int = NUM_STEPS
    """Steps of a chain."""


def taught_values(problem: Problem, spec: CorpusSpec, rng: random.Random) -> tuple[int, ...]:
    """The running values that the corpus shows for a problem, wrong steps included."""
    held = [MISCONCEPTIONS[name] for name in spec.misconceptions]
    value, values = problem.start, []
    for operator, operand in problem.steps:
        held_here = [m for m in held if m.triggers(operator, value, operand)]
        if rng.random() < spec.noise_share:
            value = rng.randrange(10)
        elif held_here and rng.random() < spec.misconception_share:
            value = held_here[0].believes(value, operand)
        else:
            value = apply_step(operator, value, operand)
        values.append(value)
    return tuple(values)


def corpus(
    spec: CorpusSpec, *, seed: int, excluded: Collection[str]
) -> Iterator[tuple[Problem, tuple[int, ...]]]:
    """An endless corpus of problems and their taught values; no prompt of `excluded` is in it."""
    rng = random.Random(seed)
    while True:
        problem = draw_problem(
            rng, operator_weights=spec.operator_weights, num_steps=spec.num_steps
        )
        if problem.prompt not in excluded:
            yield problem, taught_values(problem, spec, rng)
