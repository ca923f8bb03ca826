"""Numbers are read wherever a problem states them, and kept ones are told from altered ones."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.diversity.rephrase.number_words import UNITS
from corl.diversity.rephrase.numbers import number_faults
from corl.diversity.rephrase.quantities import quantities


def values(text):
    return [one.value for one in quantities(text) if one.form != "implied"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3 apples and 17.5 litres", [3, Fraction(35, 2)]),
        (r"275,562 bacteria, \$60,\!000 and $10{,}000$", [275562, 60000, 10000]),
        ("the points (6, 8) and $(-2,11)$", [6, 8, 2, 11]),
        ("combining $.04$ liters", [Fraction(1, 25)]),
        (r"$\frac{35}{37} + \frac12 + \frac 18$", [35, 37, 1, 2, 1, 8]),
        (r"$2^{16x} + a_{10} - \log_4 27$ at $45^\circ$", [2, 16, 10, 4, 27, 45]),
        (r"$\sqrt[19]{2}$ and $50\%$", [19, 2, 50]),
        ("twenty-five boxes, three hundred and five jars, a dozen eggs", [25, 305, 12]),
        ("two thousand six hundred people, one million three", [2600, 1000003]),
        ("two thirds, three-quarters, half and a third of it", [Fraction(2, 3), Fraction(3, 4),
                                                               Fraction(1, 2), Fraction(1, 3)]),
        ("three and a half hours", [Fraction(7, 2)]),
        ("the third row, the 15th and the twelfth", [3, 15, 12]),
        ("twice as many, tripled", [2, 3]),
        ("one, two, three", [1, 2, 3]),
        ("2x2 and 3-by-3", [2, 2, 3, 3]),
        ("no number here: someone, tone, often, weight", []),
        ("[asy]draw((0,0)--(17,3));[/asy] 5", [5]),
        (r"\begin{align*} 1 \\[2ex] 3 \hspace{4cm}", [1, 3]),
    ],
)  # fmt: skip
def test_reads(text, expected):
    assert values(text) == expected


KEPT = [
    ("There are 11 boxes.", "Eleven boxes are there."),
    (r"Add $\frac{1}{2}$ of 9.", "Add half of 9."),
    (r"It has a $50\%$ chance of 3 wins.", "In half of all cases it wins 3 games."),
    ("It grows to 0.5 of 7.", "It grows to a half of 7."),
    ("Solve $16^{(5^x)} = 7$.", "Solve $(2^4)^{(5^x)} = 7$."),
    ("Let $x > 0$ and $y = 7$.", "Let $x$ be positive and $y$ be 7."),
    ("A polygon with 12 sides and 7 dots.", "A dodecagon with 7 dots."),
    ("Mia, Leo and Zoe share 18 pens.", "Three friends share 18 pens: Mia, Leo and Zoe."),
    (r"the set $\{1, 2, 3, \ldots, 50\}$", "the numbers from 1 to 50"),
    (r"Sum $1 + 3 + 5 + \cdots + 15 + 17$", "Add up the odd numbers between 1 and 17"),
    ("Points are (100,200).", "The points are at (100, 200)."),
    ("Two sides are 10 and 20.", "It has sides of 10 and 20."),
    ("Find 73.", "What is 73? Recall 73."),
    ("Wait three and a half hours for 2 buses.", "Wait 3.5 hours for 2 buses."),
]
ALTERED = [
    ("There are 11 boxes.", "Twelve boxes are there."),
    (r"Add $\frac{1}{2}$ of 9.", r"Add $\frac{1}{3}$ of 9."),
    (r"Add $\frac{1}{2}$ of 9.", "Add a third of 9."),
    ("Take 7 of 12 and 3 of 5.", "Take 7 of 12 and 5 of 5."),
    ("Take 7 of 12 and 3 of 5.", "Take 7 of 12."),
    ("Take 7 of 12.", "Take 7 of 12, then 4."),
    ("Solve $16^{(2^x)} = 7$.", "Solve $(2^3)^{(2^x)} = 7$."),
    ("The third of 9 rows.", "The fourth of 9 rows."),
    ("Twice 9.", "Triple 9."),
    ("275,562 bacteria in 3 jars", "275,526 bacteria in 3 jars"),
    ("$x^2 + 3x = 9$", "$x^3 + 3x = 9$"),
    ("$x$ and $y$ with $2x + 9y = 5$", "Two numbers with $3x + 9y = 5$"),
    ("$50\\%$ of 9", "$5\\%$ of 9"),
    ("1.25 of 8", "12.5 of 8"),
    ("log_2 of 9 in a right triangle", "log_3 of 9 in a garden"),
    ("two mangoes for 9", "three mangoes for 9"),
]  # fmt: skip


@pytest.mark.parametrize(("original", "rewritten"), KEPT)
def test_a_way_of_saying_it_is_kept(original, rewritten):
    assert number_faults(original, rewritten) == []


@pytest.mark.parametrize(("original", "rewritten"), ALTERED)
def test_an_altered_number_is_named(original, rewritten):
    assert number_faults(original, rewritten)


def test_says_which_number_became_which():
    (said,) = number_faults("Take 7 of 12 and 12 of 5.", "Take 7 of 12 and 7 of 5.")
    assert said == "number altered: 12 became 7"


numbers = st.lists(st.integers(3, 10**6), min_size=1, max_size=6, unique=True)


@settings(deadline=None)
@given(numbers, st.randoms(use_true_random=False))
def test_order_is_wording(given_numbers, rng):
    shuffled = rng.sample(given_numbers, len(given_numbers))
    before, after = (
        " and ".join(f"{one} pens" for one in order) for order in (given_numbers, shuffled)
    )
    assert number_faults(before, f"Someone holds {after}.") == []


@settings(deadline=None)
@given(numbers, st.data())
def test_any_single_number_that_changes_is_seen(given_numbers, data):
    place = data.draw(st.integers(0, len(given_numbers) - 1))
    new = data.draw(st.integers(3, 10**6).filter(lambda one: one != given_numbers[place]))
    changed = [*given_numbers[:place], new, *given_numbers[place + 1 :]]
    before, after = (
        " and ".join(f"{one} pens" for one in order) for order in (given_numbers, changed)
    )
    assert number_faults(before, f"Someone holds {after}.")


@settings(deadline=None)
@given(st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)))
def test_number_words_are_their_digits_and_no_others(one, other):
    said = number_faults(f"Share {UNITS[one]} of 50 pens.", f"Of 50 pens, {other} are shared.")
    assert (said == []) == (UNITS[one] == UNITS[other])


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_and_equals_itself(text):
    assert number_faults(text, text) == []
