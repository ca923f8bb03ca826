"""The arithmetic below the keys, against mpmath, brute force and hand-worked values."""

import random
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest

from corl.answers.maths.arithmetic import Arithmetic, Complex, Work, exact_root
from corl.answers.maths.elementary import arctangent, pi, sine_cosine
from corl.answers.maths.key import maths_key
from corl.answers.maths.numbers import decimal_literal, rational_near, rounded
from corl.answers.maths.spans import HIGHEST, LOWEST, REALS, Cut, Span, common, outside, united


def relative_error(value: Decimal, true: mpmath.mpf) -> mpmath.mpf:
    return abs(mpmath.mpf(str(value)) / true - 1)


@pytest.mark.parametrize("digits", [110, 250, 600])
@pytest.mark.parametrize("x", ["0.5", "-2.2", "3.1", "100000.125", "1e-30", "7.5e14"])
def test_circular_functions_agree_with_mpmath(x: str, digits: int):
    with mpmath.workdps(digits + 40):
        sine, cosine = sine_cosine(Decimal(x), digits)
        true, limit = mpmath.mpf(x), mpmath.mpf(10) ** (4 - digits)
        assert relative_error(sine, mpmath.sin(true)) < limit
        assert relative_error(cosine, mpmath.cos(true)) < limit
        assert relative_error(arctangent(Decimal(x), digits), mpmath.atan(true)) < limit
        assert relative_error(pi(digits), mpmath.pi) < limit


EXPRESSIONS = {
    r"\sqrt{2}+\sqrt[3]{3}": lambda m: m.sqrt(2) + m.cbrt(3),
    r"\ln 7 - \log_3 5": lambda m: m.log(7) - m.log(5) / m.log(3),
    r"2^{\sqrt 2}": lambda m: m.mpf(2) ** m.sqrt(2),
    r"e^{\pi\sqrt{163}}": lambda m: m.exp(m.pi * m.sqrt(163)),
    r"\tan 1 + \arcsin\frac13": lambda m: m.tan(1) + m.asin(m.mpf(1) / 3),
    r"\sinh 2 - \tanh\frac12": lambda m: m.sinh(2) - m.tanh(m.mpf(1) / 2),
    r"\arccos(-\frac{1}{7})": lambda m: m.acos(-m.mpf(1) / 7),
    r"\cos 15^\circ": lambda m: m.cos(m.pi / 12),
    r"7^{1/3} - 7^{-2/5}": lambda m: m.cbrt(7) - m.mpf(7) ** (-m.mpf(2) / 5),
    r"\sqrt{10001}-\sqrt{10000}": lambda m: m.sqrt(10001) - m.sqrt(10000),
    r"e^{10^{-20}}-1": lambda m: m.exp(m.mpf(10) ** -20) - 1,
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_forty_digits_agree_with_mpmath(text: str):
    key = maths_key(text)
    assert key is not None
    with mpmath.workdps(150):
        true = EXPRESSIONS[text](mpmath)
        assert abs(mpmath.mpf(key.removeprefix("real:")) / true - 1) <= mpmath.mpf(10) ** -39


def test_a_decimal_is_the_simplest_fraction_that_rounds_to_it():
    rng = random.Random(3)
    for _ in range(400):
        places = rng.randint(5, 8)
        digits = rng.randint(10**5, 10**6 - 1)
        low = Fraction(2 * digits - 1, 2 * 10**places)
        high = Fraction(2 * digits + 1, 2 * 10**places)
        found = next(
            (
                Fraction(-(-low.numerator * q // low.denominator), q)
                for q in range(1, 101)
                if Fraction(-(-low.numerator * q // low.denominator), q) < high
            ),
            Fraction(digits, 10**places),
        )
        expected = found if digits % 10 else decimal_literal(str(digits // 10), places=places - 1)
        assert decimal_literal(str(digits), places=places) == expected


def test_rational_recognition_needs_all_digits():
    assert rational_near(Decimal("0." + "3" * 100), digits=90) == Fraction(1, 3)
    assert rational_near(Decimal("0." + "3" * 60 + "4" * 40), digits=90) is None
    assert rational_near(Decimal("2." + "0" * 95 + "1"), digits=90) == 2
    assert rational_near(Decimal("2." + "0" * 80 + "1"), digits=90) is None


def test_rounding_in_two_steps_sends_both_neighbours_of_a_half_one_way():
    half = "1." + "2" * 39 + "5"
    assert rounded(Decimal(half + "0" * 20 + "1")) == rounded(Decimal(half[:-1] + "4" + "9" * 25))
    assert rounded(Fraction(1, 4)) == rounded(Decimal("0.25")) == "2.5e-1"
    assert rounded(10**60) == "1.0e60"


def test_sums_that_vanish_are_exactly_zero():
    at = Arithmetic(110, work=Work())
    root = at.root(2, 2)
    assert at.add(at.multiply(root, root), -2) == 0
    assert isinstance(at.add(at.multiply(root, root), -2), int)


def test_a_swallowed_term_is_never_certified():
    at = Arithmetic(110, work=Work())
    at.add(at.root(2, 2), Fraction(1, 10**120))
    assert not at.is_certified()


def test_cancellation_counts_the_digits_it_costs():
    at = Arithmetic(110, work=Work())
    # sqrt(10^60 + 1) - 10^30 = 5e-31: sixty digits of 110 are gone, and 65 must stay.
    at.add(at.root(10**60 + 1, 2), -(10**30))
    assert at.lost >= 59
    assert not at.is_certified()
    # With more digits: 5e-31 - 1.25e-91 + ..., which rounds to 5 in 40 digits, and 5e-31 is
    # another value: neither number may claim the other's key.
    assert maths_key(r"\sqrt{10^{60}+1}-10^{30}").startswith("string:")
    assert maths_key(r"\sqrt{10^{20}+1}-10^{10}").startswith("real:4.99999999999999999998")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (r"\frac{1}{1+i}", "complex:1/2,-1/2"),
        ("i^{2007}", "complex:0,-1"),
        ("(2+i)^{-2}", "complex:3/25,-4/25"),
        (r"\sqrt{3+4i}", "complex:2,1"),
        (r"\sqrt{-4}\sqrt{-9}", "number:-6"),
    ],
)
def test_gaussian_rationals_stay_exact(text: str, key: str):
    assert maths_key(text) == key


def test_exact_roots():
    assert exact_root(Fraction(8, 27), 3) == Fraction(2, 3)
    assert exact_root(Fraction(8, 25), 3) is None
    assert exact_root(Fraction(10**40), 2) == 10**20


def test_inverse_of_a_complex_number():
    at = Arithmetic(110, work=Work())
    assert at.invert(Complex(3, 4)) == Complex(Fraction(3, 25), Fraction(-4, 25))


def at(value: int, *, after: int) -> Cut:
    return Cut(0, Fraction(value), after)


def test_spans_join_where_they_touch():
    first = Span(at(1, after=1), at(2, after=1))  # (1, 2]
    second = Span(at(2, after=1), at(3, after=0))  # (2, 3)
    third = Span(at(3, after=1), at(4, after=0))  # (3, 4)
    assert united([third, second, first]) == [Span(at(1, after=1), at(3, after=0)), third]


def test_a_complement_of_a_complement_is_the_set():
    spans = [Span(LOWEST, at(0, after=0)), Span(at(5, after=0), at(7, after=1))]
    assert outside(outside(spans)) == spans
    assert common(spans, outside(spans)) == []
    assert outside(REALS) == [] and outside([]) == [Span(LOWEST, HIGHEST)]
