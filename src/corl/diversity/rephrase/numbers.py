"""Are the numbers of a problem kept in its rewrite?

Values are compared as multisets. Numbers that only come or only go can be a matter of wording
("x > 0" becomes "x is positive", "three friends" sums up three names). A number that goes while
another of its form comes is an altered one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from corl.diversity.rephrase.quantities import Quantity, quantities

_SMALL = (0, 1, 2)
"""Numbers that wording alone brings and takes away."""
_COUNTED = 10
"""Largest number word that may sum up what the original lists."""

Values = Counter[Fraction]


def number_faults(original: str, rewritten: str) -> list[str]:
    """What a rewrite does to the numbers, in words; empty where they are kept."""
    before, after = quantities(original), quantities(rewritten)
    missing, extra = _said(before) - _said(after), _said(after) - _said(before)
    _settle(missing, extra)
    _excuse(missing, after, before)
    _excuse(extra, before, after)
    new = _without(extra, {one.value for one in before})
    lost = _without(missing, {one.value for one in after})
    if not missing:
        counted = {one.value for one in after if one.form in ("word", "ordinal")}
        new = [value for value in new if value > _COUNTED or value not in counted]
    faults = []
    if new:
        faults.append(f"new number {_shown(new, after)}")
    if lost:
        faults.append(f"number lost: {_shown(lost, before)}")
    swapped = (missing, extra) if missing and extra else _swapped_in_one_form(before, after)
    if not faults and swapped:
        went, came = swapped
        faults.append(f"number altered: {_shown(went, before)} became {_shown(came, after)}")
    return faults


def _said(side: Sequence[Quantity], *forms: str) -> Values:
    return Counter(
        one.value for one in side if (one.form in forms if forms else one.form != "implied")
    )


def _excuse(values: Values, implied_by: Sequence[Quantity], own: Sequence[Quantity]) -> None:
    """Cross out numbers that words of the other side newly imply, such as "positive" for 0."""
    news = _said(implied_by, "implied") - _said(own, "implied")
    for value in list(values):
        values[value] -= min(values[value], news[value])
    _drop_zeros(values)


def _without(values: Values, known: set[Fraction]) -> list[Fraction]:
    return [
        value
        for value in values
        if value not in known
        and value not in _SMALL
        # A half may stand for every 1/2 of the other side.
        and not (value.denominator > 1 and {value.numerator, value.denominator} <= known)
    ]


def _swapped_in_one_form(
    before: Sequence[Quantity], after: Sequence[Quantity]
) -> tuple[Values, Values] | None:
    """A number lost and one gained in one form, which a third number in another form hides.

    "2x" becoming "3x" while "x and y" becomes "two numbers" keeps the count of twos.
    """
    for form in ("digits", "word", "ordinal"):
        missing = _said(before, form) - _said(after, form)
        extra = _said(after, form) - _said(before, form)
        others = [one for one in ("digits", "word", "factor") if one != form]
        _settle(missing, extra)
        # Words imply small numbers too often to excuse them here.
        large = Counter({value: count for value, count in missing.items() if value > 2})
        _excuse(large, after, before)
        missing = large + Counter({v: count for v, count in missing.items() if v <= 2})
        moved_in = _said(before, *others) - _said(after, *others)
        moved_out = _said(after, *others) - _said(before, *others)
        if (missing and extra - moved_in) or (extra and missing - moved_out):
            return missing, extra
    return None


def _settle(missing: Values, extra: Values) -> None:
    """Cross out what says the same: 1/2 and a half, 50 % and 0.5, 16 and 2^4."""
    for one, other in ((missing, extra), (extra, missing)):
        for value in list(one):
            while one[value] > 0 and _pay(value, other):
                one[value] -= 1
    _drop_zeros(missing)
    _drop_zeros(extra)


def _drop_zeros(values: Values) -> None:
    for value in [value for value, count in values.items() if count <= 0]:
        del values[value]


def _pay(value: Fraction, other: Values) -> bool:
    for parts in _same_as(value):
        needed = Counter(parts)
        if all(other[part] >= count for part, count in needed.items()):
            other.subtract(needed)
            return True
    return False


def _same_as(value: Fraction) -> list[list[Fraction]]:
    """Lists of numbers, each of which can write this one."""
    ways: list[list[Fraction]] = []
    if value.denominator > 1:
        ways += [[Fraction(value.numerator), Fraction(value.denominator)], [value * 100]]
        if value.numerator == 1:
            ways.append([Fraction(value.denominator)])
        return ways
    if value >= 1000:
        head, tail = divmod(value.numerator, 1000)
        ways.append([Fraction(head), Fraction(tail)])
    if value > 3:
        ways += [
            [Fraction(base), Fraction(power)]
            for base in range(2, 11)
            for power in range(2, 11)
            if base**power == value
        ]
    return ways


def _shown(values: Iterable[Fraction], side: Sequence[Quantity]) -> str:
    names = {one.value: one.shown for one in side if one.form != "implied"}
    return ", ".join(names.get(value, str(value)) for value in list(values)[:5])
