"""Sine, cosine and arctangent of decimals to any precision; pi.

`decimal` brings roots, exponentials and logarithms in C, but no circular functions.
Operators on decimals round to the thread's context (28 digits), even a unary minus, so
only context methods and `copy_` methods appear here. Errors are a few units of the last
digit of the given precision.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from corl.answers.maths.numbers import context_of


@lru_cache(maxsize=64)
def pi(digits: int) -> Decimal:
    """pi = 16 atan(1/5) - 4 atan(1/239), summed in integers."""
    unit = 10 ** (digits + 10)

    def arctan_inverse(x: int) -> int:
        term = unit // x
        total, k, square = term, 1, x * x
        while term:
            term //= square
            k += 2
            total += -term // k if k % 4 == 3 else term // k
        return total

    value = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    context = context_of(digits)
    return context.scaleb(context.create_decimal(value), -(digits + 10))


def sine_cosine(x: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """(sin x, cos x), |x| below 10^20; the absolute error is that of x and 10^-digits."""
    context = context_of(digits + max(x.adjusted(), 0) + 12)
    half_pi = context.divide(pi(context.prec), Decimal(2))
    quarter = context.to_integral_value(context.divide(x, half_pi))
    rest = context.subtract(x, context.multiply(quarter, half_pi))
    turn = int(quarter) % 4
    # Halve the angle three times less than Taylor's terms would cost: rest / 2^8.
    small = context.divide(rest, Decimal(256))
    square = context.multiply(small, small)
    minus_square = square.copy_negate()
    # 1 - cos, kept apart from 1 so that doubling loses nothing: v(2t) = 2v(2 - v).
    term = context.divide(square, Decimal(2))
    versine, k = term, 2
    limit = -context.prec - 8
    while term and term.adjusted() > limit + (versine.adjusted() if versine else 0):
        term = context.divide(context.multiply(term, minus_square), Decimal((k + 1) * (k + 2)))
        versine = context.add(versine, term)
        k += 2
    for _ in range(8):
        versine = context.multiply(
            context.multiply(versine, Decimal(2)), context.subtract(Decimal(2), versine)
        )
    cosine = context.subtract(Decimal(1), versine)
    sine = context.sqrt(context.multiply(versine, context.subtract(Decimal(2), versine)))
    if rest < 0:
        sine = sine.copy_negate()
    for _ in range(turn):
        sine, cosine = cosine, sine.copy_negate()
    return sine, cosine


def arctangent(x: Decimal, digits: int) -> Decimal:
    """atan x, in (-pi/2, pi/2)."""
    context = context_of(digits + 12)
    one = Decimal(1)
    if x.copy_abs() > 1:
        half_pi = context.divide(pi(context.prec), Decimal(2))
        rest = context.subtract(half_pi, arctangent(context.divide(one, x.copy_abs()), digits + 12))
        return rest.copy_sign(x)
    small = context.plus(x)
    for _ in range(6):
        root = context.sqrt(context.add(one, context.multiply(small, small)))
        small = context.divide(small, context.add(one, root))
    minus_square = context.multiply(small, small).copy_negate()
    power, total, k = small, small, 1
    while power and power.adjusted() > total.adjusted() - context.prec - 2:
        power = context.multiply(power, minus_square)
        k += 2
        total = context.add(total, context.divide(power, Decimal(k)))
    return context.multiply(total, Decimal(64))
