"""Arithmetic that is exact while it is rational, and certified decimals beyond.

One object works at one precision and counts the digits that cancellation may have eaten
(`lost`); its results are trusted only while at least 65 are left. A sum whose terms cancel
to within twelve digits of the working precision is exactly 0; a sum that swallows a term
completely is never trusted, so no tiny value is rounded away. Powers and roots are
principal values, except that a rational exponent of small odd denominator takes the real
root of a negative base: (-8)^(1/3) is -2.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, cast

from corl.answers.maths.budgets import (
    MAX_EXACT_BITS,
    MAX_EXPONENT_DIGITS,
    MAX_WORK,
    PRECISIONS,
    Unreadable,
)
from corl.answers.maths.elementary import arctangent, pi, sine_cosine
from corl.answers.maths.numbers import Exact, Real, context_of, plain, rounded

SAFE_DIGITS = 65
"""Digits that must be left of a working precision for its result to count."""

DUST_DIGITS = 12
"""Last digits of the working precision that may be noise of earlier operations."""

_REAL_ROOTS_BELOW = 100


class Work:
    """Units of arithmetic spent on one answer, over all its points, signs and precisions."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = 0.0

    def spend(self, units: float) -> None:
        self.spent += units
        if self.spent > MAX_WORK:
            raise Unreadable("more arithmetic than the budget")


class Complex(NamedTuple):
    """A value with a non-zero imaginary part."""

    re: Real
    im: Real


Value = Real | Complex


class Arithmetic:
    """Real and complex operations at one precision, with the digits that they lost."""

    def __init__(self, precision: int, *, work: Work) -> None:
        self.precision = precision
        self.lost = 0
        self.swallowed = False
        self._context = context_of(precision)
        self._work = work
        self._unit = (precision / PRECISIONS[0]) ** 2

    # Bookkeeping

    def _spend(self, units: float) -> None:
        self._work.spend(units * self._unit)

    def _lose(self, digits: int) -> None:
        if digits > 0:
            self.lost += digits

    def is_certified(self) -> bool:
        return not self.swallowed and self.lost <= self.precision - SAFE_DIGITS

    def certified_digits(self) -> int:
        return self.precision - self.lost - DUST_DIGITS - 2

    def inexact(self, value: Real) -> Decimal:
        """The value as a decimal of the working precision."""
        if isinstance(value, Decimal):
            return value
        if isinstance(value, int):
            return self._context.create_decimal(value)
        return self._context.divide(
            self._context.create_decimal(value.numerator),
            self._context.create_decimal(value.denominator),
        )

    def _kept(self, value: Exact) -> Real:
        """An exact result, as a decimal if it is beyond the bit budget."""
        if isinstance(value, int):
            bits = value.bit_length()
            self._spend(0.005 + (bits >> 10) / 400)
        else:
            bits = max(value.numerator.bit_length(), value.denominator.bit_length())
            # The greatest common divisor is quadratic in the length.
            self._spend(0.01 + (bits >> 10) ** 2 / 32)
        return self.inexact(value) if bits > MAX_EXACT_BITS else plain(value)

    # Arithmetic

    def add(self, a: Value, b: Value) -> Value:
        if isinstance(a, Complex) or isinstance(b, Complex):
            (ar, ai), (br, bi) = parts(a), parts(b)
            return joined(self._add(ar, br), self._add(ai, bi))
        return self._add(a, b)

    def _add(self, a: Real, b: Real) -> Real:
        if not isinstance(a, Decimal) and not isinstance(b, Decimal):
            return self._kept(a + b)
        x, y = self.inexact(a), self.inexact(b)
        if not x or not y:
            return x if x else (y if y else 0)
        self._spend(0.01)
        top = max(x.adjusted(), y.adjusted())
        if abs(x.adjusted() - y.adjusted()) > self.precision - DUST_DIGITS:
            self.swallowed = True
        total = self._context.add(x, y)
        if not total or top - total.adjusted() >= self.precision - DUST_DIGITS:
            return 0
        self._lose(top - total.adjusted() - 1)
        return total

    def negative(self, a: Value) -> Value:
        if isinstance(a, Complex):
            return Complex(self._negative(a.re), self._negative(a.im))
        return self._negative(a)

    def _negative(self, a: Real) -> Real:
        return a.copy_negate() if isinstance(a, Decimal) else -a

    def multiply(self, a: Value, b: Value) -> Value:
        if isinstance(a, Complex) or isinstance(b, Complex):
            (ar, ai), (br, bi) = parts(a), parts(b)
            return joined(
                self._add(self._times(ar, br), self._negative(self._times(ai, bi))),
                self._add(self._times(ar, bi), self._times(ai, br)),
            )
        return self._times(a, b)

    def _times(self, a: Real, b: Real) -> Real:
        if not isinstance(a, Decimal) and not isinstance(b, Decimal):
            return self._kept(a * b)
        if not a or not b:
            return 0
        self._spend(0.01)
        return self._context.multiply(self.inexact(a), self.inexact(b))

    def invert(self, a: Value) -> Value:
        if isinstance(a, Complex):
            size = self._add(self._times(a.re, a.re), self._times(a.im, a.im))
            inverse = self._invert(size)
            return joined(self._times(a.re, inverse), self._negative(self._times(a.im, inverse)))
        return self._invert(a)

    def _invert(self, a: Real) -> Real:
        if not a:
            raise Unreadable("a division by zero")
        if isinstance(a, Decimal):
            return self._context.divide(Decimal(1), a)
        return plain(Fraction(1) / a)

    # Powers and roots

    def power(self, a: Value, b: Value) -> Value:
        if isinstance(b, int):
            return self._integer_power(a, b)
        if isinstance(a, Complex) or isinstance(b, Complex):
            return self._general_power(a, b)
        if not a:
            if b > 0:
                return 0
            raise Unreadable("a power of zero")
        if a > 0:
            return self._positive_power(a, b)
        if isinstance(b, Fraction) and b.denominator < _REAL_ROOTS_BELOW:
            size = self._positive_power(self._negative(a), b)
            if b.denominator % 2:
                return self._negative(size) if b.numerator % 2 else size
            if b.denominator == 2:
                return joined(0, size if b.numerator % 4 == 1 else self._negative(size))
        return self._general_power(a, b)

    def _integer_power(self, a: Value, b: int) -> Value:
        if not isinstance(a, Complex):
            return self._real_integer_power(a, b)
        if abs(b) > 4096:
            return self._general_power(a, b)
        result: Value = 1
        square: Value = a
        left = abs(b)
        while left:
            if left & 1:
                result = self.multiply(result, square)
            left >>= 1
            square = self.multiply(square, square) if left else square
        return self.invert(result) if b < 0 else result

    def _real_integer_power(self, a: Real, b: int) -> Real:
        if not a:
            if b > 0:
                return 0
            raise Unreadable("a power of zero")
        if a in (1, -1):
            return -1 if a == -1 and b % 2 else 1
        if not isinstance(a, Decimal):
            bits = max(a.numerator.bit_length(), a.denominator.bit_length())
            if bits * abs(b) <= MAX_EXACT_BITS:
                power = Fraction(a) ** b if b < 0 or isinstance(a, Fraction) else a**b
                self._spend(0.01 + (bits * abs(b) >> 10) / 100)
                return plain(power)
        base = self.inexact(a)
        self._check_growth(base, abs(b))
        self._spend(0.02 * abs(b).bit_length())
        return self._context.power(base, Decimal(b))

    def _check_growth(self, base: Decimal, exponent: int) -> None:
        """Refuse a power beyond the exponent budget; count the digits that it costs."""
        growth = (abs(base.adjusted()) + 1) * exponent
        if growth > MAX_EXPONENT_DIGITS:
            raise Unreadable("an exponent beyond the budget")
        self._lose(len(str(growth)))

    def _positive_power(self, a: Real, b: Fraction | Decimal) -> Real:
        if isinstance(b, Fraction) and not isinstance(a, Decimal) and b.denominator <= 64:
            root = exact_root(Fraction(a), b.denominator)
            self._spend(0.05)
            if root is not None:
                return self._real_integer_power(plain(root), b.numerator)
        base = self.inexact(a)
        if isinstance(b, Fraction) and b.denominator == 2:
            self._spend(0.1)
            return self._real_integer_power(self._context.sqrt(base), b.numerator)
        exponent = self.inexact(b)
        if exponent.adjusted() > 7:
            raise Unreadable("an exponent beyond the budget")
        self._check_growth(base, abs(int(exponent)) + 1)
        self._spend(2)
        return self._context.power(base, exponent)

    def _general_power(self, a: Value, b: Value) -> Value:
        return self.exponential(self.multiply(b, self.logarithm(a)))

    def root(self, a: Value, n: Value) -> Value:
        if isinstance(n, int) and 2 <= n < 1000:
            if n == 2 and isinstance(a, Complex):
                return self._complex_square_root(a)
            return self.power(a, Fraction(1, n))
        return self.power(a, self.invert(n))

    def _complex_square_root(self, a: Complex) -> Value:
        size = cast(Real, self.absolute(a))
        re = self.root(self._times(self._add(size, a.re), Fraction(1, 2)), 2)
        im = self.root(self._times(self._add(size, self._negative(a.re)), Fraction(1, 2)), 2)
        return joined(cast(Real, re), cast(Real, im if a.im > 0 else self.negative(im)))

    def absolute(self, a: Value) -> Value:
        if isinstance(a, Complex):
            return self.root(self._add(self._times(a.re, a.re), self._times(a.im, a.im)), 2)
        return self._negative(a) if a < 0 else a

    # Transcendental functions

    def pi(self) -> Decimal:
        return pi(self.precision)

    def exponential(self, a: Value) -> Value:
        if isinstance(a, Complex):
            size = cast(Real, self.exponential(a.re))
            sine, cosine = self._sine_cosine(a.im)
            return joined(self._times(size, cosine), self._times(size, sine))
        if not a:
            return 1
        exponent = self.inexact(a)
        if exponent.adjusted() > 5:
            raise Unreadable("an exponent beyond the budget")
        self._lose(exponent.adjusted() + 1)
        self._spend(1)
        return self._context.exp(exponent)

    def logarithm(self, a: Value) -> Value:
        if not a:
            raise Unreadable("the logarithm of zero")
        if isinstance(a, Complex) or a < 0:
            re, im = parts(a)
            return joined(cast(Real, self.logarithm(self.absolute(a))), self._angle(re, im))
        if a == 1:
            return 0
        self._spend(1)
        value = self.inexact(a)
        result = self._context.ln(value)
        # Near 1 the logarithm is as small as the distance to 1.
        self._lose(-result.adjusted() - 1)
        return result

    def _angle(self, re: Real, im: Real) -> Real:
        """The argument in (-pi, pi]."""
        if not re:
            half = self._times(self.pi(), Fraction(1, 2))
            return half if im > 0 else self._negative(half)
        angle = self.arctangent(self._times(im, self._invert(re)))
        if re > 0:
            return angle
        return self._add(angle, self._negative(self.pi()) if im < 0 else self.pi())

    def arctangent(self, a: Real) -> Real:
        if not a:
            return 0
        self._spend(2)
        return arctangent(self.inexact(a), self.precision)

    def _sine_cosine(self, a: Real) -> tuple[Real, Real]:
        if not a:
            return 0, 1
        angle = self.inexact(a)
        if angle.adjusted() >= 15:
            raise Unreadable("an angle beyond the budget")
        self._spend(1)
        size = max(angle.adjusted() + 1, 0)
        self._lose(size)
        return self._undusted(sine_cosine(angle, self.precision), size)

    def _undusted(self, pair: tuple[Decimal, Decimal], size: int) -> tuple[Real, Real]:
        """Values that are zero up to the precision of their angle become 0."""
        clean: list[Real] = []
        for value in pair:
            if not value or value.adjusted() <= size + DUST_DIGITS - self.precision:
                clean.append(0)
            else:
                self._lose(-value.adjusted() - 2)
                clean.append(self._context.plus(value))
        return clean[0], clean[1]


def parts(value: Value) -> tuple[Real, Real]:
    return (value.re, value.im) if isinstance(value, Complex) else (value, 0)


def joined(re: Real, im: Real) -> Value:
    return Complex(re, im) if im else re


def spelled(value: Value) -> str:
    """A value to 40 digits; exact and inexact values of one size are spelled alike."""
    if isinstance(value, Complex):
        return f"{rounded(value.re)}+i*{rounded(value.im)}"
    return rounded(value)


def exact_root(value: Fraction, n: int) -> Fraction | None:
    """The positive n-th root of a positive rational, if it is rational."""
    above = _whole_root(value.numerator, n)
    below = _whole_root(value.denominator, n) if above is not None else None
    return None if above is None or below is None else Fraction(above, below)


def _whole_root(value: int, n: int) -> int | None:
    if n == 2:
        root = math.isqrt(value)
        return root if root * root == value else None
    if value.bit_length() > 4096:
        return None
    low, high = 0, 1 << (value.bit_length() // n + 1)
    while low < high:
        middle = (low + high + 1) // 2
        if middle**n <= value:
            low = middle
        else:
            high = middle - 1
    return low if low**n == value else None
