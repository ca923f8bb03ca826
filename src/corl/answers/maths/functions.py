"""The named functions of an expression: circular, hyperbolic, logarithms, extremes.

`log` without a base is decimal, `ln` natural. Inverse circular functions take real
arguments only; outside [-1, 1] an arcsine is refused, and its text is the key.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import cast

from corl.answers.maths.arithmetic import Value
from corl.answers.maths.budgets import Unreadable
from corl.answers.maths.evaluate import OPERATIONS, Evaluator
from corl.answers.maths.numbers import Real
from corl.answers.maths.tree import Node

Function = Callable[[Evaluator, Node], Value]


def _sin(at: Evaluator, node: Node) -> Value:
    return at.circular(node.args[0])[0]


def _cos(at: Evaluator, node: Node) -> Value:
    return at.circular(node.args[0])[1]


def _tan(at: Evaluator, node: Node) -> Value:
    sine, cosine = at.circular(node.args[0])
    return at.ratio(sine, cosine)


def _cot(at: Evaluator, node: Node) -> Value:
    sine, cosine = at.circular(node.args[0])
    return at.ratio(cosine, sine)


def _sec(at: Evaluator, node: Node) -> Value:
    return at.invert(at.circular(node.args[0])[1])


def _csc(at: Evaluator, node: Node) -> Value:
    return at.invert(at.circular(node.args[0])[0])


def _arcsin_of(at: Evaluator, x: Real) -> Real:
    if x in (1, -1):
        half = cast(Real, at.multiply(at.pi(), Fraction(1, 2)))
        return half if x == 1 else cast(Real, at.negative(half))
    if not -1 < x < 1:
        raise Unreadable("an arcsine outside [-1, 1]")
    rest = at.add(1, at.negative(at.multiply(x, x)))
    return at.arctangent(cast(Real, at.multiply(x, at.invert(at.root(rest, 2)))))


def _arcsin(at: Evaluator, node: Node) -> Value:
    return _arcsin_of(at, at.real(node.args[0]))


def _arccos(at: Evaluator, node: Node) -> Value:
    half = at.multiply(at.pi(), Fraction(1, 2))
    return at.add(half, at.negative(_arcsin_of(at, at.real(node.args[0]))))


def _arctan(at: Evaluator, node: Node) -> Value:
    return at.arctangent(at.real(node.args[0]))


def _grown(at: Evaluator, node: Node) -> tuple[Value, Value]:
    x = at.value(node.args[0])
    return at.exponential(x), at.exponential(at.negative(x))


def _sinh(at: Evaluator, node: Node) -> Value:
    up, down = _grown(at, node)
    return at.multiply(at.add(up, at.negative(down)), Fraction(1, 2))


def _cosh(at: Evaluator, node: Node) -> Value:
    up, down = _grown(at, node)
    return at.multiply(at.add(up, down), Fraction(1, 2))


def _tanh(at: Evaluator, node: Node) -> Value:
    up, down = _grown(at, node)
    return at.multiply(at.add(up, at.negative(down)), at.invert(at.add(up, down)))


def _ln(at: Evaluator, node: Node) -> Value:
    return at.logarithm(at.value(node.args[0]))


def _log(at: Evaluator, node: Node) -> Value:
    above = at.logarithm(at.value(node.args[0]))
    return at.multiply(above, at.invert(at.logarithm(at.value(node.args[1]))))


def _integers(at: Evaluator, node: Node) -> list[int]:
    values = [at.value(arg) for arg in node.args]
    if not all(isinstance(value, int) for value in values):
        raise Unreadable(f"{node.op} of numbers that are not whole")
    return cast(list[int], values)


def _gcd(at: Evaluator, node: Node) -> Value:
    return math.gcd(*_integers(at, node))


def _lcm(at: Evaluator, node: Node) -> Value:
    return math.lcm(*_integers(at, node))


def as_fraction(value: Real) -> Fraction:
    """A real for comparisons: decimals do not compare with fractions."""
    if isinstance(value, Decimal) and abs(value.adjusted()) > 1000:
        raise Unreadable("a comparison of extreme values")
    return Fraction(value)


def _max(at: Evaluator, node: Node) -> Value:
    return max((at.real(arg) for arg in node.args), key=as_fraction)


def _min(at: Evaluator, node: Node) -> Value:
    return min((at.real(arg) for arg in node.args), key=as_fraction)


FUNCTIONS: dict[str, Function] = {
    "sin": _sin,
    "cos": _cos,
    "tan": _tan,
    "cot": _cot,
    "sec": _sec,
    "csc": _csc,
    "arcsin": _arcsin,
    "arccos": _arccos,
    "arctan": _arctan,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "ln": _ln,
    "log": _log,
    "gcd": _gcd,
    "lcm": _lcm,
    "max": _max,
    "min": _min,
}
"""By name; arguments are the node's children (`log` has its base as the second)."""

OPERATIONS.update(FUNCTIONS)
