"""The value of a tree at one precision, one point and one choice of signs.

Symbols take fixed pseudo-random rationals: all above 1 at point 0, all negative at
point 1, of mixed sign at point 2, so that sqrt(x^2), |x| and x are three expressions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from typing import cast

from corl.answers.maths.arithmetic import Arithmetic, Complex, Value, Work, spelled
from corl.answers.maths.budgets import MAX_EXACT_BITS, MAX_FACTORIAL, Unreadable
from corl.answers.maths.numbers import Exact, Real, rational_near
from corl.answers.maths.tree import Node, symbols

NUM_POINTS = 3
_PRIME = 1_000_003

Signs = tuple[int, ...]
"""The sign, 1 or -1, of each plus-minus of the answer."""


@lru_cache(maxsize=4096)
def symbol_value(name: str, point: int) -> Fraction:
    """The rational that stands for a symbol at one of the three points."""
    seed = int.from_bytes(blake2b(f"{name}|{point}".encode("utf-8", "replace")).digest()[:8], "big")
    if point == 0:
        return Fraction(1_200_004 + seed % 1_799_000, _PRIME)
    if point == 1:
        return Fraction(-(100_003 + seed % 850_000), _PRIME)
    size = 100_003 + (seed >> 1) % 3_900_000
    return Fraction(-size if seed & 1 else size, _PRIME)


class Evaluator(Arithmetic):
    """Evaluates trees; refuses structures."""

    def __init__(self, precision: int, *, point: int, signs: Signs, work: Work) -> None:
        super().__init__(precision, work=work)
        self.point = point
        self.signs = signs
        self._degrees = False

    def value(self, node: Node) -> Value:
        operation = OPERATIONS.get(node.op)
        if operation is None:
            raise Unreadable(f"a {node.op} where a number is needed")
        return operation(self, node)

    def real(self, node: Node) -> Real:
        value = self.value(node)
        if isinstance(value, Complex):
            raise Unreadable("a complex argument")
        return value

    def _sum(self, node: Node) -> Value:
        total = self.value(node.args[0])
        for arg in node.args[1:]:
            total = self.add(total, self.value(arg))
        return total

    def _product(self, node: Node) -> Value:
        total = self.value(node.args[0])
        for arg in node.args[1:]:
            total = self.multiply(total, self.value(arg))
        return total

    def _power(self, node: Node) -> Value:
        base, exponent = node.args
        if base == Node("const", (), "e"):
            return self.exponential(self.value(exponent))
        return self.power(self.value(base), self.value(exponent))

    def _root(self, node: Node) -> Value:
        return self.root(self.value(node.args[0]), self.value(node.args[1]))

    def _constant(self, node: Node) -> Value:
        if node.value == "i":
            return Complex(0, 1)
        if node.value == "pi":
            return self.pi()
        return self.exponential(1)

    def _sign(self, node: Node) -> Value:
        which, sign = node.value
        value = self.value(node.args[0])
        return value if self.signs[which] == sign else self.negative(value)

    def _degree(self, node: Node) -> Value:
        value = self.value(node.args[0])
        if not self._degrees:
            return value
        return self.multiply(value, self._times(self.pi(), Fraction(1, 180)))

    def angle(self, node: Node) -> Real:
        """An argument of a circular function, where the degree sign means pi/180."""
        outer, self._degrees = self._degrees, True
        value = self.real(node)
        self._degrees = outer
        return value

    def circular(self, node: Node) -> tuple[Real, Real]:
        return self._sine_cosine(self.angle(node))

    def ratio(self, above: Real, below: Real) -> Real:
        return self._times(above, self._invert(below))

    def _called(self, node: Node) -> Value:
        return self.uninterpreted(node.value, [self.value(arg) for arg in node.args])

    def uninterpreted(self, name: str, args: list[Value]) -> Value:
        """A function known by name only: equal arguments give equal values, nothing else does."""
        self._spend(0.1)
        text = ",".join(spelled(arg) for arg in args)
        return symbol_value(f"{name}({text})", self.point)

    def _factorial(self, node: Node) -> Value:
        value = self.value(node.args[0])
        if isinstance(value, int) and value >= 0:
            if value > MAX_FACTORIAL:
                raise Unreadable("a factorial beyond the budget")
            self._spend(value / 300)
            return math.factorial(value)
        return self._formal("!", [value], node)

    def _binomial(self, node: Node) -> Value:
        n, k = (self.value(arg) for arg in node.args)
        if isinstance(n, int) and isinstance(k, int) and n >= 0:
            if k < 0 or k > n:
                return 0
            if min(k, n - k) * n.bit_length() > MAX_EXACT_BITS:
                raise Unreadable("a binomial beyond the budget")
            self._spend(min(k, n - k) / 300)
            return math.comb(n, k)
        if isinstance(k, int) and 0 <= k <= 20:
            total: Value = 1
            for step in range(k):
                total = self.multiply(total, self.add(n, -step))
            return self.multiply(total, Fraction(1, math.factorial(k)))
        return self._formal("binom", [n, k], node)

    def _formal(self, name: str, args: list[Value], node: Node) -> Value:
        if not symbols(node):
            raise Unreadable(f"{name} of these values")
        return self.uninterpreted(name, args)

    def _absolute(self, node: Node) -> Value:
        return self.absolute(self.value(node.args[0]))

    def _whole(self, node: Node) -> Value:
        if symbols(node):
            return self.uninterpreted(node.op, [self.value(node.args[0])])
        value = self.real(node.args[0])
        if isinstance(value, Decimal):
            value = self._nearest_exact(value)
        return math.floor(value) if node.op == "floor" else math.ceil(value)

    def _nearest_exact(self, value: Decimal) -> Exact:
        """The rational that a decimal stands for: floor(sqrt(2)^2) is 2."""
        if abs(value.adjusted()) > 1000:
            raise Unreadable("the whole part of an extreme value")
        exact = rational_near(value, digits=self.certified_digits())
        return Fraction(value) if exact is None else exact

    def _only(self, node: Node) -> Value:
        """A percent sign is a unit: it changes no value."""
        return self.value(node.args[0])

    def _inverse(self, node: Node) -> Value:
        return self.invert(self.value(node.args[0]))

    def _minus(self, node: Node) -> Value:
        return self.negative(self.value(node.args[0]))

    def _literal(self, node: Node) -> Value:
        return cast(Value, node.value)

    def _symbol(self, node: Node) -> Value:
        return symbol_value(node.value, self.point)


OPERATIONS: dict[str, Callable[[Evaluator, Node], Value]] = {
    "num": Evaluator._literal,
    "sym": Evaluator._symbol,
    "const": Evaluator._constant,
    "add": Evaluator._sum,
    "neg": Evaluator._minus,
    "mul": Evaluator._product,
    "inv": Evaluator._inverse,
    "pow": Evaluator._power,
    "root": Evaluator._root,
    "pm": Evaluator._sign,
    "deg": Evaluator._degree,
    "percent": Evaluator._only,
    "call": Evaluator._called,
    "fact": Evaluator._factorial,
    "binom": Evaluator._binomial,
    "abs": Evaluator._absolute,
    "floor": Evaluator._whole,
    "ceil": Evaluator._whole,
}
"""By the op of a node; `functions` adds the named functions under their own names."""
