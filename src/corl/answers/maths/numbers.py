"""Number literals, and how a value is written into a key.

A decimal literal of d >= 6 significant digits stands for the fraction of smallest
denominator that rounds to it at its number of decimals, if that denominator is at most
10^(d/3); any other decimal is its own exact rational. Trailing zeros are not digits
here, so that equal decimals have equal keys. Inexact values never join decimals: they
are written with 40 significant digits, rounded in two steps (52, then 40), so that a
value that lies exactly between two roundings falls on one side however it was reached.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b

from corl.answers.maths.budgets import KEY_DIGITS, MAX_LITERAL_DIGITS, Unreadable

Exact = int | Fraction
Real = int | Fraction | Decimal

_LONGEST_WRITTEN_BITS = 2000


@lru_cache(maxsize=256)
def context_of(digits: int) -> decimal.Context:
    """A context of our own: no caller's or thread's settings reach the arithmetic.

    Threads may share it: its settings never change, and nothing reads its flags.
    """
    return decimal.Context(
        prec=digits,
        rounding=decimal.ROUND_HALF_UP,
        Emin=-2_000_000,
        Emax=2_000_000,
        capitals=0,
        clamp=0,
        flags=[],
        traps=[
            decimal.InvalidOperation,
            decimal.DivisionByZero,
            decimal.Overflow,
            decimal.Underflow,
        ],
    )


def plain(value: Exact) -> Exact:
    """An int where the fraction is whole."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def decimal_literal(digits: str, *, places: int) -> Exact:
    """The value of a literal: its digits without point, and its number of decimals.

    Negative `places` append zeros (2.5e4 is digits "25" with -3 places).
    """
    if len(digits) > MAX_LITERAL_DIGITS or abs(places) > MAX_LITERAL_DIGITS:
        raise Unreadable("a literal beyond the digit budget")
    digits = digits.lstrip("0")
    if places > 0:
        stripped = digits.rstrip("0")
        dropped = min(places, len(digits) - len(stripped))
        if dropped:
            digits, places = digits[: len(digits) - dropped], places - dropped
    if not digits:
        return 0
    if places <= 0:
        return int(digits) * 10 ** (-places)
    if len(digits) >= 6:
        short = _simplest_rounding(int(digits), places)
        if short.denominator**3 <= 10 ** len(digits):
            return plain(short)
    return plain(Fraction(int(digits), 10**places))


def _simplest_rounding(digits: int, places: int) -> Fraction:
    """The fraction of smallest denominator in [v - h, v + h), h half a unit of the last digit.

    Walks the continued fractions of both ends together (Stern-Brocot).
    """
    scale = 2 * 10**places
    low_n, low_d = 2 * digits - 1, scale
    high_n, high_d = 2 * digits + 1, scale
    # Convergents of the path so far: p/q and the one before it.
    p0, q0, p1, q1 = 0, 1, 1, 0
    low_closed = True
    while True:
        whole = low_n // low_d
        low_rest = low_n - whole * low_d
        high_rest = high_n - whole * high_d
        if low_rest == 0 and low_closed:
            step = whole
        elif high_rest > high_d:
            step = whole + 1
        else:
            # Same whole part: go one level down, where the ends swap.
            p0, q0, p1, q1 = p1, q1, whole * p1 + p0, whole * q1 + q0
            if low_rest == 0:
                # The open low end became an unbounded high end: one step past 1/high.
                step = high_d // high_rest + 1 if not low_closed else high_d // high_rest
                return Fraction(step * p1 + p0, step * q1 + q0)
            low_n, low_d, high_n, high_d = high_d, high_rest, low_d, low_rest
            low_closed = not low_closed
            continue
        return Fraction(step * p1 + p0, step * q1 + q0)


def rational_near(value: Decimal, *, digits: int) -> Exact | None:
    """The rational p/q, |p|*q < 10^30, that agrees with `value` to `digits` digits, if any.

    `digits` is what the evaluation certifies, at least 50: such a rational near an
    unrelated irrational has odds of about 10^-20.
    """
    exponent = value.adjusted()
    if not -31 < exponent < 31:
        return None
    n, d = value.as_integer_ratio()
    sign, n = (-1, -n) if n < 0 else (1, n)
    p0, q0, p1, q1 = 0, 1, 1, 0
    x, y = n, d
    while y:
        whole, rest = divmod(x, y)
        # The next quotient behind such a rational exceeds 10^digits / (p q).
        if whole > 10**15 and q1:
            break
        p0, q0, p1, q1 = p1, q1, whole * p1 + p0, whole * q1 + q0
        if p1 * q1 > 10**30:
            return None
        x, y = y, rest
    if abs(p1 * d - n * q1) * 10 ** max(digits - exponent, 0) < d * q1:
        return plain(Fraction(sign * p1, q1))
    return None


_STEP_1 = context_of(KEY_DIGITS + 12)
_STEP_2 = context_of(KEY_DIGITS)


def rounded(value: Real) -> str:
    """`value` to 40 significant digits, in one spelling."""
    if value == 0:
        return "0"
    if isinstance(value, Fraction):
        first = _STEP_1.divide(
            _STEP_1.create_decimal(value.numerator), _STEP_1.create_decimal(value.denominator)
        )
    else:
        first = _STEP_1.create_decimal(value)
    sign, digits, exponent = _STEP_2.plus(first).as_tuple()
    text = "".join(map(str, digits))
    assert isinstance(exponent, int)
    exponent += len(text) - 1
    text = text.rstrip("0")
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}e{exponent}"


def looks_exact(value: Decimal) -> bool:
    """Digits 41 to 56 are all 0 or all 9: 40 digits do not tell this value from a neighbour."""
    digits = context_of(KEY_DIGITS + 18).plus(value).as_tuple().digits
    tail = set(digits[KEY_DIGITS : KEY_DIGITS + 16])
    return tail <= {0} or tail <= {9}


def written(value: Exact) -> str:
    """An exact value for a key; a long one by its length and digest (int to text is quadratic)."""
    if isinstance(value, Fraction):
        return f"{_whole(value.numerator)}/{_whole(value.denominator)}"
    return _whole(value)


def _whole(value: int) -> str:
    bits = value.bit_length()
    if bits <= _LONGEST_WRITTEN_BITS:
        return str(value)
    digest = blake2b(value.to_bytes(bits // 8 + 1, "big", signed=True), digest_size=20)
    return f"{'-' if value < 0 else ''}#{bits}.{digest.hexdigest()}"


def digest(text: str) -> str:
    """A short stand-in for a long text: 160 bits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
