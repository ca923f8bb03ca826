"""The keys themselves: their types, the policies that the documentation states."""

import pytest

from corl.answers.maths import maths_key


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("1/2", "number:1/2"),
        (r"\frac{-6}{4}", "number:-3/2"),
        ("-0", "number:0"),
        ("1,234.50", "number:2469/2"),
        (r"50\%", "number:50"),
        (r"0.56 = 56\%", "number:56"),
        (r"\$\dfrac23 \approx \$0.67", "number:2/3"),
        (r"\approx 8.24 \text{ mph}", "number:206/25"),
        ("(3,-2)", "tuple:(number:3,number:-2)"),
        ("[3,4)", "interval:[number:3,number:4)"),
        ("x>3", "tuple:(number:3,infinity)"),
        (r"\pm 2", "set:{number:-2,number:2}"),
        (r"\{5\}", "number:5"),
        ("2-3i", "complex:2,-3"),
        ("1101_2", "based:1101_2"),
        ("-37_8", "based:-37_8"),
        ("1:3", "ratio:1:number:3"),
        ("4:05", "clock:4:05"),
        (r"\text{two lines}", "text:two lines"),
        (r"\text{1:03 PM}", "clock:1:03pm"),
        ("x=1, y=2", "assignment:{x=number:1,y=number:2}"),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", "matrix:2x1[number:1,number:2]"),
    ],
)
def test_key(raw: str, key: str):
    assert maths_key(raw) == key


def test_an_irrational_is_written_with_forty_digits():
    # sqrt(2) = 1.4142135623730950488016887242096980785696..., whose 40th digit rounds 69 to 70.
    assert maths_key(r"\sqrt2") == "real:1.41421356237309504880168872420969807857e0"
    assert maths_key(r"\pi") == "real:3.141592653589793238462643383279502884197e0"


@pytest.mark.parametrize(
    "raw", ["", "  ", "$$", ".", r"\text{}", "None", "None.", r"\text{None}", "$None$", r"\,"]
)
def test_no_answer(raw: str):
    assert maths_key(raw) is None


@pytest.mark.parametrize("raw", ["0", "none", "nothing", "no", r"\emptyset", "N"])
def test_answers_that_look_like_none(raw: str):
    assert maths_key(raw) is not None


@pytest.mark.parametrize(
    "raw",
    [
        "1 2",
        "4 # 5",
        "3 +",
        "(1,2",
        "{1,2",
        r"\frac{1}",
        r"\frac{1}{2}}",
        "5 5 cm",
        r"\sqrt[]{2}",
        "2 =",
        "1 < 2",
        "3 = 4",
        r"\int_0^1 x\,dx = 1",
        "1/0",
        "0^0",
        r"\tan 90^\circ",
        r"\ln 0",
        r"\arcsin 2",
        "7 mod 3",
        "3!!",
    ],
)
def test_what_is_not_read_whole_is_text(raw: str):
    key = maths_key(raw)
    assert key is not None and key.split(":")[0] in ("string", "text")


@pytest.mark.parametrize(
    ("decimal", "fraction"),
    [
        # d significant digits allow a denominator of 10^(d/3): d = 6 allows 100.
        ("0.333333", "1/3"),
        ("0.0101010", None),  # six digits, but the last is an idle zero: 5 digits
        ("0.0103093", "1/97"),
        ("0.00990099", None),  # 1/101, and 101 is more than 100
        ("33.3", None),
        ("33.3333", "100/3"),
        ("3.14159", None),
        ("0.123456789012", None),  # 10/81 is 0.123456790123...
    ],
)
def test_long_decimals(decimal: str, fraction: str | None):
    digits = decimal.replace(".", "").lstrip("0")
    exact = maths_key(f"{int(digits)}/{10 ** len(decimal.partition('.')[2])}")
    key = maths_key(decimal)
    if fraction is None:
        assert key == exact
    else:
        assert key == maths_key(fraction) != exact


def test_equal_decimals_share_a_key_whatever_their_zeros():
    assert maths_key("306956.63") == maths_key("306956.6300") == maths_key("306,956.63")


@pytest.mark.parametrize("wrapped", ["{}.", "${}$", r"\({}\)", "  {}\n", r"\, {} \,", "**{}**"])
@pytest.mark.parametrize("raw", ["42", r"\frac{1}{2}", "x^2-1", "(1,2)", "[0,1)", r"\text{Monday}"])
def test_surroundings_do_not_matter(raw: str, wrapped: str):
    assert maths_key(wrapped.format(raw)) == maths_key(raw)
