"""Which number an English word names or implies."""

from __future__ import annotations

from fractions import Fraction

UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
SCALES = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9,
}  # fmt: skip
ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13,
    "fourteenth": 14, "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18,
    "nineteenth": 19, "twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50,
    "sixtieth": 60, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip
"""Also the names of fractions: two thirds, three tenths."""
FRACTIONS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    name + plural: value for name, value in ORDINALS.items() if value > 2 for plural in ("", "s")
}
"""Denominator by name."""

FACTORS: dict[str, int | Fraction] = {
    "twice": 2, "double": 2, "doubles": 2, "doubled": 2, "doubling": 2, "thrice": 3, "triple": 3,
    "triples": 3, "tripled": 3, "tripling": 3, "quadruple": 4, "quadruples": 4, "quadrupled": 4,
    "quadrupling": 4, "halved": Fraction(1, 2), "halves": Fraction(1, 2),
    "halving": Fraction(1, 2),
}  # fmt: skip

_IMPLIED: dict[int, str] = {
    0: "positive negative nonnegative nonzero zeros none never no origin axis intercept intercepts "
    "intersects crosses nothing vanishes",
    1: "penny pennies single unit once only coprime unity whole each every",
    2: "both pair pairs couple either neither square squares squared squaring quadratic quadratics "
    "parabola binary halfway midpoint midpoints bisects bisector bisected isosceles median root "
    "dimensional even odd coin coordinate plane ordered",
    3: "triangle triangles triangular cube cubes cubed cubing cubic trio triplet triplets",
    4: "quartic quadrilateral square rectangle tetrahedron quarterly quarters quarter quartet "
    "biquadratic",
    5: "pentagon pentagonal quintic nickel nickels",
    6: "hexagon hexagonal die dice cube",
    7: "heptagon week weeks weekly",
    8: "octagon octagonal octahedron octal",
    9: "nonagon",
    10: "decagon decade decimal decimals dime dimes",
    12: "dodecagon year years yearly months month",
    20: "icosagon icosahedron",
    24: "day days",
    60: "minute minutes hour hours second seconds",
    90: "perpendicular right",
    25: "quarter quarters",
    100: "percent percentage cent cents century decimal decimals",
    1000: "decimal decimals",
    180: "straight supplementary",
    360: "revolution rotation",
}
IMPLIED: dict[str, tuple[int, ...]] = {}
"""Numbers that a word may stand for, so that the digit may be left out beside it."""
for _value, _words in _IMPLIED.items():
    for _word in _words.split():
        IMPLIED[_word] = (*IMPLIED.get(_word, ()), _value)
