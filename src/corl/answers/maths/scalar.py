"""From the tree of a scalar to its value and its key.

A constant's key is its exact rational, or 40 digits. An expression in symbols is keyed
by its values at the three points, 40 digits each; one that is constant there joins the
numbers, so x - x is 0 and x/x is 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from corl.answers.maths import functions
from corl.answers.maths.arithmetic import Complex, Value, Work, spelled
from corl.answers.maths.budgets import PRECISIONS, Unreadable
from corl.answers.maths.evaluate import NUM_POINTS, Evaluator, Signs
from corl.answers.maths.numbers import Real, digest, looks_exact, rational_near, rounded, written
from corl.answers.maths.tree import (
    Node,
    difference,
    negated,
    number,
    quotient,
    substituted,
    symbols,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the tree of one answer is being read: its plus-minus signs and its budget."""

    has_signs: bool = False
    signs: Signs = ()
    work: Work = field(default_factory=Work)


def settle(node: Node, reading: Reading, *, point: int = 0) -> Value:
    """The value of a tree, exact or certified; rationals in disguise become exact.

    Raises Unreadable where no precision of the ladder certifies one.
    """
    reading.work.spend(0.5)
    for precision in PRECISIONS:
        at = Evaluator(precision, point=point, signs=reading.signs, work=reading.work)
        value = at.value(node)
        if at.is_certified():
            return _unmasked(value, at.certified_digits())
    raise Unreadable("cancellation beyond the precision budget")


def _unmasked(value: Value, digits: int) -> Value:
    if isinstance(value, Complex):
        return Complex(_unmasked_real(value.re, digits), _unmasked_real(value.im, digits))
    return _unmasked_real(value, digits)


def _unmasked_real(value: Real, digits: int) -> Real:
    if not isinstance(value, Decimal):
        return value
    exact = rational_near(value, digits=digits)
    return value if exact is None else exact


def scalar_key(node: Node, reading: Reading) -> str:
    """The key of a number or an expression."""
    if not symbols(node):
        return value_key(settle(node, reading))
    values = [settle(node, reading, point=point) for point in range(NUM_POINTS)]
    spellings = [spelled(value) for value in values]
    if len(set(spellings)) == 1:
        return value_key(values[0])
    return f"expression:{digest(';'.join(spellings))}"


def value_key(value: Value) -> str:
    if isinstance(value, Complex):
        return f"complex:{_real_body(value.re)},{_real_body(value.im)}"
    kind = "real" if isinstance(value, Decimal) else "number"
    return f"{kind}:{_real_body(value)}"


def _real_body(value: Real) -> str:
    if not isinstance(value, Decimal):
        return written(value)
    if looks_exact(value):
        raise Unreadable("an irrational too close to a short decimal")
    return rounded(value)


def placed(node: Node, reading: Reading) -> tuple[str, Fraction]:
    """A real constant's key, and its value for ordering (inexact: its working precision)."""
    if symbols(node):
        raise Unreadable("an order of symbols")
    value = settle(node, reading)
    if isinstance(value, Complex):
        raise Unreadable("an order of complex numbers")
    return value_key(value), functions.as_fraction(value)


def is_zero(node: Node, reading: Reading) -> bool:
    """Whether the tree vanishes at all points (one, if it has no symbols)."""
    points = range(NUM_POINTS) if symbols(node) else range(1)
    return all(settle(node, reading, point=point) == 0 for point in points)


def linear_root(node: Node, name: str, reading: Reading) -> tuple[Node, Node] | None:
    """(root, slope) if the tree is linear in its only symbol `name`, with non-zero slope.

    Linear: the second differences vanish at 0, 1, 2 and at two fixed points beyond.
    """
    at_0, at_1, at_2 = (substituted(node, name, number(x)) for x in (0, 1, 2))
    slope = difference(at_1, at_0)
    try:
        bend = difference(difference(at_2, at_1), slope)
        if is_zero(slope, reading) or not is_zero(bend, reading):
            return None
        for x in (Fraction(7919, 1009), Fraction(-6007, 769)):
            here = substituted(node, name, number(x))
            line = Node("add", (at_0, Node("mul", (slope, number(x)))))
            if not is_zero(difference(here, line), reading):
                return None
    except Unreadable:
        # Undefined at one of these points, as 1/x is: not a line.
        return None
    return quotient(negated(at_0), slope), slope
